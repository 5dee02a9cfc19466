"""A request in flight, and its attempts.

A `Sequence` is a request being generated. A text that is longer than the checkpoint speaks well in
one run is generated in groups of sentences, one after another. An `Attempt` is one try at a group
in a slot: a file that degenerates gets a second one. Counters only: no tensors, threads or clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from engine.messages import Message
from engine.plan import Prompt, ResolvedSampling
from engine.requests.degeneration import DegenerationDetector, ended_too_early, frame_budget
from engine.types import FRAME_SAMPLES, FRAME_SECONDS, Chunk, Codes, EarlyStart, Pcm, Reason

UNLIMITED = 1 << 30  # positions
FADE_SAMPLES = 120  # 5 ms, at the start of each further group


class Playback:
    """Estimates a listener's buffer, assuming that playback began with the first chunk.

    Gaps are counted, and playback resumes after them.
    """

    def __init__(self) -> None:
        self.began: float | None = None  # when the first chunk was delivered
        self.delivered = 0.0  # seconds of audio
        self.gaps = 0  # times the audio ran out in the middle
        self._until = 0.0  # when the delivered audio has been played

    def deliver(self, seconds: float, now: float, excused: bool = False) -> None:
        """`excused`: the chunk is late because the request's text was late."""
        if self.began is None:
            self.began = self._until = now
        if now > self._until:
            self.gaps += not excused
            self._until = now
        self._until += seconds
        self.delivered += seconds

    def lead(self, now: float) -> float:
        """Seconds of audio delivered and not yet played."""
        return max(0.0, self._until - now) if self.began is not None else 0.0


@dataclass(frozen=True)
class TextPiece:
    """Text that is appended to the last group of a sequence."""

    ids: tuple[int, ...]
    letters: int = 0  # see `text_groups.letters`
    ends_group: bool = False  # later text belongs to another group
    ends_text: bool = False  # no text follows


class TextBuffer:
    """The text of one group as ids; open text grows until it is closed.

    In the streamed layout each frame consumes one text row, so a frame must not be decoded before
    its row is known.
    """

    def __init__(self, prompt: Prompt, letters: int = 0) -> None:
        self._prompt = prompt  # of this group: a text may change its voice between groups
        reference = prompt.reference
        self._ids = list(prompt.text_ids)
        self._reference = len(reference.text_ids) if reference else 0
        self._prompt_rows = 1 + (len(reference.codes) if reference else 0)  # rows that consume text
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
        """Whether there is text for the prompt rows and this many frames."""
        return self.closed or self._reference + len(self._ids) >= self._prompt_rows + frames

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self._ids)

    def complete(self) -> Prompt:
        """The prompt with all text so far."""
        self.mark_sent()
        return replace(self._prompt, text_ids=self.ids, open_text=not self.closed)

    @property
    def rows(self) -> int:
        """Rows of the prompt with all text so far."""
        return len(replace(self._prompt, text_ids=self.ids))

    def unsent(self) -> tuple[tuple[int, ...], bool] | None:
        """Ids that the worker does not have, and whether the text is closed after them."""
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
    max_frames: int  # the request's limit
    letters: int = 0  # of the first group, see `text_groups.letters`
    max_positions: int = UNLIMITED  # of a slot
    live: bool = True
    early_start: EarlyStart = "off"
    stop_degeneration: bool = True
    ignore_end: bool = False
    notices: tuple[Message, ...] = ()  # what its listener should know of the text
    patience: float = 0.0  # seconds by which later requests may overtake it
    retried: bool = False  # the current group
    delivered: int = 0  # frames
    made: int = 0  # frames, with those that are held back
    chunks: int = 0  # delivered
    attempt: Attempt | None = None
    placed: bool = False  # it has a slot in another process
    left: bool = False  # it was cancelled, and its end is on the way
    position: int | None = None  # in the waiting queue; None: not waiting
    estimate: float = 0.0  # seconds until it gets a slot
    playback: Playback = field(default_factory=Playback)
    groups: deque[TextBuffer] = field(init=False)  # the first one is current
    token_count: int = field(init=False)  # of the whole text so far
    frame_limit: int = field(init=False)  # frames after which the group is stopped
    text_changed: float = field(init=False)  # when text was last appended
    starved: bool = False  # the group had no text yet when the one before ended
    reason: Reason = "finished"  # of the first group that did not finish normally
    _first_seed: int = field(init=False)
    frames_before: int = 0  # frames of the groups before this one

    def __post_init__(self) -> None:
        self.groups = deque([TextBuffer(self.prompt, self.letters)])
        self.token_count = len(self.prompt.text_ids)
        self._first_seed = self.seed
        self.frame_limit = self._frame_limit()
        self.text_changed = self.arrived

    @property
    def text(self) -> TextBuffer:
        """The current group's text."""
        return self.groups[0]

    @property
    def reference_frames(self) -> int:
        """Frames of the recording that its prompt continues."""
        return len(self.prompt.reference.codes) if self.prompt.reference else 0

    @property
    def text_is_open(self) -> bool:
        """Whether more text may come, for this group or for later ones."""
        return not self.groups[-1].closed

    @property
    def turn(self) -> float:
        """The sort key in the waiting queue: the smallest goes first."""
        return self.arrived + self.patience

    @property
    def continues(self) -> bool:
        """Whether it is between two groups of its text, and its listener hears it already."""
        return self.live and self.frames_before > 0

    def hurried(self, now: float, spare: float) -> bool:
        """Whether its listener waits for its sound, or it is generated at less than `spare` times
        real time. Text that is still written may be what is late."""
        if not self.live or self.left:
            return False
        if self.playback.began is None:
            return self.text.covers(0)
        late = self.playback.delivered < spare * (now - self.playback.began)
        return late and not self.text_is_open

    @property
    def runs(self) -> bool:
        """Whether it has a slot, or gets the next one as its listener hears it already."""
        return self.attempt is not None or self.continues or self.placed

    @property
    def needs_text(self) -> bool:
        """Whether it cannot continue without more text."""
        return not self.text.covers(self.attempt.planned_frames + 1 if self.attempt else 0)

    @property
    def room(self) -> int:
        """Frames left for the group, by its slot and by the request's limit."""
        behind = self.max_positions - self.text.rows
        return min(behind, self.max_frames - self.frames_before)

    def deliver(self, chunk: Chunk, now: float, excused: bool, last: bool = False) -> Chunk:
        """The chunk as it is delivered, numbered across all groups. `last`: of its group."""
        self.playback.deliver(chunk.seconds, now, excused)
        self.delivered += chunk.frames
        pcm = _faded_in(chunk.pcm) if chunk.index == 0 and self.frames_before > 0 else chunk.pcm
        if last and len(self.groups) > 1:
            pcm = _faded_in(pcm[::-1])[::-1]
        self.chunks += 1
        return replace(chunk, index=self.chunks - 1, pcm=pcm)

    def add_group(self, prompt: Prompt, letters: int) -> None:
        """Append a group to a complete text; its prompt may have another voice."""
        self.groups.append(TextBuffer(prompt, letters))
        self.token_count += len(prompt.text_ids)

    def end_group(self, reason: Reason) -> bool:
        """End the current group; whether another one follows."""
        if self.reason == "finished":
            self.reason = reason
        first, self.frames_before = self.frames_before == 0, self.delivered
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
        """Switch to another seed, derived from the first so that results stay reproducible."""
        self.retried, self.made = True, self.frames_before
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
        if last is self.text:  # text of a later group leaves the limit of this one
            self.frame_limit = self._frame_limit()

    def _frame_limit(self) -> int:
        """Open text is limited by its rows, so it needs no budget."""
        if not self.stop_degeneration or not self.text.closed:
            return self.room
        # One more frame than the limit: end of speech may be sampled with it.
        started = self.attempt.planned_frames + 1 if self.attempt else 0
        return min(self.room, max(started, frame_budget(len(self.text), self.language)))


def _faded_in(pcm: Pcm) -> Pcm:
    """Fade in the first samples; the codec starts with a step that clicks between groups."""
    ramp = np.linspace(0, 1, FADE_SAMPLES, dtype=np.float32)
    return np.concatenate([(pcm[:FADE_SAMPLES] * ramp).astype(np.int16), pcm[FADE_SAMPLES:]])


@dataclass(eq=False)
class Attempt:
    """One try at a group, in one slot. Planned counts run ahead of results."""

    sequence: Sequence
    slot: int
    prompt: Prompt
    admitted: float
    prefilled: int = 0  # prompt rows planned
    planned_frames: int = 0
    planned_codec_frames: int = 0
    schedule_index: int = -1  # of the last chunk in the chunk schedule
    planned_at: float = 0.0  # when the last frame was planned
    text_starved: bool = False  # open text ran out since the last chunk
    total_frames: int | None = None  # once the end is known
    reason: Reason = "finished"
    framed: float = 0.0  # when its first frame was there
    decoded_frames: int = 0  # frames whose audio was received
    codes: list[Codes] = field(default_factory=list)  # of the frames received so far
    held_chunks: list[Chunk] = field(default_factory=list)  # not delivered yet
    begun: bool = False  # some of its chunks were delivered
    loudest: float = 0.0  # of the audio so far, see `pauses`
    chunks: int = 0
    prompt_rows: int = field(init=False)
    detector: DegenerationDetector = field(init=False)

    def __post_init__(self) -> None:
        self.planned_at, self.text_starved = self.admitted, self.sequence.starved
        self.prompt_rows = len(self.prompt)
        self.detector = DegenerationDetector(self.sequence.stop_degeneration)

    @property
    def replaced(self) -> bool:
        """Whether another attempt has replaced it, or its sequence has ended."""
        return self.sequence.attempt is not self

    @property
    def before_first_chunk(self) -> bool:
        return self.sequence.playback.began is None

    @property
    def plays(self) -> bool:
        """Whether its listener has audio."""
        return not self.before_first_chunk

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
        """Whether no frame follows for now, so that the rest is decoded as one chunk."""
        full = self.planned_frames >= self.sequence.frame_limit
        return self.total_frames is not None or full or self.waits_for_text

    @property
    def undecoded_frames(self) -> int:
        """Frames without a planned codec decode."""
        frames = self.planned_frames
        if self.total_frames is not None:
            frames = min(frames, self.total_frames)
        return max(0, frames - self.planned_codec_frames)

    @property
    def seconds_in_codec(self) -> float:
        """Seconds of audio whose codec decode is planned and not received."""
        return max(0, self.planned_codec_frames - self.decoded_frames) * FRAME_SECONDS

    @property
    def held_seconds(self) -> float:
        """Seconds of audio that is not delivered yet."""
        return sum(chunk.seconds for chunk in self.held_chunks)

    @property
    def complete(self) -> bool:
        return self.total_frames is not None and self.decoded_frames >= self.total_frames

    @property
    def early(self) -> bool:
        """Whether it sampled end of speech with too few frames for its text."""
        letters = self.sequence.text.letters
        return self.reason == "finished" and ended_too_early(len(self.codes), letters)

    def stop_at(self, frames: int, reason: Reason) -> None:
        self.total_frames, self.reason = frames, reason

    def add_frame(self, codes: Codes, ended: bool) -> None:
        """Add codes from the device; those after the end of speech are dropped."""
        if self.total_frames is not None:
            return
        self.codes.append(codes)
        count = len(self.codes)
        if not self.replaced:
            self.sequence.made = self.sequence.frames_before + count
        if ended:
            self.stop_at(count, "finished")
        elif self.detector.check_codes(codes):
            self.stop_at(count, "runaway")
        elif count >= self.sequence.frame_limit:
            self.stop_at(count, "length" if count >= self.sequence.room else "runaway")

    def add_audio(self, start: int, pcm: Pcm, coming: Codes | None = None) -> Chunk | None:
        """Add audio of the frames from `start` on, cut at the end of speech, unless it was added.
        `coming`: codes of a frame that is added later."""
        codes = self.codes if coming is None else [*self.codes, coming]
        stop = min(start + len(pcm) // FRAME_SAMPLES, len(codes))
        stop = stop if self.total_frames is None else min(stop, self.total_frames)
        if stop <= max(start, self.decoded_frames):
            return None
        pcm = pcm[: (stop - start) * FRAME_SAMPLES]
        self.decoded_frames = stop
        if self.detector.check_audio(pcm) and self.total_frames is None:
            self.stop_at(stop, "runaway")
        self.chunks += 1
        return Chunk(self.chunks - 1, pcm, np.stack(codes[start:stop]))
