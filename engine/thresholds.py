"""Every threshold of the scheduler, with its reason. None of them is an operator's setting.

Fields are what a profile (presets/profiles) changes, or a test, or a measurement. The constants
below are the same on every machine.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field, field_validator

from engine.types import FRAME_SECONDS, Settings


class Thresholds(Settings):
    """Numbers that the rules in engine/scheduler compare with."""

    # Steps.
    pipeline_depth: int | None = Field(
        None,
        ge=0,
        le=2,
        description="Steps launched before the last one is read. Unset: 0 on CPUs, where nothing "
        "runs beside Python, and 1 on GPUs, which would wait for it.",
    )
    max_prefill_tokens: int = Field(
        1024,
        ge=1,
        description="Prompt tokens of one step. More than 512 only where they are fast.",
    )
    min_prefill_tokens: int = Field(
        16,
        ge=1,
        description="Prompt tokens of one step even while listeners have little audio: a prompt "
        "that never gets on would wait for ever.",
    )
    prefill_first_streams: int = Field(
        16,
        ge=0,
        description="Running streams up to which a prompt and its first frame are one step, which "
        "is heard soonest; with more, prompts share a pass with the frames of others.",
    )
    mixed_prefill_tokens: int = Field(
        256,
        ge=0,
        description="Prompt tokens that may share a pass with frames: more would delay these.",
    )
    max_failed_steps: int = Field(
        3,
        ge=1,
        description="Failed steps in a row after which the engine stops: a device that fails so "
        "often does not recover.",
    )
    step_timeout: float = Field(
        120.0,
        gt=0,
        description="Seconds after which a step counts as stuck and the worker is replaced. No "
        "step takes so long on a machine that speaks at all.",
    )

    # Chunks.
    chunk_schedule: tuple[int, ...] = Field(
        (1, 2, 4, 8, 12),
        description="Frames of a stream's chunks, growing with the audio that its listener has: "
        "small ones are heard at once, large ones cost less.",
    )
    lead_factor: float = Field(
        2.0,
        ge=1,
        description="Audio buffered before a chunk may grow, in multiples of the time it takes: "
        "the next step may be twice as long as the last.",
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
        description="Share of real time that live streams may take up; the rest is for prompts.",
    )

    # Files and open texts.
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
        description="Share of slots and queue that files may fill: the rest is for listeners.",
    )
    text_timeout: float = Field(
        120.0,
        gt=0,
        description="Seconds without text after which a request with open text ends with an error: "
        "its writer is gone.",
    )
    max_frames: int = Field(
        150_000,
        ge=1,
        description="Frames of one request, 80 ms each: over three hours, more than the longest "
        "text takes.",
    )
    stop_degeneration: bool = Field(
        True,
        description="Stop loops and endless silence; files are then generated once more. Measured "
        "speeds need speech of a set length.",
    )

    @field_validator("chunk_schedule")
    @classmethod
    def _rising(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if not sizes or sizes[0] < 1 or list(sizes) != sorted(set(sizes)):
            raise ValueError("must rise from 1 or more, like [1, 2, 4, 8, 12]")
        return sizes


# Prompts (engine/scheduler/policy.py).

MIXED_STEP_SECONDS: Final = 0.3 * FRAME_SECONDS  # a longer step would delay first chunks too much
BASE_PREFILL_ROWS: Final = 512  # prompt rows of one step that are always acceptable
FAST_PREFILL_SECONDS: Final = 0.01  # more rows are, if they are measured to take no longer

# Chunks (engine/scheduler/policy.py).

# A chunk is at most this many places further in the chunk schedule than the one before. The second
# chunk is at most one further: the first gives too little lead for more.
MAX_SIZE_STEPS: Final = 2
# Where a step takes more than this share of real time, the lead hardly grows, and what chunks cost
# decides whether it does.
TIGHT: Final = 0.75
EARLY_FRAMES: Final = 4  # decoded at a time where pieces end at pauses, looked for in them

# Pauses on a slow machine (engine/scheduler/pauses.py).

QUIET_WINDOWS: Final = 3  # on each side of a border: 60 ms, longer than a consonant
QUIET: Final = 0.05  # of the loudest window so far
LEAST_PIECE: Final = 6  # frames: half a second, a shorter piece sounds chopped
MOST_PIECE: Final = 18  # without a pause: then the quietest border, which is between words

# Open texts (engine/scheduler/scheduler.py).

TEXT_PAUSE: Final = 5.0  # seconds without text for which one keeps its room: longer than typing is

# Late steps (engine/scheduler/lateness.py).

LATENESS_HALF_LIFE: Final = 20.0  # seconds: what held the machine up may do so again
MOST_RESERVE: Final = 1.5  # seconds; more would delay the first sound for too long
LEAST_RESERVE: Final = 0.05  # seconds; less is in every stream's own chunks

# Costs of steps (engine/scheduler/step_cost.py).

FORGET: Final = 0.96  # factor on all earlier measurements at each new one: 25 steps, two seconds
ANCHOR: Final = 0.05  # weight of an anchor point: it matters only far from all measurements
ENOUGH: Final = 8.0  # sum of weights from which a line is trusted
OUTLIER: Final = 2.0  # a slower step counts as this many times the estimate: it may be a hold-up

# Waiting (engine/scheduler/admission.py, engine/scheduler/wait_estimate.py).

LEAST_LEFT: Final = 5.0  # frames of a request which is longer than expected
TOKEN_FRAMES: Final = 4.0  # of a text token, before any was measured: slow speech
NEW_SHARE: Final = 0.1  # of a new measurement, after the first ones
MOST_OVERHEAD: Final = 3.0  # more is a request that waited for its text

# Hurry (engine/speech_engine.py).

SPARE: Final = 1.3  # times real time, from which a live request leaves time for other work
