"""The music under a script, sample by sample beside its speech.

    Music ── bed(place) ─▶ Bed ── under(line, speech) ─▶ the music at these samples
                                  tail() ─▶ what is heard of it after the last line

Speech goes in once, in order, in blocks of any size; the same speech has the same music, whether it
is exported or played while it is made. Begins with a cue's first line, fades after its last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from engine import SAMPLE_RATE, InvalidAudio, InvalidSetting, Pcm
from studio.scripts.line_audio import LineAudio
from studio.scripts.model import Script
from studio.scripts.music.cue import Cue, lines_under
from studio.scripts.music.ducker import RECALLED, Depths, Ducker
from studio.scripts.music.reel import Reel, Samples, eased
from studio.scripts.timeline import Span, Timeline, silence_of, sound_of

REFERENCE = -19.0  # LUFS of speech, which a cue's level is relative to
MOST_GAIN = 30.0  # dB; a sound that needs more is silence
_BLOCK = SAMPLE_RATE  # samples of a tail at once


@dataclass(frozen=True, eq=False)
class Music:
    """The cues of a script, with their sounds."""

    cues: Sequence[Cue]
    script: Script
    sounds: LineAudio

    def __bool__(self) -> bool:
        return bool(self.cues)

    @property
    def missing(self) -> tuple[Cue, ...]:
        """Cues whose sound is not there."""
        return tuple(cue for cue in self.cues if not self.sounds.samples(cue.sound))

    def check(self) -> None:
        """Raises InvalidSetting where a sound is missing."""
        for cue in self.missing:
            raise InvalidSetting(
                "The sound of the music “{name}” is not there. Upload it again, or remove it.",
                name=cue.name,
            )

    def bed(self, timeline: Timeline | None = None, place: int = 0) -> Bed:
        """The music from the line at `place` on; `timeline`: of what is before it."""
        numbers = {line.id: place for place, line in enumerate(self.script.lines)}
        tracks: list[_Track] = []
        for cue in self.cues:
            with suppress(InvalidAudio):  # shown with the cue, and reported by an export
                if places := lines_under(cue, self.script):
                    fade_out = round(cue.fade_out * SAMPLE_RATE)
                    reel = Reel(self.sounds.path(cue.sound), cue.loop, fade_out)
                    tracks.append(_Track(cue, places, reel))
        bed = Bed(tracks, numbers)
        if timeline and place:
            bed.recall(timeline, place, self.sounds)
        return bed


@dataclass(eq=False)
class _Track:
    """A cue while it is mixed; where it begins and ends is known when its lines are heard."""

    cue: Cue
    places: range
    reel: Reel
    begin: int | None = None
    end: int | None = None
    gain: float = field(init=False)

    def __post_init__(self) -> None:
        level = min(MOST_GAIN, REFERENCE - self.cue.loudness) + self.cue.level
        self.gain = 10 ** (level / 20)

    @property
    def over(self) -> float:
        """The sample at which it has faded out."""
        if self.end is None:
            return np.inf
        return self.end + round(self.cue.fade_out * SAMPLE_RATE)

    def reach(self, place: int, position: int, spoken: bool) -> None:
        """The line at `place` has come; `spoken`: its sound is over, its pause begins."""
        if self.begin is None and place in self.places:
            self.begin = position
        last = self.places[-1]
        passed = place > last or (place == last and spoken)
        if self.begin is not None and self.end is None and passed:
            self.end = position

    def sound(self, position: int, depths: Depths) -> Samples:
        """Its samples from `position` on."""
        count = len(depths)
        if self.begin is None or position >= self.over:
            return np.zeros(count)
        at = np.arange(position, position + count)
        fade_in, fade_out = (
            round(each * SAMPLE_RATE) for each in (self.cue.fade_in, self.cue.fade_out)
        )
        sound = self.reel.read(position - self.begin, count) * self.gain
        if position - self.begin < fade_in:
            sound = sound * eased((at - self.begin) / fade_in)
        if self.end is not None:
            share = (self.end - at) / fade_out + 1 if fade_out else np.zeros(count)
            sound = sound * eased(share)
        if self.cue.ducking:
            smooth = np.square(depths) * (3 - 2 * depths)
            sound = sound * 10 ** (-self.cue.ducking / 20 * smooth)
        return sound


class Bed:
    """One listener. `numbers`: the place of each line by id."""

    def __init__(self, tracks: Sequence[_Track], numbers: dict[int, int]) -> None:
        self._tracks, self._numbers = tracks, numbers
        self._ducker = Ducker()
        self._position = 0

    def under(self, line: int, speech: Pcm, spoken: bool = False) -> Samples:
        """The music under speech of a line; `spoken`: under the pause after it."""
        place = self._numbers.get(line)
        if place is not None:  # else it was added while others are heard
            for track in self._tracks:
                track.reach(place, self._position, spoken)
        return self._mixed(speech)

    def tail(self) -> Iterator[Samples]:
        """The music after the last line, until it has faded out."""
        for track in self._tracks:
            track.reach(len(self._numbers), self._position, True)
        last = max((track.over for track in self._tracks if track.begin is not None), default=0)
        while self._position < last:
            count = int(min(_BLOCK, last - self._position))
            yield self._mixed(np.zeros(count, np.int16))

    def jump(self, position: int) -> None:
        """Go to another position, without what was before it."""
        if position != self._position:
            self._position, self._ducker = position, Ducker(position)

    def recall(self, timeline: Timeline, place: int, sounds: LineAudio) -> None:
        """Go to the line at `place` as if all before it had been heard."""
        for number, span in enumerate(timeline.spans[:place]):
            for track in self._tracks:
                track.reach(number, span.start, False)
                if span.key:
                    track.reach(number, span.end, True)
        self._position = timeline.spans[place].start
        heard = _before(timeline.spans[:place], sounds)
        self._ducker = Ducker(self._position - len(heard))
        self._ducker.feed(heard)

    def _mixed(self, speech: Pcm) -> Samples:
        depths = self._ducker.feed(speech)
        mixed = np.zeros(len(speech))
        for track in self._tracks:
            mixed += track.sound(self._position, depths)
        self._position += len(speech)
        return mixed


def _before(spans: Sequence[Span], sounds: LineAudio) -> Pcm:
    """The last RECALLED samples of some spans."""
    parts: list[Pcm] = []
    size = 0
    for span in reversed(spans):
        if size >= RECALLED:
            break
        parts += [*reversed([*silence_of(span)]), sound_of(span, sounds)]
        size = sum(map(len, parts))
    whole = np.concatenate([np.zeros(0, np.int16), *reversed(parts)])
    return whole[-RECALLED:]
