"""The Script tab."""

from studio.ui.tabs.script.tab import build

__all__ = ["build"]
