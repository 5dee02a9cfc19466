"""A worker without a device: codes and tones computed from seed, text and frame number.

It raises where a real worker would fail silently: for work out of order, on a free slot, or on text
that is missing. Steps take the time that a cost model gives, on a real or a virtual clock.
"""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from engine.errors import EngineClosed, OutOfMemory, StepFailed
from engine.plan import (
    Admit,
    AppendText,
    Checkpoint,
    FirstAudio,
    Frame,
    Prompt,
    StepPlan,
    StepResult,
)
from engine.types import (
    CODEBOOKS,
    FRAME_SAMPLES,
    FRAME_SECONDS,
    SAMPLE_RATE,
    Clone,
    Codes,
    Pcm,
    Waveform,
)

EDGE = 240  # samples over which a tone fades in and out: 10 ms
LOUDNESS = 8000
KNOWN = 0.6  # of a step, after which its frames' codes are known
LOWEST, TONES = 12, 37  # cycles a frame: 150 to 600 Hz


def fake_frames(prompt: Prompt) -> int:
    """The frames of a text: one per character."""
    return max(2, len(prompt.text_ids))


def fake_codes(prompt: Prompt, seed: int, frame: int) -> Codes:
    """The codes of one frame; they depend on the text known by then, and on learned rows."""
    known = len(prompt.text_ids)
    if prompt.layout == "streamed":
        beside = 1 + (len(prompt.reference.codes) if prompt.reference else 0)
        transcript = prompt.reference.text_ids if prompt.reference else ()
        known = max(0, min(known, beside + frame + 1 - len(transcript)))
    last = prompt.text_ids[known - 1] if known else 0
    if prompt.rows is not None:
        seed += zlib.crc32(prompt.rows.tobytes())
    state = np.uint64((seed * 1_000_003 + known * 8191 + last * 131 + frame * 7919) % 2**63)
    mixed = (state + np.arange(1, CODEBOOKS + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(40)) % np.uint64(2048)).astype(np.int64)


def fake_tone(codes: Codes) -> Pcm:
    """The audio of a frame: a short tone."""
    cycles = LOWEST + int(codes[0]) % TONES
    wave = np.sin(2 * np.pi * cycles * np.arange(FRAME_SAMPLES) / FRAME_SAMPLES)
    wave[:EDGE] *= np.linspace(0, 1, EDGE)
    wave[-EDGE:] *= np.linspace(1, 0, EDGE)
    return (LOUDNESS * wave).astype(np.int16)


_TABLE = [fake_tone(np.array([tone])) for tone in range(TONES)]


def fake_sound(codes: Codes) -> Pcm:
    """The audio of several frames."""
    return np.concatenate([_TABLE[int(code) % TONES] for code in codes[:, 0]])


class Clock:
    """Real time."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


class VirtualClock(Clock):
    """Time that passes only in `sleep`."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)


@dataclass(frozen=True)
class Costs:
    """Seconds of a step: a fixed part, and parts that grow with the work."""

    step: float = 0.0
    row: float = 0.0
    prefill_row: float = 0.0
    decoded_chunk: float = 0.0
    decoded_frame: float = 0.0

    def of(self, plan: StepPlan) -> float:
        return self.prompts(plan) + self.frames(plan) + self.audio(plan)

    def prompts(self, plan: StepPlan) -> float:
        return self.prefill_row * sum(piece.stop - piece.start for piece in plan.prefill)

    def frames(self, plan: StepPlan) -> float:
        return (self.step + self.row * len(plan.decode)) if plan.decode else 0.0

    def audio(self, plan: StepPlan) -> float:
        decoded = sum(piece.stop - piece.start for piece in plan.codec_decode)
        return self.decoded_chunk * len(plan.codec_decode) + self.decoded_frame * decoded


@dataclass
class FakeSlot:
    """The state of a slot."""

    prompt: Prompt
    admit: Admit
    filled: int = 0
    codes: list[Codes] = field(default_factory=list)
    decoded: int = 0

    def feed(self, feed: AppendText) -> None:
        _check(self.prompt.open_text, "text appended to a complete text")
        ids = self.prompt.text_ids + feed.text_ids
        self.prompt = replace(self.prompt, text_ids=ids, open_text=not feed.closed)

    def fill(self, start: int, stop: int) -> None:
        _check(start == self.filled and start < stop <= len(self.prompt), "prefill out of order")
        _check(self._covers(0), "prefill without text")
        self.filled = stop

    def frame(self, codes: Codes, length: int) -> Frame:
        made = len(self.codes)
        _check(self.filled == len(self.prompt), "a frame before the end of prefill")
        _check(made < self.admit.max_frames, "more frames than max_frames")
        _check(self._covers(made + 1), "a frame without text")
        self.codes.append(codes)
        ended = made + 1 == length and not (self.prompt.open_text or self.admit.ignore_end)
        return Frame(codes, ended)

    def decode(self, start: int, stop: int) -> Codes:
        _check(
            start == self.decoded and start < stop <= len(self.codes), "codec decode out of order"
        )
        self.decoded = stop
        return np.stack(self.codes[start:stop])

    def _covers(self, frames: int) -> bool:
        reference = self.prompt.reference
        known = len(self.prompt.text_ids) + (len(reference.text_ids) if reference else 0)
        beside = 1 + (len(reference.codes) if reference else 0)
        return not self.prompt.open_text or known >= beside + frames


def _check(right: bool, what: str) -> None:
    if not right:
        raise StepFailed("The plan is wrong: {what}.", what=what)


@dataclass(frozen=True)
class FakeStep:
    """A step whose codes are ready at `due`, and whose audio is ready `later` seconds later."""

    outcome: StepResult | Exception
    pcm: Mapping[int, Pcm]
    due: float
    later: float
    clock: Clock
    beside: float = 0.0  # seconds of the codec beside the steps
    ahead: float = 0.0  # seconds by which first chunks are ready before the codes

    @property
    def audio_first(self) -> bool:
        return self.ahead > 0

    def first_audio(self) -> FirstAudio | None:
        if self.clock.now() < self.due - self.ahead or isinstance(self.outcome, Exception):
            return None
        codes = {slot: frame.codes for slot, frame in self.outcome.frames.items()}
        return FirstAudio(self.outcome.number, codes, self.pcm)

    def wait_codes(self, timeout: float) -> bool:
        self._sleep(min(self.due, self.clock.now() + timeout))
        return self.clock.now() >= self.due

    def result(self) -> StepResult:
        self._sleep(self.due)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def audio_ready(self) -> bool:
        return self.clock.now() >= self.due + self.later

    def audio(self) -> Mapping[int, Pcm]:
        self._sleep(self.due + self.later)
        return self.pcm

    def audio_seconds(self) -> float:
        return self.beside

    def _sleep(self, until: float) -> None:
        self.clock.sleep(until - self.clock.now())


class FakeWorker:
    """Implements the Worker protocol. Tests set hooks to make it fail."""

    def __init__(
        self, slots: int = 8, costs: Costs | None = None, clock: Clock | None = None, room: int = 8
    ) -> None:
        """`room`: talkers that fit on the device."""
        self.costs = costs or Costs()
        self.clock = clock or Clock()
        self.room = room
        self.fault: Callable[[StepPlan], None] = lambda plan: None  # may raise
        self.refuse: Callable[[Admit], Exception | None] = lambda admit: None
        self.frames_of: Callable[[Admit, Prompt], int] = lambda admit, prompt: fake_frames(prompt)
        self.codes_of: Callable[[Prompt, int, int], Codes] = fake_codes
        self.sound_of: Callable[[Codes], Pcm] = fake_sound
        self.running: dict[int, FakeSlot] = {}
        self.plans: deque[StepPlan] = deque(maxlen=64)  # the latest
        self.timed: dict[int, float] = {}  # seconds by rows
        self.sound_later = 0.0  # seconds from a step's codes to its audio
        self.sound_follows = False  # without a limit by `pipeline_depth`
        self.first_ahead = 0.0  # seconds by which first chunks are ready before a step's codes
        self.codec_beside = False  # it works beside the steps, as on a CPU with cores for it
        self.resets = 0
        self.closed = False
        self._slots = slots
        self._loaded: dict[str, range] = {}
        self._refused: set[int] = set()
        self._busy_until, self._codec_until = 0.0, 0.0

    def slots(self, talker: str) -> range:
        return self._loaded.get(talker, range(0))

    def load(self, talker: str) -> range:
        if self.closed:
            raise EngineClosed("The engine is closed.")
        if len(self._loaded) >= self.room:
            raise OutOfMemory("There is no memory left for another model.")
        taken = {slots.start // self._slots for slots in self._loaded.values()}
        first = self._slots * next(place for place in range(self.room) if place not in taken)
        self._loaded[talker] = range(first, first + self._slots)
        return self._loaded[talker]

    def timings(self, talker: str) -> Mapping[int, float]:
        return self.timed

    def unload(self, talker: str) -> None:
        _check(not set(self._loaded[talker]) & set(self.running), "unloaded while it speaks")
        del self._loaded[talker]

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        _check(out not in self._loaded, "exchanged while it is loaded")

    def add(self, name: str, checkpoint: Checkpoint) -> None:
        _check(name not in self._loaded, "added twice")

    def remove(self, name: str) -> None:
        _check(name not in self._loaded, "removed while it is loaded")

    def launch(self, plan: StepPlan) -> FakeStep:
        self.plans.append(plan)
        if self.codec_beside:
            return self._launch_beside(plan)
        seconds = self.costs.of(plan)
        self._busy_until = max(self._busy_until, self.clock.now()) + seconds
        try:
            self.fault(plan)
            result: StepResult | Exception = self._step(plan, seconds)
            audio = self._sound(plan)
        except Exception as error:
            result, audio = error, {}
        ahead = self.first_ahead if plan.awaits_audio else 0.0
        return FakeStep(result, audio, self._busy_until, self.sound_later, self.clock, ahead=ahead)

    def _launch_beside(self, plan: StepPlan) -> FakeStep:
        """The codec begins when it is done with what an earlier step gave it, and when this step's
        codes are known; the step waits for that, and at its end for a first chunk."""
        begun, frames, audio = self.clock.now(), self.costs.frames(plan), self.costs.audio(plan)
        known = begun + self.costs.prompts(plan) + KNOWN * frames
        if audio:
            known = max(known, self._codec_until)
            self._codec_until = known + audio
        due = known + (1 - KNOWN) * frames
        due = max(due, self._codec_until) if plan.awaits_audio else due
        self.clock.sleep(due - begun)
        result = replace(self._step(plan, due - begun), audio_follows=True)
        later = max(0.0, self._codec_until - due) if audio else 0.0
        return FakeStep(result, self._sound(plan), due, later, self.clock, audio)

    def encode(self, talker: str, audio: Waveform, transcript: str) -> Clone:
        vector = np.resize(audio, 16).astype(np.float32)
        frames = max(1, round(len(audio) / SAMPLE_RATE / FRAME_SECONDS))
        codes = np.arange(frames * CODEBOOKS, dtype=np.int64).reshape(frames, CODEBOOKS) % 2048
        return Clone(vector, transcript, codes if transcript else None)

    def reset(self) -> None:
        self.running.clear()
        self.resets += 1

    def memory(self) -> int:
        return len(self._loaded) << 30

    def close(self) -> None:
        self.closed = True
        self.running.clear()

    def _step(self, plan: StepPlan, seconds: float) -> StepResult:
        for slot in plan.release:
            self.running.pop(slot, None)
        failed = {admit.slot: error for admit in plan.admit if (error := self._admit(admit))}
        there = self.running
        self._check_known(plan)
        for feed in plan.append_text:
            if feed.slot in there:
                self.running[feed.slot].feed(feed)
        for piece in plan.prefill:
            if piece.slot in there:
                self.running[piece.slot].fill(piece.start, piece.stop)
        frames = {slot: self._frame(slot) for slot in plan.decode if slot in there}
        return StepResult(plan.number, seconds, frames, failed, self.sound_follows)

    def _sound(self, plan: StepPlan) -> dict[int, Pcm]:
        return {
            piece.slot: self.sound_of(self.running[piece.slot].decode(piece.start, piece.stop))
            for piece in plan.codec_decode
            if piece.slot in self.running
        }

    def _admit(self, admit: Admit) -> Exception | None:
        _check(admit.slot in self._loaded.get(admit.talker, ()), "a slot of another talker")
        _check(admit.slot not in self.running, "a slot that is taken")
        self._refused.discard(admit.slot)
        error = self.refuse(admit)
        if error:
            self._refused.add(admit.slot)
        else:
            self.running[admit.slot] = FakeSlot(admit.prompt, admit)
        return error

    def _frame(self, slot: int) -> Frame:
        held = self.running[slot]
        codes = self.codes_of(held.prompt, held.admit.seed, len(held.codes))
        return held.frame(codes, self.frames_of(held.admit, held.prompt))

    def _check_known(self, plan: StepPlan) -> None:
        """Work for a slot whose admission failed may be in flight; for a free one, raise."""
        named = {*plan.decode, *(feed.slot for feed in plan.append_text)}
        named |= {piece.slot for piece in plan.prefill} | {
            piece.slot for piece in plan.codec_decode
        }
        _check(named <= {*self.running, *self._refused}, "work for a slot that is free")
