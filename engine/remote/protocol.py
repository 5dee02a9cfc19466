"""What an engine and those who speak for it say to each other, as values that anything may carry.

Errors are values too: raised, they would lose their type and message on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from engine.errors import EngineError, TimbreError
from engine.types import Chunk, End


@dataclass(frozen=True)
class Taken:
    """A request waits there, or has a slot if it has no position."""

    position: int | None = None  # as SpeechStream.position
    estimate: float = 0.0
    where: str = ""  # the replica
    made: int = 0  # frames


@dataclass(frozen=True)
class Refused:
    """The request was refused there: the engine is full, is closing, or cannot speak it."""

    error: TimbreError
    where: str = ""  # empty: the transport's own queue is full


@dataclass(frozen=True)
class Lost:
    """The request is lost: whatever spoke it has gone."""

    error: TimbreError  # the end of a request that was heard, or that is lost too often
    where: str = ""


Part: TypeAlias = Taken | Chunk | End | Lost


def as_timbre_error(error: Exception) -> TimbreError:
    """The error as the other side can read it; ZeroGPU's own keep their message in an attribute."""
    if isinstance(error, TimbreError):
        return error
    if message := getattr(error, "message", ""):
        return EngineError(str(message))
    return EngineError("{kind}: {error}", kind=type(error).__name__, error=str(error))
