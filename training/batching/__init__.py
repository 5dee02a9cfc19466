"""Batches for the talker."""
