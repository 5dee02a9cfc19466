"""Recordings become lines with words, or a sentence says why not; nothing is left half made."""

from __future__ import annotations

import errno
import os
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from engine import InvalidAudio, InvalidSetting, InvalidText, NotSaved, RequestError, TimbreError
from engine.errors import UnknownLanguage
from studio.voices.voice_training import VoiceTraining
from training.voice import judge, segments
from training.voice.job import JobFolder
from training.voice.prepare import Wish, has_consent, make_job, mendable
from training.voice.recordings import LongRecording, measured_recording
from training.voice.segments import cut, segments_of, trimmed
from training.voice.texts import ENGLISH, READ, general_texts, judged_texts
from training.voice.words import word_errors, words_of

RATE = 24_000
WISH = Wish("Ann", "presets/mini", "Ann Lee, my own voice", "english")


def voiced(seconds: float, hertz: float = 120.0, rate: int = RATE) -> np.ndarray:
    """Syllables: a tone with overtones up to 7 kHz, five a second, with a little noise."""
    time = np.arange(round(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * hertz * k * time) / k for k in range(1, int(7_000 / hertz)))
    beat = np.clip(np.sin(2 * np.pi * 2.5 * time) ** 2 - 0.1, 0, 1)
    noise = np.random.default_rng(0).standard_normal(len(time))
    return (0.2 * tone * beat + 1e-4 * noise).astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    noise = np.random.default_rng(1).standard_normal(round(seconds * RATE))
    return (1e-4 * noise).astype(np.float32)


def written(path: Path, wave: np.ndarray, text: str = "", rate: int = RATE) -> Path:
    soundfile.write(path, wave, rate)
    if text:
        path.with_suffix(".txt").write_text(text, "utf-8")
    return path


def spoken(folder: Path, count: int = 8) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        written(folder / f"line{number}.wav", voiced(4.5), ENGLISH[number])
    return folder


def test_lines_have_their_words_and_a_job_is_whole(tmp_path: Path) -> None:
    folder = make_job(tmp_path / "job", WISH, [spoken(tmp_path / "in")])
    job = folder.read()
    assert [line.text for line in job.lines] == list(ENGLISH[:8])
    assert not any(line.doubtful for line in job.lines)
    assert all(4 < line.seconds < 5 for line in job.lines)
    assert job.consent == WISH.consent
    assert all((folder.segments / line.file).is_file() for line in job.lines)


def test_long_recordings_are_cut_at_their_pauses() -> None:
    lengths = (4.0, 5.0, 6.5, 3.5, 7.0)
    parts = [part for seconds in lengths for part in (voiced(seconds), silence(0.6))]
    pieces = list(cut(np.concatenate(parts)))
    assert all(2.5 <= len(piece) / RATE <= 12.3 for piece in pieces)
    assert sum(map(len, pieces)) / RATE == pytest.approx(sum(lengths), abs=2.5)
    for piece in pieces:  # no syllable is cut: both ends are quiet
        ends = np.concatenate((piece[: RATE // 50], piece[-RATE // 50 :]))
        assert np.abs(ends).max() < 0.2 * np.abs(piece).max()
    assert len(trimmed(np.concatenate((silence(1), voiced(2), silence(1))))) / RATE < 2.4


def test_subtitles_and_lists_give_words(tmp_path: Path) -> None:
    sound = np.concatenate((voiced(4), silence(0.5), voiced(4)))
    written(tmp_path / "long.wav", sound)
    times = "1\n00:00:00,000 --> 00:00:04,100\n{}\n\n2\n00:00:04,400 --> 00:00:08,500\n{}\n"
    (tmp_path / "long.srt").write_text(times.format(*ENGLISH[:2]))
    assert [each.text for each in segments_of([tmp_path])] == list(ENGLISH[:2])
    listed = tmp_path / "listed"
    listed.mkdir()
    written(listed / "one.wav", voiced(4))
    (listed / "metadata.csv").write_text(f"one|{ENGLISH[2]}\n")
    assert [each.text for each in segments_of([listed])] == [ENGLISH[2]]
    (found,) = segments_of(
        [written(tmp_path / "heard.wav", voiced(4))], lambda wave: "I heard it, all of it."
    )
    assert (found.text, found.doubtful) == ("I heard it, all of it.", "")


def test_endings_that_are_written_large_give_words_too(tmp_path: Path) -> None:
    short = written(tmp_path / "SHORT.WAV", voiced(4))
    (tmp_path / "SHORT.TXT").write_text(ENGLISH[0])
    long = written(tmp_path / "LONG.WAV", voiced(16))
    cue = f"1\r\n00:00:00,000 --> 00:00:04,100\r\n{ENGLISH[1]}\r\n"
    (tmp_path / "LONG.SRT").write_bytes(cue.encode("utf-8-sig"))
    assert [each.text for each in segments_of([short, long])] == list(ENGLISH[:2])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_of_an_old_archive_is_told_before_all_work(tmp_path: Path) -> None:
    """Before, the job could not be written in the end, hours of recognising later."""
    folder = spoken(tmp_path / "in", 9)
    os.rename(folder / "line0.wav", os.fsencode(folder / "M") + b"\xfcller.wav")  # Latin-1
    with pytest.raises(InvalidAudio, match="Rename M\ufffdller"):
        make_job(tmp_path / "job", WISH, [folder], lambda wave: pytest.fail("it was heard"))


def test_a_list_tells_the_words_of_its_own_folder(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("monday", "tuesday")]
    for folder, text in zip(folders, ENGLISH, strict=False):
        folder.mkdir()
        written(folder / "0001.wav", voiced(4))
        (folder / "metadata.csv").write_text(f"0001|{text}\n")
    assert [each.text for each in segments_of(folders)] == list(ENGLISH[:2])
    bare = tmp_path / "wavs"  # beside its list, as data sets have it
    bare.mkdir()
    written(bare / "0001.wav", voiced(4))
    assert [each.text for each in segments_of([folders[1], bare])] == [ENGLISH[1]] * 2


def refused(path: Path, what: type[TimbreError], says: str, **wish: str) -> None:
    job = path.parent / "job"
    with pytest.raises(what, match=says):
        make_job(job, Wish(**{**vars(WISH), **wish}), [path])
    assert not (job / "job.json").exists()


def test_what_no_voice_can_be_learned_from_is_told(tmp_path: Path) -> None:
    noise = 0.1 * np.random.default_rng(2).standard_normal(10 * RATE).astype(np.float32)
    refused(written(tmp_path / "noise.wav", noise, "words"), InvalidAudio, "too noisy")
    low = voiced(5, rate=8_000)
    refused(written(tmp_path / "phone.wav", low, "words", 8_000), InvalidAudio, "telephone")
    slow = np.arange(5 * RATE) / RATE
    dull = sum(np.sin(2 * np.pi * 200 * k * slow) / k for k in range(1, 15))
    dull = (0.2 * dull * np.clip(np.sin(2 * np.pi * 2.5 * slow) ** 2 - 0.1, 0, 1)).astype("f4")
    quiet = np.cumsum(silence(5)).astype(np.float32) * 0
    shortened = written(tmp_path / "dull.wav", dull + quiet, "words")
    refused(shortened, InvalidAudio, "sounds like a telephone")
    dull += (0.02 * np.sin(2 * np.pi * 3_980 * slow)).astype("f4")  # all that 8,000 Hz carry
    refused(written(tmp_path / "full.wav", dull, "words"), InvalidAudio, "sounds like a telephone")
    refused(written(tmp_path / "mute.wav", silence(5) * 0, "words"), InvalidAudio, "silent")
    hardly = voiced(5) * np.float32(0.0015 / np.abs(voiced(5)).max())  # louder than silence a peak
    refused(written(tmp_path / "hardly.wav", hardly, "words"), InvalidAudio, "silent")
    refused(written(tmp_path / "bare.wav", voiced(5)), InvalidText, "What is said in bare.wav")
    long = written(tmp_path / "long.wav", np.tile(voiced(5), 6), "one text")
    refused(long, InvalidText, "too long for one text")
    (tmp_path / "text.wav").write_text("no sound")
    refused(tmp_path / "text.wav", InvalidAudio, "no sound")
    refused(tmp_path / "gone.wav", InvalidAudio, "cannot be read")
    bare = tmp_path / "all bare"
    bare.mkdir()
    for number in range(3):
        written(bare / f"{number}.wav", voiced(5))
    refused(bare, InvalidAudio, "None of these 3 .* first: What is said in 0.wav")
    refused(spoken(tmp_path / "few", 3), InvalidSetting, "at least 30 are needed")
    refused(spoken(tmp_path / "in"), RequestError, "whose voice", consent="")


def test_recordings_that_are_of_no_use_are_set_aside_beside_good_ones(tmp_path: Path) -> None:
    folder = spoken(tmp_path / "in", 9)
    written(folder / "line3.wav", silence(5) * 0)
    (folder / "line4.txt").unlink()
    job = make_job(tmp_path / "other", WISH, [folder])
    assert [line.file for line in job.read().lines if line.doubtful] == ["0003.wav", "0004.wav"]
    assert [line.reason.split(".")[0] for line in job.left_out] == [
        "line3",
        "What is said in line4",
    ]
    for number in range(5, 9):
        (folder / f"line{number}.txt").unlink()
    refused(folder, InvalidSetting, r"6 lines were set aside\. The first: line3.wav is silent")


def test_a_list_from_before_tells_which_lines_are_left_out(tmp_path: Path) -> None:
    folder = make_job(tmp_path / "job", WISH, [spoken(tmp_path / "in")])
    (folder.path / "left-out.json").unlink()
    (folder.path / "left-out.txt").write_text("a.wav (No): are {these} its words?\nb.wav: silent\n")
    reasons = [line.reason for line in folder.left_out]
    assert reasons == ["a.wav (No): are {these} its words?", "b.wav: silent"]
    assert mendable(folder) == []
    folder.leave_out(folder.left_out)
    assert [line.reason for line in folder.left_out] == reasons


def test_one_word_again_and_again_is_no_speech_to_learn_from(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(10):
        written(folder / f"{number}.wav", voiced(4.5), "banana " * 6)
    refused(folder, InvalidSetting, "Only 1 different words")


def test_words_that_cannot_be_a_lines_by_their_length_set_it_aside(tmp_path: Path) -> None:
    folder = spoken(tmp_path / "in", 9)
    (folder / "line3.txt").write_text(" ".join(ENGLISH[:8]))
    job = make_job(tmp_path / "job", WISH, [folder]).read()
    assert [line.file for line in job.lines if line.doubtful] == ["0003.wav"]
    assert "are these its words" in job.lines[3].doubtful


def test_lines_that_are_set_aside_take_no_disk(tmp_path: Path) -> None:
    """Subtitles whose every cue is the whole recording would write it once for each."""
    folder = spoken(tmp_path / "in")
    written(folder / "long.wav", np.tile(voiced(5), 6))
    cues = (f"{n}\n00:00:00,000 --> 00:00:30,000\n{ENGLISH[n]}\n" for n in range(1, 20))
    (folder / "long.srt").write_text("\n".join(cues))
    job = make_job(tmp_path / "job", WISH, [folder])
    doubtful = {line.file for line in job.read().lines if line.doubtful}
    assert len(doubtful) == 19
    assert not doubtful & {path.name for path in job.segments.iterdir()}


def test_hours_of_recordings_are_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour takes a third of a gigabyte, of the process that others are spoken to by."""
    waves, most = list[weakref.ref[np.ndarray]](), list[int]()

    def measured(path: Path) -> LongRecording:
        recording = measured_recording(path)
        waves.append(weakref.ref(recording.waveform))
        most.append(sum(wave() is not None for wave in waves))
        return recording

    monkeypatch.setattr(segments, "measured_recording", measured)
    job = make_job(tmp_path / "job", WISH, [spoken(tmp_path / "in", 12)]).read()
    assert len(job.lines) == len(most) == 12
    assert max(most) == 2  # the one that is read, and the one before it


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are written by Python: libsndfile tells a full disk as a system error."""
    write_bytes = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if ".wav" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_bytes(path, data)

    folder = spoken(tmp_path / "in")
    monkeypatch.setattr(Path, "write_bytes", full)
    trainings = VoiceTraining(tmp_path / "data")
    with pytest.raises(NotSaved, match="disk is full"):
        trainings.prepare(WISH, [folder])
    assert trainings.list() == ()
    assert not list((tmp_path / "data").rglob("*.wav"))


def test_a_folder_that_is_no_job_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="no training"):
        JobFolder(tmp_path).read()
    (tmp_path / "job.json").write_text('{"name": "x", "rows": 9000}')
    with pytest.raises(InvalidSetting, match="no training"):
        JobFolder(tmp_path).read()


def test_pitch_pace_and_words_are_measured() -> None:
    for hertz in (95.0, 130.0, 210.0, 280.0):
        assert judge.pitch(voiced(2, hertz)) == pytest.approx(hertz, rel=0.02)
    assert judge.pitch(silence(2)) == 0
    assert judge.pace([("ab c", 24_000), ("d!", 24_000)]) == pytest.approx(0.5)
    cold = words_of("It's a cold day.")
    assert (word_errors(cold, words_of("its a cold grey day")), len(cold)) == (1, 4)
    good = words_of("你好吗")
    assert (word_errors(good, words_of("你好")), len(good)) == (1, 3)


def test_the_best_epoch_ends_keeps_its_words_and_is_nearer_than_the_clone() -> None:
    plain = judge.Epoch(number=0, stopped=1, pace=1, likeness=0.9, pitch=2, spectrum=5, words=0.02)

    def epoch(number: int, spectrum: float, **changes: float) -> judge.Epoch:
        made = plain.model_copy(update={"number": number, "spectrum": spectrum, **changes})
        return made.model_copy(update={"refused": judge.refusal(made, plain)})

    runaway, silent = epoch(1, 0.1, stopped=0.9), epoch(2, 0.2, words=0.3)
    shrill, moved, hasty = epoch(3, 0.3, pitch=6), epoch(4, 0.4, hold=1), epoch(5, 0.5, pace=0.4)
    refused_ones = (runaway, silent, shrill, moved, hasty, epoch(6, 0.6, likeness=0.5))
    assert all(each.refused for each in refused_ones)
    good = epoch(7, 4.5)
    low = epoch(8, 4.8, pitch=-0.5, likeness=0.88)  # nearer in pitch, though its encoder thinks not
    assert judge.best_of([plain, *refused_ones, good]) is good
    assert judge.best_of([plain, good, low]) is low
    assert judge.best_of([plain, *refused_ones, epoch(7, 5.0)]) is None


def test_a_darker_voice_is_farther_in_its_spectrum() -> None:
    wave = voiced(3)
    plain = judge.spectrum_of([wave])
    assert judge.spectral_distance([0.3 * wave], plain) == pytest.approx(0, abs=1e-6)
    darker = np.convolve(wave, np.ones(8) / 8, "same").astype(np.float32)
    assert judge.spectral_distance([darker], plain) > 2


def test_bands_that_a_recording_lacks_are_not_judged() -> None:
    """Recordings of 16,000 Hz end at 8,000: a voice that speaks above it is no farther for that."""
    noise = np.random.default_rng(0).standard_normal(3 * RATE)
    wave = (0.05 * noise * (1 + voiced(3))).astype(np.float32)
    low = soxr.resample(soxr.resample(wave, RATE, 16_000), 16_000, RATE)
    wanted = judge.spectrum_of([low])
    assert judge.spectral_distance([wave], wanted) < 1
    darker = np.convolve(wave, np.ones(8) / 8, "same").astype(np.float32)
    assert judge.spectral_distance([darker], wanted) > 2


def test_general_texts_are_none_that_are_read() -> None:
    for language, texts in READ.items():
        general = general_texts(language, texts, 12)
        assert len(set(general)) == 12
        assert not set(general) & set(texts)
        judged = judged_texts(language, texts[:10], 6)
        assert len(set(judged)) == 6
        assert not set(judged) & {*texts[:10], *general_texts(language, texts, 99)}
    assert judged_texts("english", ENGLISH, 2) == list(ENGLISH[::35])  # all were read
    assert general_texts("auto", ["今天很好"], 3)[0] in general_texts("chinese", [], 99)
    assert general_texts("german", ["Guten Tag.", "Gute Nacht."], 1) == ["Guten Tag."]


def test_what_fits_no_job_is_refused_before_recordings_are_read(tmp_path: Path) -> None:
    nowhere = [tmp_path / "nowhere"]
    named = {"name": "x" * 81}, {"name": "Ann\u202e"}, {"name": "Ann\tLee"}
    for changes in (*named, {"consent": "she agrees " * 50}, {"epochs": 0}):
        with pytest.raises(InvalidSetting, match=r"name|made_from|epochs"):
            make_job(tmp_path / "job", replace(WISH, **changes), nowhere)
    with pytest.raises(UnknownLanguage, match="does not speak 'german'"):
        make_job(tmp_path / "job", replace(WISH, language="german"), nowhere)
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize(
    ("said", "enough"),
    [
        ("Ann Lee, it is my own voice.", True),
        ("李安，这是我自己的声音。", True),
        ("这是我自己的声音", True),
        ("私の声です", True),
        ("yes", False),
        ("好。", False),
        ("", False),
    ],
)
def test_consent_is_more_than_a_word_in_any_script(said: str, enough: bool) -> None:
    assert has_consent(said) is enough
