"""Listens to an epoch: does it end, at whose pace and pitch, how like the person, in which words.

A loss shows none of this: models that never stop speaking, or that sound right and say other words,
have had falling losses. So the best epoch is chosen here, and the clone that training began from is
judged by the same sentences: what is no better than it is refused.

Likeness by the model's own speaker encoder is a guard and no measure: the clone was made from what
that encoder hears, so it is nearest there by definition, also where it speaks five semitones too
high. What is compared is heard without any network: pitch, and the long-term spectrum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine import SAMPLE_RATE, Clone, Codes, Engine, Message, Preset, SpeechRequest, Waveform
from training.voice.job import NOTHING, Epoch
from training.voice.segments import trimmed
from training.voice.words import word_errors, words_of

AT_ONCE = 8
SEED = 4_000
PITCHES = (60.0, 500.0)  # Hz
WINDOW, HOP = 1_024, 480
VOICED = 0.6  # of a window's autocorrelation
MOST_SEMITONES = 1.0  # farther from the recordings' pitch than the clone
PACE = (0.75, 1.3)  # of the recordings' seconds a letter
OTHER_PACE = 1.15  # or of the clone's
MOST_HOLD = 0.3  # nats that codebook 0 may have moved on general texts
MORE_WORDS = 0.03  # share of wrong words above the clone's
LEAST_GAIN = 0.1  # dB nearer than the clone
LESS_LIKE = 0.08  # of the encoder's cosine below the clone's
BANDS = 40  # of the long-term spectrum, equally wide in log frequency
EDGES = (80.0, 10_000.0)  # Hz
RANGE = 60.0  # dB below the loudest band, where a recording of 16,000 Hz has nothing

Recognise = Callable[[Waveform], str]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Take:
    text: str
    wave: Waveform
    finished: bool
    codes: Codes | None = None  # [frames, 16]; None: nothing was said


@dataclass(frozen=True)
class Person:
    """The recordings, measured as takes are."""

    vector: Waveform  # [width]
    pitch: float  # Hz
    pace: float  # seconds a letter
    spectrum: Floats  # dB [bands]


def speak(engine: Engine, voice: Clone | Preset, texts: Sequence[str], language: str) -> list[Take]:
    """Each text once, always by the same seeds."""

    def say(numbered: tuple[int, str]) -> Take:
        number, text = numbered
        request = SpeechRequest(text, voice, language, seed=SEED + number, live=False)
        stream = engine.submit(request)
        chunks = list(stream)
        assert stream.end is not None
        finished = stream.end.reason == "finished"
        if not chunks:
            return Take(text, np.zeros(1, np.float32), finished)
        pcm = np.concatenate([chunk.pcm for chunk in chunks])
        wave = pcm.astype(np.float32) / np.float32(32768)
        return Take(text, wave, finished, np.concatenate([chunk.codes for chunk in chunks]))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(say, enumerate(texts)))


def measure(
    number: int,
    takes: Sequence[Take],
    person: Person,
    embed: Callable[[Waveform], Waveform],
    recognise: Recognise | None,
) -> Epoch:
    heard = [take for take in takes if len(take.wave) > SAMPLE_RATE // 2]
    likeness = [cosine(embed(take.wave), person.vector) for take in heard]
    pitches = [found for take in heard if (found := pitch(take.wave)) > 0]
    semitones = 12 * np.log2(np.median(pitches) / person.pitch) if pitches and person.pitch else 0
    words = None
    if recognise is not None:
        wanted = [words_of(take.text) for take in takes]
        transcripts = [words_of(recognise(take.wave)) for take in takes]
        words = sum(map(word_errors, wanted, transcripts)) / max(1, sum(map(len, wanted)))
    return Epoch(
        number=number,
        stopped=float(np.mean([take.finished for take in takes])),
        pace=pace((take.text, len(trimmed(take.wave))) for take in takes) / person.pace,
        likeness=float(np.mean(likeness)) if likeness else 0.0,
        pitch=float(semitones),
        spectrum=spectral_distance([take.wave for take in heard], person.spectrum),
        words=words,
    )


def refusal(epoch: Epoch, clone: Epoch) -> Message:
    """Why an epoch cannot be the voice; empty if it can."""
    slow, fast = max(PACE[1], clone.pace * OTHER_PACE), min(PACE[0], clone.pace / OTHER_PACE)
    if epoch.stopped < min(1.0, clone.stopped):
        return Message("it does not always stop")
    if not fast <= epoch.pace <= slow:
        return Message("it takes {pace:.2f} times the recordings' time", pace=epoch.pace)
    if abs(epoch.pitch) > max(abs(clone.pitch), 0.5) + MOST_SEMITONES:
        return Message("its pitch is {pitch:+.1f} semitones away", pitch=epoch.pitch)
    if epoch.likeness < clone.likeness - LESS_LIKE:
        return Message("the speaker encoder hears somebody else")
    if epoch.hold > MOST_HOLD:
        return Message("its words have moved too far from the model's")
    if epoch.words is not None and epoch.words > (clone.words or 0.0) + MORE_WORDS:
        return Message("{words:.0%} of its words are misheard", words=epoch.words)
    return NOTHING


def best_of(history: Sequence[Epoch]) -> Epoch | None:
    """The epoch nearest to the person, of those that may be; None: the clone is nearer."""
    clone, *epochs = history
    able = [epoch for epoch in epochs if not epoch.refused]
    best = min(able, key=lambda epoch: epoch.distance, default=None)
    if best is None or best.distance > clone.distance - LEAST_GAIN:
        return None
    return best


def cosine(one: Waveform, two: Waveform) -> float:
    return float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two) + 1e-9))


def spectrum_of(waves: Sequence[Waveform]) -> Floats:
    """The long-term spectrum of what is audible, in dB below its loudest band [bands]."""
    size = 2 * WINDOW
    power = np.zeros(size // 2 + 1)
    for wave in waves:
        if len(wave) < size:
            continue
        rows = np.lib.stride_tricks.sliding_window_view(wave.astype(np.float64), size)[::WINDOW]
        energy = np.square(rows).mean(1)
        loud = rows[energy > energy.max() / 1000] * np.hanning(size)
        power += (np.abs(np.fft.rfft(loud)) ** 2).sum(0)
    hertz = np.fft.rfftfreq(size, 1 / SAMPLE_RATE)
    band = np.digitize(hertz, np.geomspace(*EDGES, BANDS + 1)) - 1
    inside = (band >= 0) & (band < BANDS)
    sums = np.bincount(band[inside], power[inside], BANDS)
    counts = np.bincount(band[inside], minlength=BANDS)
    levels = 10 * np.log10(np.maximum(sums / np.maximum(counts, 1), 1e-9))
    filled: Floats = np.where(counts > 0, levels, np.nan)
    return np.maximum(filled - np.nanmax(filled), -RANGE)


def spectral_distance(waves: Sequence[Waveform], wanted: Floats) -> float:
    """dB (root mean square) between two long-term spectra, in the bands that the wanted one has."""
    if not waves:
        return 99.0
    apart = (spectrum_of(waves) - wanted)[wanted > -RANGE]
    return float(np.nanstd(apart))


def pace(spoken: object) -> float:
    """Seconds a letter of texts and their samples."""
    letters = samples = 0
    for text, count in spoken:  # type: ignore[attr-defined]
        letters += sum(mark.isalnum() for mark in text)
        samples += count
    return samples / SAMPLE_RATE / max(1, letters)


def pitch(wave: Waveform) -> float:
    """The median pitch in Hz of the voiced windows; 0 without any."""
    if len(wave) < WINDOW:
        return 0.0
    rows = np.lib.stride_tricks.sliding_window_view(wave.astype(np.float64), WINDOW)[::HOP]
    power = np.square(rows).mean(1)
    rows = rows[power > power.max() / 100]
    rows = rows - rows.mean(1, keepdims=True)
    spectrum = np.fft.rfft(rows, 2 * WINDOW)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:, :WINDOW]
    correlation = correlation / (correlation[:, :1] + 1e-12) / (1 - np.arange(WINDOW) / WINDOW)
    first, last = (int(SAMPLE_RATE / hertz) for hertz in reversed(PITCHES))
    lags = correlation[:, first:last]
    # The first lag that is nearly as good as the best: no multiple of the period.
    nearest = (lags > 0.95 * lags.max(1, keepdims=True)).argmax(1)
    while True:  # uphill to the peak
        after = np.minimum(nearest + 1, lags.shape[1] - 1)
        higher = np.take_along_axis(lags, after[:, None], 1) > np.take_along_axis(
            lags, nearest[:, None], 1
        )
        if not higher.any():
            break
        nearest = np.where(higher[:, 0], after, nearest)
    voiced = lags.max(1) > VOICED
    found = SAMPLE_RATE / (first + nearest[voiced])
    return float(np.median(found)) if len(found) else 0.0
