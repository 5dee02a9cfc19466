"""Measures speed, latency and smoothness of the engine, through its public interface."""
