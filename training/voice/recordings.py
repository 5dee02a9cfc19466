"""Reads long recordings, writes their lines, and refuses what no voice can be learned from.

Up to an hour a file. What a listener would hear first is checked first: telephone sound, noise or
music under the voice, clipping, silence. No torch.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from engine.atomic import write_atomic
from engine.audio.sound_reader import MAX_CHANNELS, read_sound
from engine.errors import InvalidAudio
from engine.types import SAMPLE_RATE, Waveform

LONGEST = 3_600.0  # seconds
MAX_BYTES = 1 << 30
RATES = (16_000, 192_000)  # below, the sounds that tell people apart are missing
WINDOW = SAMPLE_RATE // 100  # 10 ms
TELEPHONE = 4_200.0  # Hz: a recording without anything above was made by one
LEAST_ABOVE = 1.5e-5  # of the power: people have 4e-5, plain resamplers leave 6e-6 of a telephone
LEAST_CONTRAST = 18.0  # dB between speech and its pauses
MOST_CLIPPED = 0.01
SILENT = 1e-3
LEVEL = 0.1  # RMS of the audible parts: -20 dBFS, as references are levelled
PEAK = 0.97


@dataclass(frozen=True, eq=False)
class LongRecording:
    name: str
    waveform: Waveform  # 24 kHz, levelled
    contrast: float  # dB
    level: float  # dB of full scale that its audible parts had
    clipped: float  # share of its samples

    @property
    def seconds(self) -> float:
        return len(self.waveform) / SAMPLE_RATE


def read_recording(path: Path) -> LongRecording:
    """Raises InvalidAudio that says what to do."""
    mono, rate = _decoded(path)
    name = path.name
    if not np.isfinite(mono).all():
        raise InvalidAudio("{name} has samples that are no numbers. Export it again.", name=name)
    size = np.abs(mono)
    top = float(size.max(initial=0.0))
    if top < SILENT:
        raise InvalidAudio("{name} is silent. Check the microphone.", name=name)
    clipped = float(np.mean((size[1:] > 0.9999 * top) & (size[:-1] > 0.9999 * top)))
    if clipped > MOST_CLIPPED:
        raise InvalidAudio(
            "{share:.0%} of {name} is clipped. Record it again with a lower input level.",
            share=clipped,
            name=name,
        )
    wave = np.asarray(soxr.resample(mono - mono.mean(), rate, SAMPLE_RATE, quality="HQ"))
    wave = wave.astype(np.float32)
    _check_bandwidth(name, wave)
    loud = loudness(wave)
    contrast = contrast_of(loud)
    if contrast < LEAST_CONTRAST:
        raise InvalidAudio(
            "{name}: noise or music is nearly as loud as speech ({contrast:.0f} dB between them; "
            "{least:.0f} are needed). Record in a quiet room, without music.",
            name=name,
            contrast=contrast,
            least=LEAST_CONTRAST,
        )
    audible = loud[loud > max(SILENT, 0.01 * float(loud.max()))]
    if not len(audible):  # a click or two is louder
        raise InvalidAudio("{name} is silent. Check the microphone.", name=name)
    level = float(np.sqrt(np.mean(audible**2)))
    gain = min(LEVEL / level, PEAK / float(np.abs(wave).max()))
    wave *= np.float32(gain)
    return LongRecording(name, wave, contrast, float(20 * np.log10(level)), clipped)


def write_wave(path: Path, wave: Waveform) -> None:
    """Raises NotSaved, where libsndfile alone would only tell a system error."""
    whole = io.BytesIO()
    soundfile.write(whole, wave, SAMPLE_RATE, format="WAV", subtype="PCM_16")
    write_atomic(path, whole.getvalue())


def loudness(wave: Waveform) -> NDArray[np.float64]:
    """RMS of each 10 ms [windows]."""
    count = len(wave) // WINDOW
    rows = wave[: count * WINDOW].reshape(count, WINDOW).astype(np.float64)
    level: NDArray[np.float64] = np.sqrt(np.square(rows).mean(1))
    return level


def contrast_of(loud: NDArray[np.float64]) -> float:
    """dB between loud and quiet windows. Speech has pauses, noise and music have none."""
    if len(loud) < 50:
        return 0.0
    quiet, high = np.quantile(loud, (0.05, 0.9))
    return float(20 * np.log10(high / max(quiet, 1e-5)))


def _check_bandwidth(name: str, wave: Waveform) -> None:
    size = 4_096
    count = min(len(wave) // size, 400)
    if count == 0:
        return
    starts = np.linspace(0, len(wave) - size, count).astype(int)
    power = np.zeros(size // 2 + 1)
    for start in starts:
        power += np.abs(np.fft.rfft(wave[start : start + size] * np.hanning(size))) ** 2
    above = power[np.fft.rfftfreq(size, 1 / SAMPLE_RATE) > TELEPHONE].sum()
    if above < LEAST_ABOVE * power.sum():
        raise InvalidAudio(
            "{name} sounds like a telephone: nothing above {hertz:,.0f} Hz is in it. Use a "
            "recording of at least 16,000 Hz that was never shortened to one of 8,000.",
            name=name,
            hertz=TELEPHONE,
        )


def _decoded(path: Path) -> tuple[Waveform, int]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidAudio("It is larger than a gigabyte. Cut it.")
        with path.open("rb") as file:
            mono, rate, _ = read_sound(file, LONGEST, _check_shape)
    except InvalidAudio as error:
        raise InvalidAudio("{name}: {reason}", name=path.name, reason=error.message) from error
    except OSError as error:
        raise InvalidAudio(
            "{name} cannot be read: {reason}.", name=path.name, reason=error.strerror
        ) from error
    if len(mono) > LONGEST * rate:
        raise InvalidAudio("{name} lasts more than an hour. Cut it.", name=path.name)
    return mono, rate


def _check_shape(rate: int, channels: int, frames: int | None) -> None:
    if not RATES[0] <= rate <= RATES[1] or not 1 <= channels <= MAX_CHANNELS:
        raise InvalidAudio(
            "It has {rate:,} Hz and {channels} channels. A voice is learned from 16,000 to 192,000 "
            "Hz in mono or stereo: telephone recordings lack what tells people apart.",
            rate=rate,
            channels=channels,
        )
