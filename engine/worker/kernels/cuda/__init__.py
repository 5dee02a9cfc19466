"""CUDA kernels, compiled by NVRTC when a talker is loaded, and their launchers."""
