"""The whole, its subtitles and its chapters agree, because they are one timeline."""

from __future__ import annotations

import errno
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import av
import numpy as np
import pysubs2
import pytest
import soundfile
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine import SAMPLE_RATE, SOUND_FORMATS, InvalidSetting, Pcm, Preset, TimbreError
from studio.scripts.export import captions as captions_module
from studio.scripts.export.audio_files import AudioFormat, Tags, open_audio
from studio.scripts.export.caption_rows import columns, wrapped
from studio.scripts.export.captions import captions, chapter_list, srt, vtt
from studio.scripts.export.export_files import export_file, export_lines
from studio.scripts.export.limiter import CEILING, Limiter, true_peaks
from studio.scripts.export.loudness import LoudnessMeter, loudness_gains
from studio.scripts.line_audio import LineAudio
from studio.scripts.line_requests import Delivery, Job, plan
from studio.scripts.model import Script
from studio.scripts.pauses import Pauses
from studio.scripts.text.passages import Passage, build
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


def read_audio(path: Path) -> tuple[Pcm, int]:
    """The samples of a file, also of formats that libsndfile cannot read."""
    if path.suffix != ".m4b":
        return soundfile.read(path, dtype="int16")
    with av.open(str(path)) as file:
        frames = [frame.to_ndarray()[0] for frame in file.decode(audio=0)]
        return np.concatenate(frames), file.streams.audio[0].rate


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
        cues = [c for c in shown if span.start * 1000 // SAMPLE_RATE <= c.start]
        cues = [c for c in cues if c.end <= span.end * 1000 // SAMPLE_RATE]
        assert "".join("".join(c.text for c in cues).split()) == "".join(span.line.text.split())
        assert cues[0].start == span.start * 1000 // SAMPLE_RATE
        assert cues[-1].end == span.end * 1000 // SAMPLE_RATE
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
    for text, kind in ((srt(shown), "srt"), (vtt(shown), "vtt")):
        events = list(pysubs2.SSAFile.from_string(text, format_=kind, keep_html_tags=True))
        assert [(e.start, e.end) for e in events] == [(c.start, c.end) for c in shown]
    assert srt(shown).count("-->") == vtt(shown).count("-->") == len(shown)
    assert max(map(columns, srt(shown).splitlines())) <= 42


SPEAKERS = ["", "Anna", "The second gentleman", "A speaker of a very long name indeed", "爱丽丝"]


@given(
    st.lists(st.text("abcdefghij", min_size=1, max_size=12), min_size=1, max_size=40),
    st.sampled_from(SPEAKERS),
)
def test_a_caption_has_two_rows_with_its_speaker(words: list[str], speaker: str) -> None:
    text = " ".join(words)
    assert " ".join(shown_in_two_rows(text, speaker)) == text


@given(
    st.lists(st.text("a中文，。「」é-", min_size=1, max_size=100), min_size=1, max_size=12),
    st.sampled_from(SPEAKERS),
)
@example(["h" * 80], "Anna")
@example(["中" * 80], "爱丽丝")
@example(["，" * 100], "")
def test_a_caption_has_two_rows_in_any_script(words: list[str], speaker: str) -> None:
    parts = shown_in_two_rows(" ".join(words), speaker)
    assert "".join("".join(parts).split()) == "".join(words)


def shown_in_two_rows(text: str, speaker: str) -> list[str]:
    """The parts, none of which is wider or higher than a caption."""
    parts = captions_module._fitting(text, speaker)
    for part in parts:
        rows = captions_module._rows(captions_module._before(speaker) + part).splitlines()
        assert len(rows) <= 2
        assert max(map(columns, rows)) <= 42
    return parts


def test_rows_break_between_characters_and_keep_marks_with_what_they_close() -> None:
    rows = wrapped("他说：「我们明天早上八点在车站见面吧。」她点了点头，没有说话。", 20)
    assert wrapped("우리는 내일 아침 여덟 시에 역에서", 20) == [
        "우리는 내일 아침",
        "여덟 시에 역에서",
    ]
    assert rows == ["他说：「我们明天早上", "八点在车站见面吧。」", "她点了点头，没有说", "话。"]


def test_subtitle_files_as_they_are_written(tmp_path: Path) -> None:
    each = spoken(tmp_path, [Passage("Where & when <shall> we meet?", "Anna")])
    first = each.timeline.heard[0]
    seconds = first.samples * 1000 // SAMPLE_RATE
    end = f"00:00:{seconds // 1000:02}"
    shown = captions(each.timeline)
    assert srt(shown).startswith(
        f"1\n00:00:00,000 --> {end},{seconds % 1000:03}\nAnna: Where & when <shall> we meet?\n"
    )
    assert vtt(shown).startswith(
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


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".mp3", ".ogg", ".m4b"])
def test_one_file_is_as_long_as_the_timeline(tmp_path: Path, suffix: str) -> None:
    each = spoken(tmp_path / "sounds", [Passage("A line of a common length is said.", "Anna")] * 3)
    reports: list[float] = []
    path = export_file(
        tmp_path / f"all{suffix}", each.timeline, each.sounds, on_progress=reports.append
    )
    pcm, rate = read_audio(path)
    assert rate == SAMPLE_RATE
    assert reports == sorted(reports)
    assert reports[-1] == 1.0
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
    each.sounds.drop(each.jobs[0].key)
    timeline = again(each)
    assert [line.speaker for line in missing(timeline)] == ["Anna"]
    with pytest.raises(InvalidSetting, match="1 of 2"):
        export_file(tmp_path / "a.wav", timeline, each.sounds)
    export_file(tmp_path / "a.wav", timeline, each.sounds, partial=True)
    assert soundfile.info(tmp_path / "a.wav").frames == each.sounds.samples(each.jobs[-1].key)
    each.sounds.drop(each.jobs[-1].key)
    with pytest.raises(InvalidSetting, match="not rendered yet"):
        export_file(tmp_path / "b.wav", again(each), each.sounds, partial=True)
    with pytest.raises(InvalidSetting, match="names no sound format"):
        export_file(tmp_path / "b.exe", each.timeline, each.sounds, partial=True)
    assert not list(tmp_path.glob("b*"))


def loudness_of(pcm: Pcm) -> float:
    import pyloudnorm  # which loads half of scipy

    with np.errstate(divide="ignore"):
        return float(pyloudnorm.Meter(SAMPLE_RATE).integrated_loudness(pcm / 32768.0))


def speech_like(seed: int, seconds: float, level: float, clicks: float) -> Pcm:
    """Noise in syllables, with plosives whose peaks are far above its loudness."""
    random = np.random.default_rng(seed)
    count = round(seconds * SAMPLE_RATE)
    time = np.arange(count) / SAMPLE_RATE
    noise = random.standard_normal(count) * np.maximum(0, np.sin(2 * np.pi * 3 * time)) ** 2
    for at in random.integers(0, count - 200, round(2 * seconds)):
        noise[at : at + 200] += clicks * np.hanning(200)
    return np.clip(noise * level * 32767, -32768, 32767).astype(np.int16)


@pytest.mark.parametrize("wanted", [-16.0, -19.0, -23.0])
@pytest.mark.parametrize("clicks", [0.0, 12.0])
def test_every_target_is_met_and_no_peak_is_above_the_ceiling(
    tmp_path: Path, wanted: float, clicks: float
) -> None:
    each = spoken(tmp_path, [Passage("A quiet voice says this line.", "Anna")])
    levels = dict(zip((span.key for span in each.timeline.heard), (0.01, 0.06), strict=True))
    for number, (key, level) in enumerate(levels.items()):
        each.sounds.keep(key, speech_like(number, 6.0, level, clicks))
    timeline = again(each)
    gains = loudness_gains(timeline, each.sounds, wanted)
    path = export_file(tmp_path / "all.wav", timeline, each.sounds, gains=gains)
    pcm, _ = soundfile.read(path, dtype="int16")
    assert len(pcm) == timeline.samples
    assert loudness_of(pcm) == pytest.approx(wanted, abs=0.5)
    first, second = (loudness_of(pcm[span.start : span.end]) for span in timeline.heard)
    assert first == pytest.approx(second, abs=1.0)
    assert true_peaks(pcm / 32768.0).max() <= 10 ** ((CEILING + 0.1) / 20)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 30_000), min_size=1, max_size=8))
def test_limiting_in_pieces_is_limiting_at_once(seed: int, sizes: list[int]) -> None:
    samples = np.random.default_rng(seed).standard_normal(sum(sizes)) * 0.6
    once, pieces = Limiter(), Limiter()
    whole = np.concatenate((once.feed(samples), once.finish()))
    parts = [pieces.feed(part) for part in np.split(samples, np.cumsum(sizes)[:-1])]
    np.testing.assert_allclose(np.concatenate((*parts, pieces.finish())), whole, atol=1e-9)
    assert len(whole) == len(samples)
    assert np.abs(whole).max(initial=0.0) <= 10 ** (CEILING / 20)
    quiet = samples * 0.05
    calm = Limiter()
    np.testing.assert_array_equal(np.concatenate((calm.feed(quiet), calm.finish())), quiet)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.floats(1.0, 6.0), st.integers(500, 40_000))
@example(0, 1.0, 7)
def test_the_meter_agrees_with_pyloudnorm(seed: int, seconds: float, piece: int) -> None:
    pcm = speech_like(seed, seconds, 0.05, 3.0)
    meter = LoudnessMeter()
    for start in range(0, len(pcm), piece):
        meter.feed(pcm[start : start + piece] / 32768.0)
    assert meter.loudness == pytest.approx(loudness_of(pcm), abs=0.3)
    silent = LoudnessMeter()
    silent.feed(np.zeros(SAMPLE_RATE))
    assert math.isinf(silent.loudness)


BOOK = [
    Passage("Before it all begins, a word."),
    Passage("The Storm = #1", heading=True),
    Passage("It rained for a week [pause 2s]"),
    Passage("Die Tür; \\ 门", heading=True),
    Passage("And that was it.", "Ben"),
]


def probed(path: Path) -> dict[str, Any]:
    """What another reader finds in a file: PyAV's demuxer, as ffprobe would tell it."""
    with av.open(str(path)) as file:
        [stream] = file.streams.audio
        samples = sum(frame.samples for frame in file.decode(stream))
        return {
            "codec": stream.codec_context.name,
            "rate": stream.rate,
            "seconds": samples / stream.rate,
            "bits": stream.codec_context.bit_rate or file.bit_rate,
            "tags": dict(file.metadata),
            "chapters": [
                (
                    each["metadata"]["title"],
                    float(each["start"] * each["time_base"]),
                    float(each["end"] * each["time_base"]),
                )
                for each in file.chapters()
            ],
        }


@pytest.mark.parametrize(("kind", "codec"), [("m4b", "aac"), ("mp3", "mp3float")])
@pytest.mark.parametrize("rate", [24_000, 44_100, 48_000])
def test_books_have_chapters_and_tags_that_another_reader_finds(
    tmp_path: Path, kind: str, codec: str, rate: int
) -> None:
    each = spoken(tmp_path / "sounds", BOOK)
    form = AudioFormat(kind, rate, 96)
    tags = Tags("My book: “Öl”", "Ada")
    path = export_file(tmp_path / f"b.{kind}", each.timeline, each.sounds, form=form, tags=tags)
    found = probed(path)
    assert (found["codec"], found["rate"]) == (codec, rate)
    length = each.timeline.samples / SAMPLE_RATE
    assert found["seconds"] == pytest.approx(length, abs=0.15)
    assert 48_000 < found["bits"] < 130_000
    assert found["tags"]["title"] == "My book: “Öl”"
    assert found["tags"]["artist"] == "Ada"
    titles = [title for title, *_ in found["chapters"]]
    assert titles == ["Beginning", "The Storm = #1", "Die Tür; \\ 门"]
    for (_, start, end), one in zip(found["chapters"], each.timeline.chapters, strict=True):
        assert start == pytest.approx(one.start / SAMPLE_RATE, abs=0.01)
        assert end == pytest.approx(one.end / SAMPLE_RATE, abs=0.1)


@pytest.mark.parametrize("kind", sorted(set(SOUND_FORMATS) - {"mp3"}))
def test_other_rates_sound_the_same(tmp_path: Path, kind: str) -> None:
    each = spoken(tmp_path / "sounds", BOOK)
    form = AudioFormat(kind, 48_000)
    path = export_file(tmp_path / f"b.{kind}", each.timeline, each.sounds, form=form)
    pcm, rate = soundfile.read(path)
    assert rate == 48_000
    assert len(pcm) == pytest.approx(2 * each.timeline.samples, abs=100)


@pytest.mark.parametrize(
    ("form", "level"),
    [
        (AudioFormat("mp3"), 0.3),
        (AudioFormat("mp3"), 1.0),
        (AudioFormat("mp3", 44_100, 192), 0.3),
        (AudioFormat("m4b"), 0.3),
        (AudioFormat("ogg"), 0.3),
    ],
)
def test_no_format_changes_the_level(tmp_path: Path, form: AudioFormat, level: float) -> None:
    """LAME lowers all samples by 0.45 dB."""
    wave = np.sin(np.arange(2 * SAMPLE_RATE) * 0.11) * level * 32767
    path = tmp_path / f"level.{form.kind}"
    with open_audio(path, form, Tags()) as file:
        file.write(wave.astype(np.int16))
    with av.open(str(path)) as opened:
        heard = np.concatenate([each.to_ndarray()[0] for each in opened.decode(audio=0)])
    middle = heard[len(heard) // 4 : len(heard) // 2]
    assert 20 * math.log10(np.sqrt(2 * np.mean(middle**2)) / level) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("wrong", [{"kind": "exe"}, {"rate": 1}, {"bitrate": 10**9}])
def test_formats_that_are_not_there_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match="Choose a"):
        AudioFormat(**wrong)


def test_a_full_disk_leaves_no_half_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    each = spoken(tmp_path / "sounds", BOOK)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("studio.scripts.export.audio_files._Encoder.finish", full)
    with pytest.raises(TimbreError, match="full"):
        export_file(tmp_path / "b.m4b", each.timeline, each.sounds)
    assert not list(tmp_path.glob("*b.m4b*"))


def test_an_mp3_of_many_chapters_has_them_all_by_the_rules_of_its_tags(tmp_path: Path) -> None:
    """Before: a list of more than 26 chapters, or a title of 128 bytes, hid all that followed."""
    titles = [f"Chapter {number}. {'It rained. ' * (number % 19)}".strip() for number in range(40)]
    book = [part for title in titles for part in (Passage(title, heading=True), Passage("Rain."))]
    each = spoken(tmp_path / "sounds", book)
    path = export_file(tmp_path / "book.mp3", each.timeline, each.sounds, tags=Tags("T", "A"))
    data = path.read_bytes()
    version, at, found = data[3], 10, list[str]()
    while data[at : at + 4].strip(b"\0") and data[at : at + 2] != b"\xff\xf3":
        bits = 7 if version == 4 else 8  # of a size's bytes
        parts = [byte % (1 << bits) for byte in data[at + 4 : at + 8]]
        size = sum(part << bits * (3 - place) for place, part in enumerate(parts))
        frame = data[at + 10 : at + 10 + size]
        if data[at : at + 4] == b"CHAP":
            title = frame[frame.index(b"TIT2") + 10 :]
            found.append(title[1:].decode({0: "latin-1", 1: "utf-16", 3: "utf-8"}[title[0]]))
        at += 10 + size
    assert [title.rstrip("\0") for title in found] == titles
