"""Device state of each slot between steps, and its memory."""
