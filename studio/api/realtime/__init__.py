"""The speech half of OpenAI's Realtime: text in over a WebSocket, speech out as events."""
