"""Timbre, a voice studio for Qwen3-TTS. The engine's names, loaded when the first is used:

    from timbre import Preset, SpeechRequest, open_engine

The command line, whose help needs none of them, begins with this module too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from timbre import studio as _studio

if TYPE_CHECKING:
    from timbre.engine import *  # noqa: F403

__version__ = _studio.VERSION


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'timbre' has no attribute {name!r}")
    return getattr(import_module("timbre.engine"), name)


def __dir__() -> list[str]:
    return ["__version__", *import_module("timbre.engine").__all__]
