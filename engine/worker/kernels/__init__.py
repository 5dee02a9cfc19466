"""Kernels for GPUs, compiled when a talker is loaded, and the comparison with the plain forms.

`cuda` and `triton` are imported only where a candidate of `select_backend` is built.
"""
