"""A request in flight, and its attempts.

A `Sequence` says what is to be spoken and for whom. A `Run` is one attempt to speak it in a
slot: a file whose speech ran away gets a second one. Counters only: no tensors, no threads,
no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from engine.plan import Prompt, ResolvedSampling
from engine.requests.degeneration import Guard, frame_budget
from engine.requests.playback import Playback
from engine.types import FRAME_SAMPLES, FRAME_SECONDS, Chunk, Codes, Pcm, Reason


class TextSupply:
    """The text of a sequence as ids; an open one grows until it is closed.

    In the streamed layout frame i uses up one text row more than the prompt did, so it must
    not be stepped before that row is known.
    """

    def __init__(self, prompt: Prompt) -> None:
        reference = prompt.reference
        self._ids = list(prompt.text_ids)
        self._reference = len(reference.text_ids) if reference else 0
        self._beside = 1 + (len(reference.codes) if reference else 0)  # rows of the prefill
        self._told = 0  # ids the worker has
        self._close_told = False
        self.closed = not prompt.open_text

    def __len__(self) -> int:
        return len(self._ids)

    def append(self, ids: tuple[int, ...], closed: bool) -> None:
        self._ids.extend(ids)
        self.closed = self.closed or closed

    def covers(self, frames: int) -> bool:
        """There is text for the prompt and this many frames."""
        return self.closed or self._reference + len(self._ids) >= self._beside + frames

    def into(self, prompt: Prompt) -> Prompt:
        """The prompt with all text so far; from here on only `news` is told."""
        self._told, self._close_told = len(self._ids), self.closed
        return replace(prompt, text_ids=tuple(self._ids), open_text=not self.closed)

    def news(self) -> tuple[tuple[int, ...], bool] | None:
        """Ids the worker does not have yet, and whether the text is closed after them."""
        if self._told == len(self._ids) and self._close_told == self.closed:
            return None
        fresh = tuple(self._ids[self._told :])
        self._told, self._close_told = len(self._ids), self.closed
        return fresh, self.closed


@dataclass(eq=False)
class Sequence:
    """A request in flight."""

    id: int
    talker: str
    prompt: Prompt
    draw: ResolvedSampling
    seed: int
    arrived: float
    language: str
    room: int  # frames that fit into a slot behind the prompt, or that the user asked for
    live: bool = True
    guarded: bool = True
    ignore_end: bool = False
    patience: float = 0.0  # seconds for which younger requests may pass
    retried: bool = False
    delivered: int = 0  # frames
    run: Run | None = None
    position: int | None = None  # in the queue; None: not waiting
    estimate: float = 0.0  # seconds until it is served
    text: TextSupply = field(init=False)
    playback: Playback = field(default_factory=Playback)
    limit: int = field(init=False)  # frames after which it is stopped
    touched: float = field(init=False)  # when text was last appended

    def __post_init__(self) -> None:
        self.text = TextSupply(self.prompt)
        self.limit = self._limit()
        self.touched = self.arrived

    @property
    def turn(self) -> float:
        """Where it stands in the queue: smaller first."""
        return self.arrived + self.patience

    @property
    def hungry(self) -> bool:
        """It can do nothing before more text comes."""
        return not self.text.covers(self.run.stepped + 1 if self.run else 0)

    def deliver(self, chunk: Chunk, now: float, excused: bool) -> None:
        self.playback.deliver(chunk.seconds, now, excused)
        self.delivered += chunk.frames

    def reseed(self) -> None:
        """Another seed, the same one every time: what a seed gives stays reproducible."""
        self.retried = True
        self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) % 2**63

    def append(self, ids: tuple[int, ...], closed: bool, now: float) -> None:
        self.text.append(ids, closed)
        self.touched = now
        self.limit = self._limit()

    def _limit(self) -> int:
        """An open text is held by its own rows, so it needs no budget."""
        if not self.guarded or not self.text.closed:
            return self.room
        begun = self.run.stepped + 1 if self.run else 0  # one more says that this is the end
        return min(self.room, max(begun, frame_budget(len(self.text), self.language)))


@dataclass(eq=False)
class Run:
    """One attempt at a sequence, in one slot. Planned counts run ahead of made ones."""

    sequence: Sequence
    slot: int
    prompt: Prompt
    admitted: float
    prefilled: int = 0  # rows planned
    stepped: int = 0  # frames planned
    sent: int = 0  # frames whose decoding is planned
    rung: int = -1  # of the chunk ramp
    stepped_at: float = 0.0
    holding: bool = True  # the slot is still ours
    starved: bool = False  # the listener's own text ran out since the last chunk
    total: int | None = None  # frames, once the end is known
    reason: Reason = "finished"
    decoded: int = 0  # frames whose sound is here
    codes: list[Codes] = field(default_factory=list)  # frames that were made
    held: list[Chunk] = field(default_factory=list)  # a file's chunks until its end
    chunks: int = 0
    rows: int = field(init=False)  # of the prefill
    guard: Guard = field(init=False)

    def __post_init__(self) -> None:
        self.stepped_at = self.admitted
        self.rows = len(self.prompt)
        self.guard = Guard(self.sequence.guarded)

    @property
    def over(self) -> bool:
        """Another run has replaced this one, or its sequence has ended."""
        return self.sequence.run is not self

    @property
    def unheard(self) -> bool:
        return self.sequence.playback.began is None

    @property
    def ready(self) -> bool:
        """It can make a frame."""
        return (
            self.prefilled == self.rows
            and self.total is None
            and self.stepped < self.sequence.limit
            and self.sequence.text.covers(self.stepped + 1)
        )

    @property
    def waits_for_text(self) -> bool:
        return self.total is None and self.sequence.hungry

    @property
    def flushing(self) -> bool:
        """No frame follows for now: what is left goes out as it is."""
        full = self.stepped >= self.sequence.limit
        return self.total is not None or full or self.waits_for_text

    @property
    def undecoded(self) -> int:
        made = self.stepped if self.total is None else min(self.stepped, self.total)
        return max(0, made - self.sent)

    @property
    def on_the_way(self) -> float:
        """Seconds of sound whose decoding is planned and not yet here."""
        return max(0, self.sent - self.decoded) * FRAME_SECONDS

    def stop_at(self, frames: int, reason: Reason) -> None:
        self.total, self.reason = frames, reason

    def add_frame(self, codes: Codes, ended: bool) -> None:
        """One frame from the device; what comes after the end is not speech."""
        if self.total is not None:
            return
        self.codes.append(codes)
        made = len(self.codes)
        if ended:
            self.stop_at(made, "finished")
        elif self.guard.codes(codes):
            self.stop_at(made, "runaway")
        elif made >= self.sequence.limit:
            asked = made >= self.sequence.room
            self.stop_at(made, "length" if asked else "runaway")

    def add_sound(self, start: int, pcm: Pcm) -> Chunk | None:
        """Sound of the frames from `start` on, cut where the speech ends."""
        stop = min(start + len(pcm) // FRAME_SAMPLES, len(self.codes))
        stop = stop if self.total is None else min(stop, self.total)
        if stop <= start:
            return None
        pcm = pcm[: (stop - start) * FRAME_SAMPLES]
        self.decoded = stop
        if self.guard.sound(pcm) and self.total is None:
            self.stop_at(stop, "runaway")
        self.chunks += 1
        return Chunk(self.chunks - 1, pcm, np.stack(self.codes[start:stop]))

    @property
    def complete(self) -> bool:
        return self.total is not None and self.decoded >= self.total
