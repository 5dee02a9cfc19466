"""Takes: generated audio, while it is made and saved. Knows no page."""
