"""Benchmarks and profiles of single parts on a GPU."""
