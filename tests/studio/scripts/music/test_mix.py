"""The mix of music with speech: same samples in any blocks, fades, loops, ducking."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import SAMPLE_RATE, Pcm
from studio.scripts.line_audio import LineAudio
from studio.scripts.line_requests import Job
from studio.scripts.model import Line, Script
from studio.scripts.music.bed import Bed, Music
from studio.scripts.music.cue import Cue, followed, lines_under
from studio.scripts.music.ducker import HOLD, HOP, RECALLED, RELEASE, Ducker
from studio.scripts.music.reel import CROSSFADE, Reel
from studio.scripts.timeline import Timeline, build_timeline, silence_of, sound_of

RNG = np.random.default_rng(7)
SECOND = SAMPLE_RATE


def noise(seconds: float, level: float = 0.1) -> Pcm:
    return np.rint(RNG.normal(0, 32768 * level, round(seconds * SECOND))).astype(np.int16)


def silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * SECOND), np.int16)


@dataclass
class Case:
    """Three lines of a second, in two chapters, with half a second of pause after each."""

    script: Script
    sounds: LineAudio
    timeline: Timeline

    def bed(self, *cues: Cue, place: int = 0) -> Bed:
        return Music(cues, self.script, self.sounds).bed(self.timeline, place)

    def heard(self, *cues: Cue, place: int = 0, block: int = 5000) -> np.ndarray[Any, Any]:
        """The music from the line at a place to the end, mixed in blocks of one size."""
        bed = self.bed(*cues, place=place)
        parts = []
        for span in self.timeline.spans[place:]:
            pauses = [(each, bool(span.key)) for each in silence_of(span)]
            for pcm, spoken in [(sound_of(span, self.sounds), False), *pauses]:
                for at in range(0, len(pcm), block):
                    parts.append(bed.under(span.line.id, pcm[at : at + block], spoken))
        return np.concatenate([*parts, *bed.tail()])


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    sounds = LineAudio(tmp_path_factory.mktemp("sounds"))
    lines = [Line(id=7, text="One."), Line(id=3, text="Two."), Line(id=5, text="3.", chapter=1)]
    script = Script(lines=tuple(lines), chapters=("", "End"), issued=8)
    for key in ("one", "two", "three"):
        sounds.keep(key, noise(1))
    sounds.keep("music", noise(20))
    sounds.keep("short", noise(2))
    jobs = [
        Job(line.id, key, None, 4, 0.5)
        for line, key in zip(lines, ("one", "two", "three"), strict=True)
    ]
    return Case(script, sounds, build_timeline(script, jobs, sounds))


def cue(**values: Any) -> Cue:
    return Cue(**{"id": 0, "sound": "music", "loudness": -19.0, "level": 0.0, **values})


def plain(**values: Any) -> Cue:
    """A piece of music that is neither faded nor lowered."""
    return cue(**{"ducking": 0.0, "fade_in": 0.0, "fade_out": 0.0, **values})


def test_where_nothing_is_said_the_music_is_its_file(case: Case):
    heard = case.heard(plain())
    end = case.timeline.spans[2].end
    assert np.array_equal(heard[:end], case.sounds.read("music")[:end] / 32768.0)
    assert len(heard) == case.timeline.samples  # without a fade it has no tail
    assert not heard[end:].any()


def test_level_and_loudness_are_decibels(case: Case):
    reference = case.heard(plain())
    assert np.allclose(case.heard(plain(level=-20.0)), reference / 10)
    assert np.allclose(case.heard(plain(loudness=-39.0)), reference * 10)
    assert np.allclose(case.heard(plain(loudness=-90.0)), reference * 10**1.5)  # at most 30 dB


@settings(max_examples=8, deadline=None)
@given(st.integers(500, 40_000), st.booleans(), st.sampled_from(["music", "short"]))
def test_any_size_of_blocks_gives_the_same_samples(case: Case, block: int, loop: bool, sound: str):
    other = cue(id=1, over="lines", first=3, last=5, sound=sound, loop=loop, fade_out=2.0)
    whole, cut = (case.heard(cue(), other, block=size) for size in (10**9, block))
    assert np.allclose(whole, cut, rtol=0, atol=1e-12)


@pytest.mark.parametrize("place", [1, 2])
def test_whoever_begins_in_the_middle_hears_the_same(case: Case, place: int):
    cues = cue(), cue(id=1, over="lines", first=7, last=7, sound="short", fade_out=4.0)
    start = case.timeline.spans[place].start
    assert np.allclose(case.heard(*cues, place=place), case.heard(*cues)[start:], 0, 1e-12)


def test_a_cue_begins_with_its_first_line_and_fades_after_its_last_one(case: Case):
    spans = case.timeline.spans
    heard = case.heard(cue(over="lines", first=3, last=3, ducking=0.0, fade_in=0.5, fade_out=0.8))
    begin, end = spans[1].start, spans[1].end
    assert not heard[:begin].any()
    assert abs(heard[begin]) == 0  # a fade begins at nothing
    music = case.sounds.read("music") / 32768.0
    inner = slice(begin + SECOND // 2, end)
    assert np.array_equal(heard[inner], music[SECOND // 2 : end - begin])
    faded = end + round(0.8 * SECOND)
    last = np.abs(heard[faded - 240 : faded]).max()
    assert 0 < last < 0.001  # and ends at nothing
    assert not heard[faded:].any()


def test_chapters_and_the_tail(case: Case):
    spans = case.timeline.spans
    heard = case.heard(cue(over="chapter", first=5, fade_out=3.0))
    assert not heard[: spans[2].start].any()
    assert len(heard) == spans[2].end + 3 * SECOND
    assert heard[-SECOND:].any()


def test_a_short_sound_is_looped_without_a_step(tmp_path: Path):
    sounds = LineAudio(tmp_path)
    tone = np.sin(np.arange(2 * SECOND) * 2 * np.pi * 220.3 / SECOND)
    sounds.keep("tone", np.rint(8000 * tone).astype(np.int16))
    heard = Reel(sounds.path("tone"), loop=True).read(0, 10 * SECOND)
    step = np.abs(np.diff(heard)).max()
    assert step <= 1.6 * np.abs(np.diff(heard[:SECOND])).max()  # of two tones at once: √2
    quietest = np.abs(heard).reshape(-1, SECOND // 10).max(axis=1).min()
    assert quietest > 0.01  # no gap
    cross = min(CROSSFADE, SECOND // 2)
    period = 2 * SECOND - cross
    assert np.array_equal(heard[period + cross : 2 * period], heard[cross:period])


def test_a_single_sample_is_heard_once_however_long_the_script(tmp_path: Path):
    sounds = LineAudio(tmp_path)
    sounds.keep("click", np.full(1, 8000, np.int16))
    heard = Reel(sounds.path("click"), loop=True).read(0, 3_600 * SECOND)  # at once, not by samples
    assert heard[0] > 0.2
    assert not heard[1:].any()


def test_what_is_not_looped_ends_faded_out(case: Case):
    reel = Reel(case.sounds.path("short"), loop=False, fade_out=SECOND)
    heard = reel.read(0, 5 * SECOND)
    assert np.array_equal(heard[:SECOND], case.sounds.read("short")[:SECOND] / 32768.0)
    assert 0 < np.abs(heard[2 * SECOND - 240 : 2 * SECOND]).max() < 0.001
    assert not heard[2 * SECOND :].any()


def test_music_is_lowered_under_speech_and_comes_back_in_pauses():
    depths = Ducker().feed(np.concatenate([silence(1), noise(2), silence(4)]))
    assert not depths[:SECOND].any()
    assert (depths[round(1.3 * SECOND) : 3 * SECOND] == 1).all()
    back = 3 * SECOND + (HOLD + 2) * HOP + round(RELEASE * SECOND)
    assert not depths[back:].any()
    assert np.abs(np.diff(depths)).max() < 1e-3  # nothing jumps
    assert not Ducker().feed(noise(1, level=0.001)).any()  # the hiss of a pause is no speech


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 700), max_size=30))
def test_the_depth_is_the_same_in_any_blocks(sizes: list[int]):
    speech = np.concatenate([silence(0.03), noise(0.1), silence(0.9)])
    ducker, at, parts = Ducker(130), 0, []
    for size in [*sizes, len(speech)]:
        parts.append(ducker.feed(speech[at : at + size]))
        at += size
    assert np.array_equal(np.concatenate(parts), Ducker(130).feed(speech))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 1.5)), min_size=1, max_size=8))
def test_the_depth_depends_on_the_latest_speech_alone(parts: list[tuple[bool, float]]):
    before = [noise(length) if loud else silence(length) for loud, length in parts]
    speech = np.concatenate([noise(2), *before])
    after = np.concatenate([silence(0.5), noise(0.4), silence(1)])
    begun = max(0, len(speech) - RECALLED)
    recalled, whole = Ducker(begun), Ducker()
    recalled.feed(speech[begun:])
    whole.feed(speech)
    assert np.array_equal(recalled.feed(after), whole.feed(after))


def test_a_missing_sound_is_told_and_leaves_the_rest(case: Case):
    gone = cue(id=1, sound="gone", name="Rain.mp3")
    music = Music((plain(), gone), case.script, case.sounds)
    assert music.missing == (gone,)
    assert np.array_equal(case.heard(plain(), gone), case.heard(plain()))
    with pytest.raises(Exception, match=r"Rain\.mp3"):
        music.check()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_cues_follow_their_lines(data: st.DataObject):
    """However lines go and move, a cue has lines while there are any, of its own if one is left."""
    size = data.draw(st.integers(1, 8))
    lines = tuple(Line(id=number, text="a", chapter=number // 3) for number in range(size))
    script = Script(lines=lines, chapters=("a", "b", "c"), issued=size)
    over = data.draw(st.sampled_from(["lines", "chapter"]))
    ids = st.integers(0, size - 1)
    changed = cue(over=over, first=data.draw(ids), last=data.draw(ids))
    before = {lines[place].id for place in lines_under(changed, script)}
    left = data.draw(st.permutations(lines))[: data.draw(st.integers(1, size))]
    after = script.model_copy(update={"lines": tuple(left)})
    [kept] = followed((changed,), script, after)
    under = {after.lines[place].id for place in lines_under(kept, after)}
    assert under
    assert not before & {line.id for line in left} or under & before
    assert followed((changed,), script, script) == (changed,)
