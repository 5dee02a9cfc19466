"""The reference package (qwen-tts): its speed, and its tensors for tests."""
