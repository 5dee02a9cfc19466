"""Measures speed, latency and smoothness of the engine, through its public interface."""

from pathlib import Path

MINI = Path(__file__).parents[1] / "presets" / "mini"  # what is measured where nothing is named
