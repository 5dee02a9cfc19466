"""Training batches for the talker."""
