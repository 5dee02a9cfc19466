"""Takes: generated audio, live and saved."""
