"""A request in flight, and its attempts.

A `Sequence` is what is to be generated. A text that is longer than the checkpoint speaks well in
one run is a sequence of groups of sentences, one after another. An `Attempt` is one try at a group
in a slot: a file that degenerates gets a second one. Counters only: no tensors, no threads, no
clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from engine.plan import Prompt, ResolvedSampling
from engine.requests.degeneration import DegenerationDetector, ended_too_early, frame_budget
from engine.requests.playback import Playback
from engine.types import FRAME_SAMPLES, FRAME_SECONDS, Chunk, Codes, Pcm, Reason

UNLIMITED = 1 << 30  # positions
FADE_SAMPLES = 120  # 5 ms, where a group follows another


@dataclass(frozen=True)
class TextPiece:
    """Text that is added to a sequence: to the last of its groups."""

    ids: tuple[int, ...]
    letters: int = 0  # see `text_groups.letters`
    ends_group: bool = False  # what follows is spoken in a run of its own
    ends_text: bool = False  # nothing follows


class TextBuffer:
    """The text of one group as ids; an open one grows until it is closed.

    In the streamed layout frame i needs one text row more than the prompt did, so it must not be
    decoded before that row is known.
    """

    def __init__(self, prompt: Prompt, letters: int = 0) -> None:
        reference = prompt.reference
        self._ids = list(prompt.text_ids)
        self._reference = len(reference.text_ids) if reference else 0
        self._prompt_rows = 1 + (len(reference.codes) if reference else 0)  # that text lies beside
        self._sent = 0  # ids that the worker has
        self._close_sent = False
        self.closed = not prompt.open_text
        self.letters = letters

    def __len__(self) -> int:
        return len(self._ids)

    def append(self, piece: TextPiece) -> None:
        self._ids.extend(piece.ids)
        self.letters += piece.letters
        self.closed = self.closed or piece.ends_group or piece.ends_text

    def covers(self, frames: int) -> bool:
        """Whether there is text for the prompt and this many frames."""
        return self.closed or self._reference + len(self._ids) >= self._prompt_rows + frames

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self._ids)

    def complete(self, prompt: Prompt) -> Prompt:
        """The prompt with all text so far."""
        self.mark_sent()
        return replace(prompt, text_ids=self.ids, open_text=not self.closed)

    def unsent(self) -> tuple[tuple[int, ...], bool] | None:
        """Ids that the worker does not have yet, and whether the text is closed after them."""
        if self._sent == len(self._ids) and self._close_sent == self.closed:
            return None
        return tuple(self._ids[self._sent :]), self.closed

    def mark_sent(self) -> None:
        self._sent, self._close_sent = len(self._ids), self.closed


@dataclass(eq=False)
class Sequence:
    """A request in flight."""

    id: int
    talker: str
    prompt: Prompt
    sampling: ResolvedSampling
    seed: int
    arrived: float
    language: str
    max_frames: int  # that the request allows
    letters: int = 0  # of the first group, see `text_groups.letters`
    max_positions: int = UNLIMITED  # of a slot
    live: bool = True
    stop_degeneration: bool = True
    ignore_end: bool = False
    patience: float = 0.0  # seconds for which later requests may pass
    retried: bool = False  # the group that is spoken now
    delivered: int = 0  # frames
    chunks: int = 0  # delivered
    attempt: Attempt | None = None
    position: int | None = None  # in the queue; None: not waiting
    estimate: float = 0.0  # seconds until it gets a slot
    playback: Playback = field(default_factory=Playback)
    groups: deque[TextBuffer] = field(init=False)  # the first one is spoken now
    token_count: int = field(init=False)  # of the whole text so far
    frame_limit: int = field(init=False)  # frames of the group, after which it is stopped
    text_changed: float = field(init=False)  # when text was last appended
    starved: bool = False  # the group had no text when the one before had ended
    reason: Reason = "finished"  # of the first group that ended otherwise
    _first_seed: int = field(init=False)
    _before: int = 0  # frames of the groups before this one

    def __post_init__(self) -> None:
        self.groups = deque([TextBuffer(self.prompt, self.letters)])
        self.token_count = len(self.prompt.text_ids)
        self._first_seed = self.seed
        self.frame_limit = self._frame_limit()
        self.text_changed = self.arrived

    @property
    def text(self) -> TextBuffer:
        """The group that is spoken now."""
        return self.groups[0]

    @property
    def turn(self) -> float:
        """Its place in the queue: smaller goes first."""
        return self.arrived + self.patience

    @property
    def needs_text(self) -> bool:
        """It can do nothing before more text comes."""
        return not self.text.covers(self.attempt.planned_frames + 1 if self.attempt else 0)

    @property
    def room(self) -> int:
        """Frames that the group may have: those of its slot, and those left of the request's."""
        behind = self.max_positions - len(replace(self.prompt, text_ids=self.text.ids))
        return min(behind, self.max_frames - self._before)

    def deliver(self, chunk: Chunk, now: float, excused: bool) -> Chunk:
        """The chunk as its listener gets it, numbered through all groups."""
        self.playback.deliver(chunk.seconds, now, excused)
        self.delivered += chunk.frames
        joined = chunk.index == 0 and self._before > 0
        self.chunks += 1
        return replace(
            chunk, index=self.chunks - 1, pcm=_faded_in(chunk.pcm) if joined else chunk.pcm
        )

    def add_group(self, ids: tuple[int, ...], letters: int) -> None:
        """Another group of a text that is complete."""
        self.groups.append(TextBuffer(replace(self.prompt, text_ids=ids), letters))
        self.token_count += len(ids)

    def end_group(self, reason: Reason) -> bool:
        """The group was spoken. Whether another one is to follow."""
        if self.reason == "finished":
            self.reason = reason
        first, self._before = self._before == 0, self.delivered
        followed = len(self.groups) > 1 and self.delivered < self.max_frames
        if followed or not first:
            self.seed = self._first_seed
        if not followed:
            return False
        self.groups.popleft()
        self.retried, self.starved = False, not self.text.covers(0)
        self.attempt = None
        self.frame_limit = self._frame_limit()
        return True

    def reseed(self) -> None:
        """Take another seed, derived from the first, so that results stay reproducible."""
        self.retried = True
        self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) % 2**63

    def append(self, piece: TextPiece, now: float) -> None:
        last = self.groups[-1]
        last.append(piece)
        self.token_count += len(piece.ids)
        self.text_changed = now
        if piece.ends_group and not piece.ends_text:
            self.groups.append(TextBuffer(replace(self.prompt, text_ids=())))
        elif piece.ends_text and not len(last) and len(self.groups) > 1:
            self.groups.pop()
        self.frame_limit = self._frame_limit()

    def _frame_limit(self) -> int:
        """An open text is limited by its own rows, so it needs no budget."""
        if not self.stop_degeneration or not self.text.closed:
            return self.room
        # One more than planned: the frame that says that this is the end.
        started = self.attempt.planned_frames + 1 if self.attempt else 0
        return min(self.room, max(started, frame_budget(len(self.text), self.language)))


def _faded_in(pcm: Pcm) -> Pcm:
    """Without the step from silence to a codec's first sample, which clicks at a joint."""
    ramp = np.linspace(0, 1, FADE_SAMPLES, dtype=np.float32)
    return np.concatenate([(pcm[:FADE_SAMPLES] * ramp).astype(np.int16), pcm[FADE_SAMPLES:]])


@dataclass(eq=False)
class Attempt:
    """One try at a sequence, in one slot. Planned counts run ahead of results."""

    sequence: Sequence
    slot: int
    prompt: Prompt
    admitted: float
    prefilled: int = 0  # prompt rows planned
    planned_frames: int = 0
    planned_codec_frames: int = 0
    schedule_index: int = -1  # of the last chunk in the chunk schedule
    planned_at: float = 0.0  # when the last frame was planned
    text_starved: bool = False  # an open text ran out since the last chunk
    total_frames: int | None = None  # once the end is known
    reason: Reason = "finished"
    decoded_frames: int = 0  # whose audio is here
    codes: list[Codes] = field(default_factory=list)  # frames whose codes are here
    held_chunks: list[Chunk] = field(default_factory=list)  # of a file, until its end
    chunks: int = 0
    prompt_rows: int = field(init=False)
    detector: DegenerationDetector = field(init=False)

    def __post_init__(self) -> None:
        self.planned_at, self.text_starved = self.admitted, self.sequence.starved
        self.prompt_rows = len(self.prompt)
        self.detector = DegenerationDetector(self.sequence.stop_degeneration)

    @property
    def replaced(self) -> bool:
        """Another attempt has taken its place, or its sequence has ended."""
        return self.sequence.attempt is not self

    @property
    def before_first_chunk(self) -> bool:
        return self.sequence.playback.began is None

    @property
    def can_decode(self) -> bool:
        """Whether its next frame may be planned."""
        return (
            self.prefilled == self.prompt_rows
            and self.total_frames is None
            and self.planned_frames < self.sequence.frame_limit
            and self.sequence.text.covers(self.planned_frames + 1)
        )

    @property
    def waits_for_text(self) -> bool:
        return self.total_frames is None and self.sequence.needs_text

    @property
    def flushing(self) -> bool:
        """No frame follows for now: what is left becomes a chunk of its own size."""
        full = self.planned_frames >= self.sequence.frame_limit
        return self.total_frames is not None or full or self.waits_for_text

    @property
    def undecoded_frames(self) -> int:
        """Frames for which no codec decode is planned."""
        frames = self.planned_frames
        if self.total_frames is not None:
            frames = min(frames, self.total_frames)
        return max(0, frames - self.planned_codec_frames)

    @property
    def seconds_in_codec(self) -> float:
        """Audio whose codec decode is planned and not yet here."""
        return max(0, self.planned_codec_frames - self.decoded_frames) * FRAME_SECONDS

    @property
    def complete(self) -> bool:
        return self.total_frames is not None and self.decoded_frames >= self.total_frames

    @property
    def early(self) -> bool:
        """It ended by itself, with too few frames for its text."""
        letters = self.sequence.text.letters
        return self.reason == "finished" and ended_too_early(len(self.codes), letters)

    def stop_at(self, frames: int, reason: Reason) -> None:
        self.total_frames, self.reason = frames, reason

    def add_frame(self, codes: Codes, ended: bool) -> None:
        """Codes from the device; what comes after the end is no speech."""
        if self.total_frames is not None:
            return
        self.codes.append(codes)
        count = len(self.codes)
        if ended:
            self.stop_at(count, "finished")
        elif self.detector.check_codes(codes):
            self.stop_at(count, "runaway")
        elif count >= self.sequence.frame_limit:
            self.stop_at(count, "length" if count >= self.sequence.room else "runaway")

    def add_audio(self, start: int, pcm: Pcm) -> Chunk | None:
        """Audio of the frames from `start` on, cut where the speech ends."""
        stop = min(start + len(pcm) // FRAME_SAMPLES, len(self.codes))
        stop = stop if self.total_frames is None else min(stop, self.total_frames)
        if stop <= start:
            return None
        pcm = pcm[: (stop - start) * FRAME_SAMPLES]
        self.decoded_frames = stop
        if self.detector.check_audio(pcm) and self.total_frames is None:
            self.stop_at(stop, "runaway")
        self.chunks += 1
        return Chunk(self.chunks - 1, pcm, np.stack(self.codes[start:stop]))
