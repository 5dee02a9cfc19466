"""A model folder as the host reads it, without its weights."""
