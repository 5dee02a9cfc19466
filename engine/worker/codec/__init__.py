"""Frames of codes into audio: streaming state, batching and CUDA graphs."""
