"""The state of a line's audio while it is generated, and checks of the result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from engine import End, Message, Pcm, SpeechStream
from studio.scripts.line_audio import LineAudio
from studio.scripts.line_requests import Job

Status: TypeAlias = Literal["waiting", "speaking", "done", "failed", "locked"]

_RAN_ON = Message("This line would not end and was stopped. Press Regenerate, or make it shorter.")
_INCOMPLETE = Message("Part of this line may be missing. Press Regenerate, or change its text.")
_SILENT = Message("The engine made no sound for this line. Press Regenerate, or change its text.")


@dataclass(eq=False)
class Track:
    """Audio that is being generated. Lines with the same key share one."""

    job: Job
    status: Status = "waiting"
    error: str = ""
    ended: bool = False
    stream: SpeechStream | None = None
    samples: int = 0  # generated so far
    chunks: list[Pcm] = field(default_factory=list)


def status_of(job: Job, sounds: LineAudio) -> Status:
    """The status of a line outside of a rendering."""
    if not job.key:
        return "done"
    if job.request is None:
        return "locked" if job.key in sounds else "failed"
    return "done" if job.key in sounds else "waiting"


def spoken_key(job: Job, sounds: LineAudio) -> str:
    """The key of a line's audio, before a change of speed if that exists; else empty."""
    keys = (job.natural, job.key) if job.key.startswith(f"{job.natural}-") else (job.key,)
    return next((key for key in keys if key and key in sounds), "")


def problem_of(end: End | None, track: Track) -> str:
    """Why the result cannot be used; empty if it can."""
    request = track.job.request
    cut = end is None or end.reason in ("runaway", "cancelled")
    if cut or (end and end.reason == "length" and request and request.max_frames is None):
        return _RAN_ON
    if end and end.reason == "incomplete":
        return _INCOMPLETE
    return "" if sum(map(len, track.chunks)) else _SILENT
