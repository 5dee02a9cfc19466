"""The WebSocket API: text in as it is written, audio out from the first words on."""
