"""GPU kernels, compiled when a talker is loaded, and their comparison with the plain forms.

`cuda` and `triton` are imported only where a candidate of `select_backend` is built.
"""
