"""Reads long recordings, writes their lines, and refuses what no voice can be learned from.

Up to an hour a file. Noise, music, echo and clipping are judged as in references for clones; beside
them telephone sound and silence. No torch.
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
from engine.audio.recording_quality import Quality, quality_of
from engine.audio.reference_audio import LEVEL, PEAK, Recording, clipped_places, spans_of
from engine.audio.sound_reader import MAX_CHANNELS, read_sound
from engine.errors import InvalidAudio
from engine.types import SAMPLE_RATE, Waveform

LONGEST = 3_600.0  # seconds
MAX_BYTES = 1 << 30
RATES = (16_000, 192_000)  # below, the sounds that tell people apart are missing
WINDOW = SAMPLE_RATE // 100  # 10 ms
TELEPHONE = 4_200.0  # Hz: a recording without anything above was made by one
LEAST_ABOVE = 1.5e-5  # of the power: people have 4e-5, plain resamplers leave 6e-6 of a telephone
MOST_CLIPPED = 0.01
SILENT = 1e-3


class Flawed(InvalidAudio):
    """A check of its sound speaks against it; who knows better can take it anyway."""


@dataclass(frozen=True, eq=False)
class LongRecording:
    name: str
    recording: Recording  # 24 kHz, levelled
    level: float  # dB of full scale that its audible parts had
    telephone: bool  # whether nothing high is in it

    @property
    def waveform(self) -> Waveform:
        return self.recording.waveform

    @property
    def quality(self) -> Quality:
        return self.recording.quality

    @property
    def seconds(self) -> float:
        return self.recording.seconds

    @property
    def fault(self) -> Flawed | None:
        """Why nothing is learned from it. Whether one person speaks is asked of its lines."""
        if self.quality.clipped > MOST_CLIPPED:
            return Flawed(
                "{share:.0%} of {name} is clipped. Record it again with a lower input level.",
                share=self.quality.clipped,
                name=self.name,
            )
        if self.telephone:
            return Flawed(
                "{name} sounds like a telephone: nothing above {hertz:,.0f} Hz is in it. Use a "
                "recording of at least 16,000 Hz that was never shortened to one of 8,000.",
                name=self.name,
                hertz=TELEPHONE,
            )
        if self.quality.sound_flaw:
            return Flawed(
                "{name}: {flaw}. Record in a quiet room with soft furniture, without music.",
                name=self.name,
                flaw=self.quality.sound_flaw,
            )
        return None


def measured_recording(path: Path) -> LongRecording:
    """A recording, also one with a fault. Raises InvalidAudio that says what to do where it cannot
    be read, or all is silent."""
    mono, rate = _decoded(path)
    name = path.name
    if not np.isfinite(mono).all():
        raise InvalidAudio("{name} has samples that are no numbers. Export it again.", name=name)
    silent = InvalidAudio("{name} is silent. Check the microphone.", name=name)
    if float(np.abs(mono).max(initial=0.0)) < SILENT:
        raise silent
    clipped, places = clipped_places(mono)
    wave = np.asarray(soxr.resample(mono - mono.mean(), rate, SAMPLE_RATE, quality="HQ"))
    wave = wave.astype(np.float32)
    before = level(wave)
    if not before:  # a click or two is louder
        raise silent
    telephone = _is_telephone(wave)
    wave *= np.float32(min(LEVEL / before, PEAK / float(np.abs(wave).max())))
    seconds = len(wave) / SAMPLE_RATE
    recording = Recording(
        wave, seconds, quality_of(wave, clipped), (), spans_of(places / rate, seconds)
    )
    return LongRecording(name, recording, 20 * float(np.log10(before)), telephone)


def write_wave(path: Path, wave: Waveform) -> None:
    """Raises NotSaved, where libsndfile alone would only tell a system error."""
    whole = io.BytesIO()
    soundfile.write(whole, wave, SAMPLE_RATE, format="WAV", subtype="PCM_16")
    write_atomic(path, whole.getvalue())


def level(wave: Waveform) -> float:
    """RMS of what is audible in it; 0 where nothing is."""
    loud = loudness(wave)
    audible = loud[loud > max(SILENT, 0.01 * float(loud.max(initial=0.0)))]
    return float(np.sqrt(np.mean(audible**2))) if len(audible) else 0.0


def loudness(wave: Waveform) -> NDArray[np.float64]:
    """RMS of each 10 ms [windows]."""
    count = len(wave) // WINDOW
    rows = wave[: count * WINDOW].reshape(count, WINDOW).astype(np.float64)
    level: NDArray[np.float64] = np.sqrt(np.square(rows).mean(1))
    return level


def _is_telephone(wave: Waveform) -> bool:
    size = 4_096
    count = min(len(wave) // size, 400)
    power = np.zeros(size // 2 + 1)
    for start in np.linspace(0, max(0, len(wave) - size), count).astype(int):
        power += np.abs(np.fft.rfft(wave[start : start + size] * np.hanning(size))) ** 2
    above = power[np.fft.rfftfreq(size, 1 / SAMPLE_RATE) > TELEPHONE].sum()
    return bool(above < LEAST_ABOVE * power.sum())


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
