"""Numba kernels for CPUs: a frame's layers without an operator between them."""
