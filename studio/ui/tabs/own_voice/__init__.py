"""A voice of one's own, in the Clone tab."""

from studio.ui.tabs.own_voice.tab import build

__all__ = ["build"]
