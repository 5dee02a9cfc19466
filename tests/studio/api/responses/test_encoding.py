"""Formats and speed: what goes in comes out, however it is cut."""

from __future__ import annotations

import asyncio
import io
import threading
from itertools import pairwise
from typing import get_args

import av
import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import SAMPLE_RATE, Engine, Pcm, Preset, SpeechRequest
from studio.api.responses.audio_output import Output, Render, render
from studio.api.responses.encoding import (
    MEDIA_TYPES,
    WHOLE,
    Coding,
    Format,
    bit_rates,
    encode,
    open_encoder,
    wav_header,
)
from studio.api.responses.streaming_response import pieces
from studio.time_stretch import Stretch, stretch

BARE = {"pcm", "ulaw", "alaw"}  # no file, samples alone
READABLE = sorted(MEDIA_TYPES.keys() - BARE - {"aac"})
LOSSLESS = sorted(WHOLE | {"wav"})


def tone(seconds: float, hertz: float = 150.0) -> np.ndarray:
    t = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    swell = 1 + 0.3 * np.sin(2 * np.pi * 3 * t)
    return (6000 * swell * np.sin(2 * np.pi * hertz * t)).astype(np.int16)


def cut(pcm: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    edges = np.cumsum([0, *sizes])
    return [*(pcm[a:b] for a, b in pairwise(edges)), pcm[edges[-1] :]]


def streamed(format: Format, pcm: np.ndarray, size: int = 1920) -> bytes:
    encoder = open_encoder(Coding(format))
    parts = [encoder.feed(pcm[at : at + size]) for at in range(0, len(pcm), size)]
    return b"".join(parts) + encoder.finish()


def read(data: bytes) -> np.ndarray:
    samples, rate = soundfile.read(io.BytesIO(data), dtype="int16")
    assert rate == SAMPLE_RATE
    return samples


@pytest.mark.parametrize("rate", [8000, 11025, 24000, 44100, 48000])
@pytest.mark.parametrize("size", [7, 1920])
def test_a_streamed_mp3_begins_with_no_more_silence_than_its_encoder_needs(
    rate: int, size: int
) -> None:
    """LAME begins 1,105 samples early; a frame more would be 24 to 72 ms later."""
    sound = (9000 * np.cos(np.arange(rate) * 2 * np.pi * 440 / rate)).astype(np.int16)
    for bit_rate in (None, *bit_rates("mp3", rate)[::5]):
        encoder = open_encoder(Coding("mp3", rate, bit_rate))
        data = b"".join(encoder.feed(sound[at : at + size]) for at in range(0, rate, size))
        heard, there = soundfile.read(io.BytesIO(data + encoder.finish()))
        assert there == rate
        assert 1000 < np.argmax(np.abs(heard) > 0.1) < 1200
        assert rate <= len(heard) < rate + 3 * 1152


@pytest.mark.parametrize(("format", "speed"), [("mp3", 1.0), ("opus", 1.0), ("pcm", 1.5)])
def test_no_stream_waits_while_another_is_encoded(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, format: Format, speed: float
) -> None:
    render, threads = Render(Output(format, speed)), set[int]()
    feed = render.feed

    def watched(pcm: Pcm) -> bytes:
        threads.add(threading.get_ident())
        return feed(pcm)

    async def listen() -> int:
        monkeypatch.setattr(render, "feed", watched)
        stream = engine.submit(SpeechRequest("Hello there.", Preset("ryan")))
        return sum([len(piece) async for piece in pieces(stream, render)])

    assert asyncio.run(listen())
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("format", READABLE)
def test_whole_and_streamed_last_equally_long(format: Format) -> None:
    pcm = tone(1.7)
    for data in (encode(Coding(format), pcm), streamed(format, pcm)):
        assert abs(len(read(data)) - len(pcm)) <= 0.08 * SAMPLE_RATE


@pytest.mark.parametrize("format", LOSSLESS)
def test_lossless_formats_lose_nothing(format: Format) -> None:
    pcm = tone(0.5)
    assert np.array_equal(read(encode(Coding(format), pcm)), pcm)
    assert np.array_equal(read(streamed(format, pcm)), pcm)


@pytest.mark.parametrize("format", sorted(MEDIA_TYPES.keys() - WHOLE - {"aac"}))
def test_streamed_formats_give_bytes_at_once(format: Format) -> None:
    encoder = open_encoder(Coding(format))
    given = [len(encoder.feed(tone(0.08))) for _ in range(5)]
    assert given[0] > 0
    assert sum(given[1:]) > 0


def test_lossy_formats_keep_the_pitch_and_the_level() -> None:
    for format in ("mp3", "opus"):
        heard = read(streamed(format, tone(1.0, 440.0)))[4800:19200].astype(float)
        assert abs(loudest(heard) - 440) < 5
        assert 0.7 < np.abs(heard).max() / 7800 < 1.3


def test_streamed_wav_header_differs_only_in_the_sizes() -> None:
    known, unknown = wav_header(1000), wav_header(None)
    assert len(known) == len(unknown) == 44
    same = [i for i in range(44) if known[i] == unknown[i]]
    assert set(range(44)) - set(same) <= {*range(4, 8), *range(40, 44)}


def test_aac_reads_back() -> None:
    for data in (encode(Coding("aac"), tone(1.0)), streamed("aac", tone(1.0))):
        with av.open(io.BytesIO(data)) as file:
            samples = sum(frame.samples for frame in file.decode(audio=0))
        assert abs(samples / SAMPLE_RATE - 1.0) < 0.1


def test_every_format_has_a_media_type_and_an_encoder() -> None:
    assert set(MEDIA_TYPES) == set(get_args(Format))
    for format in MEDIA_TYPES:
        assert encode(Coding(format), tone(0.1))


def loudest(samples: np.ndarray) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum)) * SAMPLE_RATE / len(samples)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 20_000),
    st.floats(0.5, 2.0).filter(lambda speed: speed != 1),
    st.lists(st.integers(0, 6000), max_size=6),
)
def test_stretching_does_not_depend_on_how_it_is_cut(
    length: int, speed: float, sizes: list[int]
) -> None:
    pcm = tone(1.0)[:length]
    piecewise = Stretch(speed)
    parts = [piecewise.feed(part) for part in cut(pcm, sizes)]
    joined = np.concatenate([*parts, piecewise.finish()])
    assert np.array_equal(joined, stretch(pcm, speed))
    assert len(joined) == round(length / speed)


@pytest.mark.parametrize("speed", [0.5, 0.75, 1.25, 1.6, 2.0])
@pytest.mark.parametrize("hertz", [85.0, 150.0, 320.0])
def test_speed_keeps_the_pitch_and_the_level(speed: float, hertz: float) -> None:
    pcm = tone(2.0, hertz)
    fast = stretch(pcm, speed).astype(float)
    assert abs(loudest(fast[2400:-2400]) - hertz) < 3
    ratio = np.sqrt(np.mean(fast**2)) / np.sqrt(np.mean(pcm.astype(float) ** 2))
    assert 0.9 < ratio < 1.1
    # no clicks: no step between samples is larger than the tone's own
    assert np.abs(np.diff(fast)).max() <= 1.2 * np.abs(np.diff(pcm.astype(float))).max() + 2


def test_speed_one_changes_nothing() -> None:
    pcm = tone(0.3)
    assert render(pcm, Output("pcm")) == pcm.tobytes()
    piecewise = Render(Output("pcm"))
    assert piecewise.feed(pcm) + piecewise.finish() == pcm.tobytes()
    assert piecewise.samples == len(pcm)
