"""Checks a user's recording and converts it: 24 kHz, mono, silence trimmed, level adjusted.

Limits are checked before the work that they bound. Every error is an InvalidAudio that says what to
do.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.audio.recording_quality import CLIPPED, Quality, quality_of
from engine.audio.sound_reader import check_shape, read_sound
from engine.errors import InvalidAudio
from engine.messages import Message
from engine.types import SAMPLE_RATE, Waveform

Source: TypeAlias = "str | os.PathLike[str] | bytes | tuple[NDArray[Any], int]"

SHORTEST, LONGEST = 1.0, 60.0  # seconds
MAX_BYTES = 100 << 20  # a minute of 192 kHz, stereo, 32 bits takes 92 MB
LEVEL = 0.1  # RMS of the audible parts after levelling: -20 dBFS
_WHOLE = Message("The recording")
_WINDOW = SAMPLE_RATE // 100  # 10 ms
_FLOOR = 1e-3  # -60 dBFS is silence
_QUIET = 1e-2  # 40 dB below the loudest window is a pause
_MARGIN = 10  # windows kept before and after the audible part
PEAK = 0.97
_MAX_GAIN = 30.0
_CLIPPED = 0.9999  # of the loudest sample
_CLIPPED_REFUSED = 0.1  # share of all samples
_APART = 0.05  # seconds between two places that are clipped


@dataclass(frozen=True, eq=False)
class Recording:
    """A usable reference, and notes for the user on what was changed."""

    waveform: Waveform
    seconds: float
    quality: Quality
    notes: tuple[Message, ...] = ()
    clipped_at: tuple[tuple[float, float], ...] = ()  # seconds

    @property
    def flaw(self) -> Message | None:
        """Why it gives a speaker embedding alone."""
        return self.quality.flaw

    def continued(self, transcript: str) -> str:
        """The transcript with which a voice may continue it; empty where it has a flaw."""
        return "" if self.flaw else transcript


@dataclass(frozen=True, eq=False)
class _Raw:
    mono: Waveform
    rate: int
    channels: int


def load_reference_audio(source: Source) -> Recording:
    """Read and check a path, a file's bytes, or (samples, rate). Raises InvalidAudio."""
    raw = _from_array(*source) if isinstance(source, tuple) else _decode(_bytes(source))
    if not np.isfinite(raw.mono).all():
        raise InvalidAudio("The recording has samples that are no numbers. Export it again.")
    notes = (
        [Message("{count} channels mixed to one", count=raw.channels)] if raw.channels > 1 else []
    )
    mono = raw.mono / max(1.0, float(np.abs(raw.mono).max()))
    clipped, places = _check_clipping(mono, notes)
    wave = _resample(mono - mono.mean(), raw.rate, notes)
    wave, active, cut = _trim(wave, notes)
    levelled = _levelled(wave, active, notes)
    quality = quality_of(levelled, clipped)
    if quality.flaw:
        notes.append(
            Message("{flaw}: only the voice is copied, without its transcript", flaw=quality.flaw)
        )
    seconds = len(wave) / SAMPLE_RATE
    clipped_at = spans_of(places / raw.rate - cut / SAMPLE_RATE, seconds)
    return Recording(levelled, seconds, quality, tuple(notes), clipped_at)


def _bytes(source: str | os.PathLike[str] | bytes) -> bytes:
    if isinstance(source, bytes):
        _check_size(len(source))
        return source
    path = Path(source)
    try:
        if not path.is_file():
            raise InvalidAudio(
                "There is no file {path}. Check the name of the recording.", path=path
            )
        _check_size(path.stat().st_size)
        with path.open("rb") as file:
            return file.read(MAX_BYTES)
    except (OSError, ValueError) as error:
        raise InvalidAudio("{path} cannot be read: {error}.", path=path, error=error) from error


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise InvalidAudio(
            "The file has {size} MB; at most {most} are read. Cut it to under a minute.",
            size=size >> 20,
            most=MAX_BYTES >> 20,
        )


def _decode(data: bytes) -> _Raw:
    mono, rate, channels = read_sound(io.BytesIO(data), LONGEST, _check_shape)
    _check_shape(rate, channels, len(mono))
    return _Raw(mono, rate, channels)


def _check_shape(rate: int, channels: int, frames: int | None = None) -> None:
    check_shape(rate, channels)
    if frames is None:
        return
    if frames > LONGEST * rate:
        raise InvalidAudio(
            "The recording lasts {seconds:,.0f} s. Cut it to {most:.0f} s or less; "
            "5 to 15 s are best.",
            seconds=frames / rate,
            most=LONGEST,
        )
    _check_long_enough(frames / rate)


def _check_long_enough(seconds: float, what: Message = _WHOLE) -> None:
    if seconds < SHORTEST:
        raise InvalidAudio(
            "{what} lasts {seconds:.1f} s. Record at least {least:.0f} s; 5 to 15 s are best.",
            what=what,
            seconds=seconds,
            least=SHORTEST,
        )


def _from_array(samples: NDArray[Any], rate: int) -> _Raw:
    """A recording from an array: [samples] or [samples, channels], integers or floats."""
    array = np.asarray(samples)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iuf":
        raise InvalidAudio("The recording must be samples, or samples by channels, as numbers.")
    channels = array.shape[1] if array.ndim == 2 else 1
    _check_shape(int(rate), channels, len(array))
    floats = _as_float(array)
    return _Raw(floats if floats.ndim == 1 else floats.mean(axis=1), int(rate), channels)


def _as_float(array: NDArray[Any]) -> Waveform:
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # too large for float32 becomes inf and is refused
            return array.astype(np.float32)
    bits = array.dtype.itemsize * 8
    middle = 2.0 ** (bits - 1)
    offset = middle if array.dtype.kind == "u" else 0.0
    return ((array.astype(np.float64) - offset) / middle).astype(np.float32)


def _check_clipping(wave: Waveform, notes: list[Message]) -> tuple[float, NDArray[np.int64]]:
    share, places = clipped_places(wave)
    if share > _CLIPPED_REFUSED:
        raise InvalidAudio(
            "{share:.0%} of the recording is clipped. Record it again with a lower input level.",
            share=share,
        )
    if share > CLIPPED:
        notes.append(
            Message(
                "{share:.1%} of it is clipped; a quieter recording would sound better", share=share
            )
        )
    return share, places


def clipped_places(wave: Waveform) -> tuple[float, NDArray[np.int64]]:
    """Clipping shows as runs of samples at the same extreme value: their share, and where they
    are."""
    size = np.abs(wave)
    extreme = size >= _CLIPPED * max(float(size.max()), _FLOOR)
    clipped = extreme[1:] & extreme[:-1]
    return float(np.mean(clipped)), np.flatnonzero(clipped)


def spans_of(times: NDArray[np.float64], seconds: float) -> tuple[tuple[float, float], ...]:
    """Times of a recording that lasts so many seconds, those near each other as one span."""
    times = times[(times >= 0) & (times <= seconds)]
    if not len(times):
        return ()
    gaps = np.flatnonzero(np.diff(times) > _APART)
    starts, stops = times[[0, *(gaps + 1)]], times[[*gaps, len(times) - 1]]
    return tuple((float(start), float(stop)) for start, stop in zip(starts, stops, strict=True))


def _resample(wave: Waveform, rate: int, notes: list[Message]) -> Waveform:
    if rate == SAMPLE_RATE:
        return wave
    import soxr

    notes.append(Message("resampled from {rate:,} Hz", rate=rate))
    if rate < SAMPLE_RATE:
        notes.append(Message("its highest tones are missing; record at 24,000 Hz or more"))
    return np.asarray(soxr.resample(wave, rate, SAMPLE_RATE, quality="HQ"), np.float32)


def _trim(wave: Waveform, notes: list[Message]) -> tuple[Waveform, Waveform, int]:
    """Cut silence from both ends. Returns the rest, its audible windows alone, and how many samples
    were cut before it."""
    count = len(wave) // _WINDOW
    windows = wave[: count * _WINDOW].reshape(count, _WINDOW)
    loudness = np.sqrt(np.mean(np.square(windows, dtype=np.float64), axis=1))  # [windows]
    sounding = loudness > max(_FLOOR, _QUIET * float(loudness.max()))
    if not sounding.any():
        raise InvalidAudio("The recording is silent. Check the microphone and record it again.")
    _check_long_enough(
        float(sounding.sum()) * _WINDOW / SAMPLE_RATE + 0.5, Message("The sound in it")
    )
    where = np.flatnonzero(sounding)
    start = max(0, where[0] - _MARGIN) * _WINDOW
    stop = min(len(wave), (where[-1] + 1 + _MARGIN) * _WINDOW)
    cut = (len(wave) - (stop - start)) / SAMPLE_RATE
    if cut >= 0.1:
        notes.append(Message("{cut:.1f} s of silence cut from its ends", cut=cut))
    return wave[start:stop], windows[sounding].reshape(-1), int(start)


def _levelled(wave: Waveform, active: Waveform, notes: list[Message]) -> Waveform:
    """Scale to the common loudness without clipping."""
    loudness = float(np.sqrt(np.mean(np.square(active, dtype=np.float64))))
    gain = min(LEVEL / loudness, PEAK / float(np.abs(wave).max()), _MAX_GAIN)
    decibels = 20 * np.log10(gain)
    if abs(decibels) >= 1:
        notes.append(Message("volume adjusted {decibels:+.0f} dB", decibels=float(decibels)))
    return (wave * gain).astype(np.float32)
