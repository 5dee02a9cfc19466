"""Kernels of our own for NVIDIA GPUs, compiled when a talker is loaded.

Each stands beside the plain form that it must equal, and nothing here is imported where
there is no GPU.
"""
