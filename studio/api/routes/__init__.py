"""Routes of speech, voices and status."""
