"""The engine's settings, each with its default and its description.

A profile is a JSON file in presets/profiles that changes some of them, and some thresholds.
Properties of a checkpoint are not settings. This module reads no environment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, Field, ValidationError

from engine.errors import InvalidSetting
from engine.messages import Message, misfit
from engine.thresholds import Thresholds
from engine.types import EarlyStart

Group = TypeVar("Group", bound=BaseModel)

PROFILES = Path(__file__).parent.parent / "presets" / "profiles"


class EngineSettings(Thresholds):
    """How the engine serves. What an operator may set; the rest is in `Thresholds`."""

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
    early_start: EarlyStart = Field(
        "off",
        description="Where this machine speaks slower than real time: off waits until speech can "
        "be played without a pause, pauses plays pieces that end at pauses, with silence between "
        "them, pieces plays each piece as soon as it is made, wherever it ends. Requests may say "
        "so too.",
    )
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


def load_profile(name: str | None = None, **changes: Any) -> EngineSettings:
    """The settings of a profile, with some changed; without a profile, of the defaults."""
    if name is None:
        return engine_settings(**changes)
    if name not in profiles():
        raise InvalidSetting(
            "There is no profile {name!r}. Choose from {there}, or name none for a GPU's defaults.",
            name=name,
            there=", ".join(profiles()),
        )
    profile = json.loads((PROFILES / f"{name}.json").read_text(encoding="utf-8"))
    return engine_settings(**{**profile, **changes})


def _explain(error: ValidationError) -> Message:
    parts = (
        Message("{field}: {problem}", field=".".join(map(str, each["loc"])), problem=misfit(each))
        for each in error.errors()
    )
    return Message(
        "These settings cannot be used: {problems}.", problems=Message.listed(parts, "; ")
    )
