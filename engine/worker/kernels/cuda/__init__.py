"""CUDA kernels, compiled by NVRTC, and their launchers."""
