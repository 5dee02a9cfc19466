"""The whole, its subtitles and its chapters agree, because they are one timeline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pysubs2
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import SAMPLE_RATE, InvalidSetting, Pcm, Preset
from studio.scripts.captions import captions, chapter_list, srt, vtt
from studio.scripts.export import export_file, export_lines
from studio.scripts.importers.passages import Passage, build
from studio.scripts.line_audio import LineAudio
from studio.scripts.line_requests import Delivery, Job, plan
from studio.scripts.loudness import CEILING, WANTED, loudness_gains, loudness_of
from studio.scripts.model import Script
from studio.scripts.pauses import Pauses
from studio.scripts.timeline import Timeline, blocks, build_timeline, missing

TEXTS = st.sampled_from(
    [
        "A line of a common length is said.",
        "One that goes on & on, with <tags>, and --> arrows, until it is far too long for a single "
        "caption on the screen, so that it must be shown in two or even three parts.",
        "这是一句用中文写的话，没有空格，可是也要显示在屏幕上。",
        "Wait here [pause 1.5s] and go on then.",
        "***",
    ]
)
PASSAGES = st.lists(
    st.builds(Passage, TEXTS, st.sampled_from(["", "Anna", "Ben"]), heading=st.booleans()),
    min_size=1,
    max_size=8,
)


@dataclass
class Spoken:
    """A script with a sound of some length for every line."""

    timeline: Timeline
    sounds: LineAudio
    jobs: tuple[Job, ...]


def spoken(folder: Path, passages: list[Passage], seed: int = 0) -> Spoken:
    script = build([*passages, Passage("And this is the end of it all.", "Ben")])
    voices = {speaker: Preset(speaker or "ryan") for speaker in script.speakers}
    jobs = plan(script, voices, Delivery(pauses=Pauses(paragraph=0.123456)))
    random, sounds = np.random.default_rng(seed), LineAudio(folder)
    for key in {job.key for job in jobs if job.key}:
        sounds.keep(key, random.integers(-3000, 3000, random.integers(1, 90_000)).astype(np.int16))
    return Spoken(build_timeline(script, jobs, sounds), sounds, jobs)


def again(each: Spoken) -> Timeline:
    """The timeline over the sounds that are there now."""
    lines = [span.line for span in each.timeline.spans]
    return build_timeline(Script(lines=tuple(lines)), each.jobs, each.sounds)


def whole(each: Spoken) -> Pcm:
    return np.concatenate(list(blocks(each.timeline, each.sounds)))


@settings(max_examples=25, deadline=None)
@given(PASSAGES, st.integers(0, 2**32))
def test_times_rise_and_match_the_sound(
    tmp_path_factory: pytest.TempPathFactory, passages: list[Passage], seed: int
) -> None:
    each = spoken(tmp_path_factory.mktemp("sounds"), passages, seed)
    pcm, timeline = whole(each), each.timeline
    assert len(pcm) == timeline.samples
    silent = np.ones(len(pcm), bool)
    for span in timeline.heard:
        np.testing.assert_array_equal(pcm[span.start : span.end], each.sounds.read(span.key))
        silent[span.start : span.end] = False
    assert not np.any(pcm[silent])
    shown = captions(timeline)
    times = [moment for caption in shown for moment in (caption.start, caption.end)]
    assert times == sorted(times)
    for span in timeline.heard:
        own = [c for c in shown if span.start * 1000 // SAMPLE_RATE <= c.start]
        own = [c for c in own if c.end <= span.end * 1000 // SAMPLE_RATE]
        assert "".join("".join(c.text for c in own).split()) == "".join(span.line.text.split())
        assert own[0].start == span.start * 1000 // SAMPLE_RATE
        assert own[-1].end == span.end * 1000 // SAMPLE_RATE
    chapters = timeline.chapters
    assert chapters[0].start == 0
    assert chapters[-1].end == timeline.samples
    assert [each.end for each in chapters[:-1]] == [each.start for each in chapters[1:]]


@settings(max_examples=25, deadline=None)
@given(PASSAGES)
def test_subtitle_files_say_what_they_should_to_another_reader(
    tmp_path_factory: pytest.TempPathFactory, passages: list[Passage]
) -> None:
    each = spoken(tmp_path_factory.mktemp("sounds"), passages)
    shown = captions(each.timeline)
    for text, kind in ((srt(each.timeline), "srt"), (vtt(each.timeline), "vtt")):
        events = list(pysubs2.SSAFile.from_string(text, format_=kind, keep_html_tags=True))
        assert [(e.start, e.end) for e in events] == [(c.start, c.end) for c in shown]
    assert srt(each.timeline).count("-->") == vtt(each.timeline).count("-->") == len(shown)
    assert max(len(row) for row in srt(each.timeline).splitlines() if row.isascii()) <= 50


def test_subtitle_files_as_they_are_written(tmp_path: Path) -> None:
    each = spoken(tmp_path, [Passage("Where & when <shall> we meet?", "Anna")])
    first = each.timeline.heard[0]
    seconds = first.samples * 1000 // SAMPLE_RATE
    end = f"00:00:{seconds // 1000:02}"
    assert srt(each.timeline).startswith(
        f"1\n00:00:00,000 --> {end},{seconds % 1000:03}\nAnna: Where & when <shall> we meet?\n"
    )
    assert vtt(each.timeline).startswith(
        f"WEBVTT\n\n00:00:00.000 --> {end}.{seconds % 1000:03}\n"
        "<v Anna>Where &amp; when &lt;shall&gt; we meet?\n"
    )


def test_chapter_lists(tmp_path: Path) -> None:
    passages = [
        Passage("Before it all begins."),
        Passage("The Storm = #1", heading=True),
        Passage("It rained for a week [pause 60s]"),
        Passage("The Sun", heading=True),
    ]
    timeline = spoken(tmp_path, passages).timeline
    rows = chapter_list(timeline).splitlines()
    assert rows[0] == "0:00:00 Beginning"
    assert [row.split(" ", 1)[1] for row in rows] == ["Beginning", "The Storm = #1", "The Sun"]
    last = timeline.chapters[2].start // SAMPLE_RATE
    assert rows[2].startswith(f"0:{last // 60:02}:{last % 60:02} ")


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".mp3", ".ogg"])
def test_one_file_is_as_long_as_the_timeline(tmp_path: Path, suffix: str) -> None:
    each = spoken(tmp_path / "sounds", [Passage("A line of a common length is said.", "Anna")] * 3)
    told: list[float] = []
    path = export_file(tmp_path / f"all{suffix}", each.timeline, each.sounds, tell=told.append)
    pcm, rate = soundfile.read(path, dtype="int16")
    assert rate == SAMPLE_RATE
    assert told == sorted(told)
    assert told[-1] == 1.0
    if suffix in (".wav", ".flac"):
        np.testing.assert_array_equal(pcm, whole(each))
    else:
        assert abs(len(pcm) - each.timeline.samples) < 0.1 * SAMPLE_RATE


def test_one_file_a_line_with_texts(tmp_path: Path) -> None:
    each = spoken(tmp_path / "sounds", [Passage("Where is it?/..\\", "Anna"), Passage("***")])
    path = export_lines(
        tmp_path / "lines.zip", each.timeline, each.sounds, texts={"../all.srt": "x"}
    )
    with ZipFile(path) as archive:
        assert archive.namelist() == [
            "0001-anna-where-is-it.wav",
            "0002-ben-and-this-is-the-end-of-it-all.wav",
            "all.srt",
        ]
        for span, name in zip(each.timeline.heard, archive.namelist(), strict=False):
            with archive.open(name) as file:
                pcm, _ = soundfile.read(file, dtype="int16")
            np.testing.assert_array_equal(pcm, each.sounds.read(span.key))


def test_what_is_not_spoken_is_not_exported_unless_asked(tmp_path: Path) -> None:
    each = spoken(tmp_path / "sounds", [Passage("A line that is lost later on.", "Anna")])
    each.sounds.drop_all_but({each.jobs[-1].key})
    timeline = again(each)
    assert [line.speaker for line in missing(timeline)] == ["Anna"]
    with pytest.raises(InvalidSetting, match="1 of 2"):
        export_file(tmp_path / "a.wav", timeline, each.sounds)
    export_file(tmp_path / "a.wav", timeline, each.sounds, partial=True)
    assert soundfile.info(tmp_path / "a.wav").frames == each.sounds.samples(each.jobs[-1].key)
    each.sounds.drop_all_but(())
    with pytest.raises(InvalidSetting, match="not rendered yet"):
        export_file(tmp_path / "b.wav", again(each), each.sounds, partial=True)
    with pytest.raises(InvalidSetting, match="Let its name end in"):
        export_file(tmp_path / "b.exe", each.timeline, each.sounds, partial=True)
    assert not list(tmp_path.glob("b*"))


@pytest.mark.parametrize("peak", [0.05, 0.3])
def test_voices_are_made_equally_loud_and_never_clip(tmp_path: Path, peak: float) -> None:
    each = spoken(tmp_path, [Passage("A quiet voice says this line.", "Anna")])
    random = np.random.default_rng(1)
    scales = dict(zip((span.key for span in each.timeline.heard), (peak, 0.9), strict=True))
    for key, scale in scales.items():
        noise = random.standard_normal(3 * SAMPLE_RATE)
        each.sounds.keep(key, (noise / np.abs(noise).max() * scale * 32767).astype(np.int16))
    timeline = again(each)
    gains = loudness_gains(timeline, each.sounds)
    pcm = np.concatenate(list(blocks(timeline, each.sounds, gains)))
    parts = [pcm[span.start : span.end] for span in timeline.heard]
    first, second = map(loudness_of, parts)
    assert first == pytest.approx(second, abs=0.3)
    assert second <= WANTED + 0.1
    assert max(int(np.abs(part.astype(int)).max()) for part in parts) <= 32768 * 10 ** (
        (CEILING + 0.05) / 20
    )
    assert math.isinf(loudness_of(np.zeros(SAMPLE_RATE, np.int16)))
