"""Torch-free twins of the worker and of a checkpoint, for tests alone."""
