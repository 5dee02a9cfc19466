"""The engine's settings: every one has a single default, written here.

A profile is a small JSON file in presets/profiles that changes some of these weights and
nothing else. What a checkpoint tells about itself is not a setting. This module knows no
devices and reads no environment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator

from engine.errors import InvalidSetting
from engine.messages import Message, misfit
from engine.types import Settings

Group = TypeVar("Group", bound=BaseModel)

PROFILES = Path(__file__).parent.parent / "presets" / "profiles"


class EngineSettings(Settings):
    """How the engine serves. Seconds unless a name says otherwise."""

    # What is held on the device.
    max_num_seqs: int = Field(
        64, ge=1, le=1024
    )  # of each talker, if there is room: who speaks at a time
    max_seq_len: int = Field(4096, ge=64)  # of a slot at most: prompt rows and frames together
    pipeline_depth: int | None = Field(
        None, ge=0, le=2
    )  # steps launched ahead; unset: 0 on CPUs, 1 on GPUs
    eight_bits: bool = False  # weights in 8 bits: new GPUs read long prompts quicker, sound drifts
    max_prefill_tokens: int = Field(1024, ge=1)  # in one step; over 512 where they are quick
    prefill_floor: int = Field(16, ge=1)  # rows in one step even when listeners are short of lead

    # Who goes first.
    chunk_schedule: tuple[int, ...] = (
        1,
        2,
        4,
        8,
        12,
    )  # frames of a stream's chunks as its lead grows
    lead_factor: float = Field(
        2.0, ge=1
    )  # lead needed, as a multiple of the time a chunk takes to make
    ample_lead: float = Field(2.0, gt=0)  # from here on a stream may be passed over for a step
    realtime_utilization: float = Field(
        0.8, gt=0, le=1
    )  # part of real time that live streams may fill
    file_patience: float = Field(10.0, ge=0)  # a waiting file lets younger live requests pass
    file_pause: float = Field(1.0, ge=0)  # a running file may be passed over this long
    file_share: float = Field(0.75, gt=0, le=1)  # of slots and queue that files may fill

    # What is refused, and when we stop.
    max_waiting: int = Field(128, ge=0)  # requests in the queue; more are told to come back
    max_text: int = Field(4000, ge=1)  # characters of one request
    max_frames: int = Field(7500, ge=1)  # of one request: ten minutes
    text_timeout: float = Field(120.0, gt=0)  # seconds; an open text nobody adds to is closed
    guard: bool = True  # stop loops and endless silence, retry files
    max_failed_steps: int = Field(3, ge=1)  # failed steps in a row before the engine gives up
    step_timeout: float = Field(120.0, gt=0)  # a step that takes longer is given up as wedged

    @field_validator("chunk_schedule")
    @classmethod
    def _rising(cls, ramp: tuple[int, ...]) -> tuple[int, ...]:
        if not ramp or ramp[0] < 1 or list(ramp) != sorted(set(ramp)):
            raise ValueError("must rise from 1 or more, like [1, 2, 4, 8, 12]")
        return ramp


def checked(kind: type[Group], **values: Any) -> Group:
    """A group of settings from plain values; what is wrong with them is told in one line."""
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
