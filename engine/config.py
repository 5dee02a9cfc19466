"""The engine's settings, each with its default and its description.

A profile is a JSON file in presets/profiles that changes some of them. Properties of a checkpoint
are not settings. This module reads no environment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator

from engine.errors import InvalidSetting
from engine.messages import Message, misfit
from engine.types import Settings

Group = TypeVar("Group", bound=BaseModel)

PROFILES = Path(__file__).parent.parent / "presets" / "profiles"


class EngineSettings(Settings):
    """How the engine serves."""

    renamed: ClassVar[dict[str, str]] = {
        "slots": "max_num_seqs",
        "positions": "max_seq_len",
        "lag": "pipeline_depth",
        "prefill_rows": "max_prefill_tokens",
        "prefill_floor": "min_prefill_tokens",
        "ramp": "chunk_schedule",
        "cover": "lead_factor",
        "margin": "realtime_utilization",
        "guard": "stop_degeneration",
        "failures": "max_failed_steps",
    }
    removed: ClassVar[dict[str, str]] = {"eight_bits": "FP8 weights were no faster than BF16."}

    # Device memory and batch sizes.
    max_num_seqs: int = Field(
        64,
        ge=1,
        le=1024,
        description="Requests of one model that run at the same time, if memory allows.",
    )
    max_seq_len: int = Field(
        4096,
        ge=64,
        description="Positions of one request: prompt tokens and frames together.",
    )
    pipeline_depth: int | None = Field(
        None,
        ge=0,
        le=2,
        description="Steps launched before the last one is read. Unset: 0 on CPUs, 1 on GPUs.",
    )
    max_prefill_tokens: int = Field(
        1024,
        ge=1,
        description="Prompt tokens of one step. More than 512 only where they are fast.",
    )
    min_prefill_tokens: int = Field(
        16,
        ge=1,
        description="Prompt tokens of one step even while listeners have little audio buffered.",
    )

    prefill_first_streams: int = Field(
        16,
        ge=0,
        description="Running streams up to which a prompt and its first frame are one step; with "
        "more, prompts share a pass with the frames of others.",
    )
    mixed_prefill_tokens: int = Field(
        256,
        ge=0,
        description="Prompt tokens that may share a pass with frames.",
    )

    # Scheduling.
    chunk_schedule: tuple[int, ...] = Field(
        (1, 2, 4, 8, 12),
        description="Frames of a stream's chunks, growing with the audio that its listener has.",
    )
    lead_factor: float = Field(
        2.0,
        ge=1,
        description="Audio buffered before a chunk may grow, in multiples of the time it takes.",
    )
    ample_lead: float = Field(
        2.0,
        gt=0,
        description="Seconds of buffered audio from which a stream may skip a step.",
    )
    realtime_utilization: float = Field(
        0.8,
        gt=0,
        le=1,
        description="Share of real time that live streams may take up.",
    )
    early_start: bool = Field(
        False,
        description="Where this machine speaks slower than real time, play each piece as soon as "
        "it is made, with silence between pieces, which end at pauses. Requests may say so too.",
    )
    file_patience: float = Field(
        10.0,
        ge=0,
        description="Seconds for which a waiting file lets later live requests pass.",
    )
    file_pause: float = Field(
        1.0,
        ge=0,
        description="Seconds for which a running file may be paused for live streams.",
    )
    file_share: float = Field(
        0.75,
        gt=0,
        le=1,
        description="Share of slots and queue that files may fill.",
    )

    # Limits.
    max_waiting: int = Field(
        128,
        ge=0,
        description="Requests in the queue. Further ones are refused with a time to come back.",
    )
    max_wait: float = Field(
        15.0,
        gt=0,
        description="Seconds that a live request may wait. One that would wait longer is refused "
        "with a time to come back.",
    )
    max_text: int = Field(200_000, ge=1, description="Characters of one request.")
    max_frames: int = Field(150_000, ge=1, description="Frames of one request, 80 ms each.")
    text_timeout: float = Field(
        120.0,
        gt=0,
        description="Seconds without text after which a request with open text ends with an error.",
    )
    stop_degeneration: bool = Field(
        True,
        description="Stop loops and endless silence; files are then generated once more.",
    )
    max_failed_steps: int = Field(
        3,
        ge=1,
        description="Failed steps in a row after which the engine stops.",
    )
    step_timeout: float = Field(
        120.0,
        gt=0,
        description="Seconds after which a step counts as stuck and the worker is replaced.",
    )

    @field_validator("chunk_schedule")
    @classmethod
    def _rising(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if not sizes or sizes[0] < 1 or list(sizes) != sorted(set(sizes)):
            raise ValueError("must rise from 1 or more, like [1, 2, 4, 8, 12]")
        return sizes


def checked(kind: type[Group], **values: Any) -> Group:
    """A group of settings from plain values. Raises one InvalidSetting for all errors."""
    try:
        return kind(**values)
    except ValidationError as error:
        raise InvalidSetting(_explain(error)) from None


def engine_settings(**values: Any) -> EngineSettings:
    return checked(EngineSettings, **values)


def profiles() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in PROFILES.glob("*.json")))


def load_profile(name: str, **changes: Any) -> EngineSettings:
    """The settings of a profile, with some changed."""
    if name not in profiles():
        raise InvalidSetting(
            "There is no profile {name!r}. Choose from {there}.",
            name=name,
            there=", ".join(profiles()),
        )
    weights = json.loads((PROFILES / f"{name}.json").read_text(encoding="utf-8"))
    return engine_settings(**{**weights, **changes})


def _explain(error: ValidationError) -> Message:
    parts = (
        Message("{field}: {problem}", field=".".join(map(str, each["loc"])), problem=misfit(each))
        for each in error.errors()
    )
    return Message(
        "These settings cannot be used: {problems}.", problems=Message.listed(parts, "; ")
    )
