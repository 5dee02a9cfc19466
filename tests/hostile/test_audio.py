"""Malformed recordings: each raises one InvalidAudio, quickly and in little memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import InvalidAudio, Recording, load_reference_audio
from tests.hostile.bounds import Worst
from tests.hostile.sounds import BOMBS, FLOODS, HEADERS, KINDS, cuts, encoded, loudest_minute, wav

HOSTILE = {**HEADERS, **BOMBS, **FLOODS}
READABLE = {"unknown tag"}  # says nothing true of itself, and may be read or refused


def read(data: bytes) -> Recording | InvalidAudio:
    """A recording, or a refusal in one line that says what to do; anything else fails."""
    try:
        return load_reference_audio(data)
    except InvalidAudio as error:
        message = str(error)
        assert message.endswith(".")
        assert "\n" not in message
        assert len(message) < 300
        return error


@pytest.mark.parametrize("name", HOSTILE)
def test_each_attack_is_refused_soon_and_in_little_memory(name: str) -> None:
    data, worst = HOSTILE[name](), Worst(name)
    with worst.measured():
        answer = read(data)
    assert isinstance(answer, InvalidAudio) or name in READABLE
    worst.tell()


def cut_everywhere(kind: str, every: int) -> None:
    whole, worst = encoded(kind), Worst(f"{kind} cut short")
    full = load_reference_audio(whole).seconds
    for data in cuts(whole, every):
        with worst.measured():
            answer = read(data)
        if isinstance(answer, Recording):
            assert 1 <= answer.seconds <= full
            assert kind not in ("WAV", "FLAC") or len(data) > len(whole) - 100
            assert np.isfinite(answer.waveform).all()
    worst.tell()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_anywhere_is_refused_or_shorter(kind: str) -> None:
    cut_everywhere(kind, 97)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_after_every_single_byte(kind: str) -> None:
    cut_everywhere(kind, 1)


def damaged(make: Callable[[], bytes], count: int, what: str) -> None:
    whole, worst = make(), Worst(what)

    @settings(max_examples=count, deadline=None, database=None)
    @given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=8))
    def damage(changes: list[tuple[float, int]]) -> None:
        data = bytearray(whole)
        for place, value in changes:
            data[int(place**3 * (len(data) - 1))] = value  # headers more often than samples
        with worst.measured():
            read(bytes(data))

    damage()
    worst.tell()


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_bytes_are_read_or_refused(kind: str) -> None:
    damaged(lambda: encoded(kind), 60, f"{kind} damaged")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_bytes_two_thousand_times(kind: str) -> None:
    damaged(lambda: encoded(kind), 2000, f"{kind} damaged")


@pytest.mark.slow
def test_the_largest_recording_that_is_read_stays_bounded() -> None:
    worst, data = Worst("60 s, 8 channels, 192 kHz"), loudest_minute()
    with worst.measured():
        assert isinstance(read(data), InvalidAudio)  # silent, known after reading it all
    worst.tell()


@pytest.mark.parametrize("ending", [".mp3", ".flac", ".txt", ".exe", ".wav.png", ""])
def test_the_ending_of_a_name_is_not_believed(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"recording{ending}"
    path.write_bytes(wav())
    assert load_reference_audio(path).seconds > 1
    assert load_reference_audio(str(path)).seconds > 1
    path.write_bytes(b"MZ\x90\x00 not a sound at all")
    with pytest.raises(InvalidAudio, match="it is no sound"):
        load_reference_audio(path)


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros((0,), np.float32),
        np.full(48_000, -np.inf),
        np.zeros(30_000, object),
        np.zeros(30_000, complex),
        np.zeros(30_000, bool),
        np.zeros(24_000 * 61, np.int8),
    ],
    ids=str,
)
@pytest.mark.parametrize("rate", [24_000])
def test_arrays_that_are_no_recording(samples: np.ndarray, rate: int) -> None:
    with pytest.raises(InvalidAudio):
        load_reference_audio((samples, rate))


@pytest.mark.parametrize("rate", [0, -1, 1, 10**12])
def test_rates_that_are_none(rate: int) -> None:
    with pytest.raises(InvalidAudio, match="sample rate"):
        load_reference_audio((np.ones(48_000, np.float32), rate))


@pytest.mark.parametrize(
    "name", ["", "bad\0name", "gone.wav", "/dev/zero", "/proc/self/mem", ".", "a" * 5000]
)
def test_paths_that_are_no_files(name: str) -> None:
    with pytest.raises(InvalidAudio):
        load_reference_audio(name)
