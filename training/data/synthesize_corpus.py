"""Synthesizes training speech with flite in shards; shard k depends on the seed and k alone.

A shard is one .npz: samples end to end with their offsets, phone and text position every 20 ms, and
speakers and texts as JSON. `make` uses several processes and can be stopped and continued.

    python -m training.data.synthesize_corpus --corpus corpus.json --out DIR --workers 16
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from training.data import flite, text, voice_interpolation
from training.data.flite_speakers import BASES, NAMED, STYLES, TRAINED, Speaker, Style, everyone
from training.data.voice_interpolation import End, Manner, OtherPhones

RATE = 24_000
FRAME = 1_920
PHONE_STEP = 480  # samples: 20 ms
PHONES_A_FRAME = FRAME // PHONE_STEP
LOUDNESS = -20.0  # LUFS
UTTERANCES = 160  # per shard
LONGEST = 10.5  # seconds
SPREAD = 0.13  # of the pitch
STYLED = 0.12  # of the utterances
NAMED_SHARE = 0.3
OFTEN = {"karl": 4}  # drawn more often, as the hardest voice for codec and talker

Wave = NDArray[np.float32]


@dataclass(frozen=True)
class Utterance:
    text: str
    speaker: int
    style: int


def choose(corpus: text.Corpus, random: Random) -> Utterance:
    if random.random() < NAMED_SHARE:
        often = [OFTEN.get(speaker.name, 1) for speaker in NAMED]
        speaker = random.choices(range(len(NAMED)), often)[0]
    else:
        speaker = random.randrange(len(NAMED), TRAINED)
    style = random.randrange(1, len(STYLES)) if random.random() < STYLED else 0
    return Utterance(corpus.draw(random), speaker, style)


@dataclass(frozen=True, eq=False)
class Message:
    wave: Wave  # at 24 kHz, a whole number of frames long
    phones: NDArray[np.uint8]  # every 20 ms
    places: NDArray[np.uint16]  # every 20 ms: characters of the text spoken by then


def say(words: str, speaker: Speaker, style: int = 0) -> Message:
    tract, spoken = speaker.tract, speak(words, speaker, STYLES[style])
    source = spoken.samples.astype(np.float32) / 32768
    wave = shape(source, spoken.rate * tract, speaker.tilt)
    start, stop = speech_span(wave)
    wave = pad(level(wave[start:stop]))
    at = (np.arange(len(wave) // PHONE_STEP) + 0.5) * PHONE_STEP + start
    ends = spoken.ends * (RATE / tract)
    phones = np.append(spoken.phones, 0)[np.searchsorted(ends, at)]
    return Message(wave, phones.astype(np.uint8), places(words, spoken.words, ends, at))


def speak(words: str, speaker: Speaker, style: Style) -> flite.Spoken:
    """Speech before the vocal tract is scaled, lower and longer to compensate for that."""
    pitch, stretch = speaker.pitch / speaker.tract, speaker.pace * style.pace * speaker.tract
    manner = Manner(pitch, pitch * SPREAD * style.spread, style.spread, stretch)
    base = BASES[speaker.base]
    if speaker.other is None:
        return flite.speak(words, base.voice, manner.pitch, manner.spread, manner.stretch)
    ends = (
        End(each.voice, each.pitch if each.steady else None)
        for each in (base, BASES[speaker.other])
    )
    return voice_interpolation.speak(words, *ends, speaker.share, manner)


def places(
    text: str,
    words: NDArray[np.int16],
    ends: NDArray[np.float32],
    at: NDArray[np.float64],
) -> NDArray[np.uint16]:
    """Characters of the text spoken by the times `at`, from the phones' words and ends.

    A word's letters are spread evenly over its time; pauses add none.
    """
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    times, letters = [0.0], [0]
    starts = np.concatenate(([0.0], ends[:-1]))
    for number in dict.fromkeys(words[words != flite.NO_WORD].tolist()):
        own = np.flatnonzero(words == number)
        times += [float(starts[own[0]]), float(ends[own[-1]])]
        letters += spans[min(number, len(spans) - 1)]
    return np.interp(at, times, letters).astype(np.uint16)


def shape(source: Wave, rate: float, tilt: float) -> Wave:
    """Resample from `rate` to 24 kHz with `tilt` dB per octave about 1 kHz, in one transform."""
    padded = np.pad(source, (0, 2048))
    spectrum = np.fft.rfft(padded)
    hertz = np.fft.rfftfreq(len(padded), 1 / rate)
    octaves = np.log2(np.clip(hertz, 150, 6000) / 1000)
    spectrum *= 10 ** (tilt * octaves / 20)
    length = round(len(padded) * RATE / rate)
    bins = length // 2 + 1
    kept = np.zeros(bins, spectrum.dtype)
    kept[: min(bins, len(spectrum))] = spectrum[:bins]
    return (np.fft.irfft(kept, length) * (length / len(padded))).astype(np.float32)


def speech_span(wave: Wave) -> tuple[int, int]:
    """Start and end of speech, with 60 ms before and 160 ms after."""
    hop = 240
    power = np.square(wave[: len(wave) // hop * hop].reshape(-1, hop)).mean(1)
    loud = np.flatnonzero(power > power.max() * 10**-4.2)
    return max(0, (loud[0] - 6) * hop), min(len(wave), (loud[-1] + 17) * hop)


def pad(wave: Wave) -> Wave:
    """Pad to a whole frame, with short fades at both ends."""
    ramp = np.linspace(0, 1, 120, dtype=np.float32)
    wave = wave.copy()
    wave[:120] *= ramp
    wave[-120:] *= ramp[::-1]
    return np.pad(wave, (0, -len(wave) % FRAME))


def weighting(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Power gain of BS.1770's K weighting, from its two filters' analogue forms."""
    s = 2j * np.pi * hertz
    w1, q1, gain = 2 * np.pi * 1681.97, 0.7072, 10 ** (3.99984 / 20)
    shelf = (gain * s**2 + gain**0.4996 * w1 / q1 * s + w1**2) / (s**2 + w1 / q1 * s + w1**2)
    w2, q2 = 2 * np.pi * 38.135, 0.5003
    high = s**2 / (s**2 + w2 / q2 * s + w2**2)
    return np.abs(shelf * high) ** 2


def loudness(wave: Wave) -> float:
    """Integrated loudness in LUFS, gated as in BS.1770."""
    block, hop = int(0.4 * RATE), int(0.1 * RATE)
    padded = np.pad(wave, (0, max(0, block - len(wave))))
    spectrum = np.fft.rfft(padded)
    gain = np.sqrt(weighting(np.fft.rfftfreq(len(padded), 1 / RATE)))
    power = np.square(np.fft.irfft(spectrum * gain, len(padded)))
    sums = np.concatenate(([0.0], np.cumsum(power)))
    starts = np.arange(0, len(padded) - block + 1, hop)
    blocks = (sums[starts + block] - sums[starts]) / block
    heard = blocks[blocks > 10 ** ((-70 + 0.691) / 10)]
    if not len(heard):
        return -np.inf
    return float(-0.691 + 10 * np.log10(heard[heard > heard.mean() / 10].mean()))


def level(wave: Wave) -> Wave:
    """Scale to -20 LUFS, or as near as peaks below 0.95 allow."""
    gain = 10 ** ((LOUDNESS - loudness(wave)) / 20)
    return (wave * min(gain, 0.95 / np.abs(wave).max())).astype(np.float32)


def utterances(corpus: text.Corpus, seed: int, shard: int) -> Iterator[Utterance]:
    random = Random(f"{seed}/{shard}")
    while True:
        yield choose(corpus, random)


def make_shard(
    corpus: text.Corpus, seed: int, shard: int, count: int = UTTERANCES
) -> dict[str, object]:
    speakers, kept, made = everyone(), [], []
    for utterance in utterances(corpus, seed, shard):
        try:
            said = say(utterance.text, speakers[utterance.speaker], utterance.style)
        except OtherPhones:
            continue
        if not 0.3 < len(said.wave) / RATE < LONGEST:
            continue
        kept.append(asdict(utterance))
        made.append(said)
        if len(kept) == count:
            break
    samples = np.concatenate([said.wave for said in made])
    return {
        "samples": np.round(samples * 32767).astype(np.int16),
        "phones": np.concatenate([said.phones for said in made]),
        "places": np.concatenate([said.places for said in made]),
        "offsets": np.cumsum([0, *(len(said.wave) for said in made)]),
        "meta": np.array(json.dumps(kept)),
    }


def write_shard(folder: Path, corpus: text.Corpus, seed: int, shard: int, count: int) -> None:
    path = folder / f"{shard:05d}.npz"
    if path.exists():
        return
    part = path.with_suffix(".part.npz")
    np.savez(part, **make_shard(corpus, seed, shard, count))  # type: ignore[arg-type]
    os.replace(part, path)


_corpus: text.Corpus


def _start(corpus: Path) -> None:
    global _corpus  # noqa: PLW0603  read once per process
    _corpus = text.load(corpus)


def _work(job: tuple[Path, int, int, int]) -> int:
    folder, seed, shard, count = job
    write_shard(folder, _corpus, seed, shard, count)
    return shard


def make(corpus: Path, folder: Path, seed: int, shards: range, workers: int, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    jobs = ((folder, seed, shard, count) for shard in shards)
    with get_context("spawn").Pool(workers, _start, (corpus,)) as pool:
        for shard in pool.imap_unordered(_work, jobs):
            print(f"shard {shard}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--utterances", type=int, default=UTTERANCES)
    given = parser.parse_args()
    shards = range(given.first, given.first + given.shards)
    make(given.corpus, given.out, given.seed, shards, given.workers, given.utterances)


if __name__ == "__main__":
    main()
