"""Triton kernels of the talker and the codec."""
