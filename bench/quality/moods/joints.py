"""What is heard where a mood begins and ends inside a text, beside the same text in one mood.

    python -m bench.quality.moods.joints --picture joints.png

Three sentences, the middle one in a mood. At both changes: the level of the sentence after the
pause against that of the one before it, the same of the 0.8 s on both sides alone, the pause, and
the loudest sound and the largest step between two samples in its middle half. The text without
tags, spoken with the same seed, stands beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.quality.voice_card.speak import open_model
from engine import SAMPLE_RATE, Engine, MoodLibrary, Pcm, Preset, SpeechRequest, Waveform

BEGIN, MIDDLE, END = "We walked down to the river. ", "The water was very cold. ", "Nobody saw us."
TEXTS = (
    (BEGIN, MIDDLE, END),
    ("My sister lives in Norway. ", "She has a small red house. ", "It is near the sea."),
    ("The shop opens at nine. ", "Bring all the papers with you. ", "I will wait outside."),
)
VOICES = ("clara", "robert", "vera", "karl", "iris", "angus")
AT_ONCE = 8
HOP = SAMPLE_RATE // 100
QUIET = 36.0  # dB below the loudest 10 ms: a pause
SHORTEST = 0.15  # s
BESIDE = 0.8  # s of speech on either side of a joint
FLOOR = 1e-6
AS_IT_IS = "as it is"


@dataclass(frozen=True)
class Joint:
    step: float  # dB, the sentence after against the one before
    beside: float  # dB, the speech next to the pause alone
    pause: float  # s
    loudest: float  # dBFS, of 10 ms in the middle half of the pause
    jump: float  # dBFS, between two samples there


def levels(wave: Waveform) -> NDArray[np.float64]:
    """dBFS of every 10 ms."""
    rows = wave[: len(wave) // HOP * HOP].reshape(-1, HOP).astype(np.float64)
    return 10 * np.log10(np.square(rows).mean(1) + FLOOR**2)


def joints(wave: Waveform) -> list[Joint]:
    """At every pause inside the sound."""
    level = levels(wave)
    audible = np.flatnonzero(level > level.max() - QUIET)
    gaps = np.flatnonzero(np.diff(audible) > SHORTEST * SAMPLE_RATE / HOP)
    starts, stops = audible[gaps] + 1, audible[gaps + 1]
    begins, ends = [0, *stops], [*starts, len(level)]
    return [
        _joint(wave, level, begins[at], ends[at], begins[at + 1], ends[at + 1])
        for at in range(len(gaps))
    ]


def _joint(
    wave: Waveform, level: NDArray[np.float64], begin: int, start: int, stop: int, end: int
) -> Joint:
    """Between [begin, start) and [stop, end), in windows of 10 ms."""
    beside = round(BESIDE * SAMPLE_RATE / HOP)
    near = _speech(level[stop : stop + beside], level)
    near -= _speech(level[max(0, start - beside) : start], level)
    pause = wave[start * HOP : stop * HOP]
    inside = (stop - start) // 4  # what fades out and in lies beside it
    still = wave[(start + inside) * HOP : (stop - inside) * HOP]
    return Joint(
        _speech(level[stop:end], level) - _speech(level[begin:start], level),
        near,
        len(pause) / SAMPLE_RATE,
        float(level[start + inside : stop - inside].max()),
        20 * float(np.log10(np.abs(np.diff(still)).max() + FLOOR)),
    )


def _speech(level: NDArray[np.float64], whole: NDArray[np.float64]) -> float:
    """The mean power of what is audible."""
    audible = level[level > whole.max() - QUIET]
    return 10 * float(np.log10(np.power(10.0, audible / 10).mean()))


def speak(engine: Engine, texts: Sequence[tuple[str, str, str]], mood: str) -> list[Waveform]:
    """All voices' texts, in turn; `mood`: of the middle sentence, empty for none."""
    moods = {mood: MoodLibrary(Path("presets/moods")).get(mood).mood} if mood else {}
    streams = [
        engine.submit(
            SpeechRequest(
                f"{begin}[{mood}] {middle}[/{mood}] {end}" if mood else begin + middle + end,
                Preset(voice),
                "english",
                seed=7 + number,
                moods=moods,
                live=False,
            )
        )
        for voice in VOICES
        for number, (begin, middle, end) in enumerate(texts)
    ]
    return [_float(stream.collect()) for stream in streams]


def _float(pcm: Pcm) -> Waveform:
    return pcm.astype(np.float32) / np.float32(32768)


def rows(taken: dict[str, list[Waveform]]) -> Iterator[str]:
    """A table: one line for the text as it is, one for each mood."""
    yield (
        "| middle sentence | sentence after against before, dB | 0.8 s on both sides, dB | "
        "pause, s | loudest in it, dBFS | largest step in it, dBFS | takes with two pauses |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    found = {mood: [joints(wave) for wave in waves] for mood, waves in taken.items()}
    for mood, each in found.items():
        whole = [pair for pair in each if len(pair) == 2]
        flat = [joint for pair in whole for joint in pair]
        yield (
            f"| {mood} | {_spread([j.step for j in flat])} | {_spread([j.beside for j in flat])} | "
            f"{min(j.pause for j in flat):.2f} to {max(j.pause for j in flat):.2f} | "
            f"{max(j.loudest for j in flat):.0f} | {max(j.jump for j in flat):.0f} | "
            f"{len(whole)} of {len(each)} |"
        )


def _spread(values: list[float]) -> str:
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    return f"{middle:+.1f} ({low:+.1f} to {high:+.1f})"


def picture(waves: Sequence[Waveform], path: Path) -> None:
    """Spectrograms to 8 kHz, one above the other, with the level below each."""
    from PIL import Image

    pages = [_page(wave) for wave in waves]
    wide = max(page.shape[1] for page in pages)
    padded = [np.pad(p, ((0, 8), (0, wide - p.shape[1])), constant_values=255) for p in pages]
    Image.fromarray(np.concatenate(padded)).save(path, optimize=True)


def _page(wave: Waveform) -> NDArray[np.uint8]:
    """[rows, columns] grey: 10 ms a column, 31 Hz a row, then 60 rows of 1 dB of level."""
    size = 768
    rows_ = np.lib.stride_tricks.sliding_window_view(wave, size)[::HOP] * np.hanning(size)
    power = 20 * np.log10(np.abs(np.fft.rfft(rows_, axis=1))[:, : size // 3] + 1e-4).T
    grey = np.clip((power.max() - power) / 70, 0, 1)[::-1]
    level = np.clip(levels(wave)[: grey.shape[1]] + 70, 0, 59)
    curve = (np.arange(60)[::-1, None] > level[None, :]).astype(float)
    curve = np.pad(curve, ((0, 0), (0, grey.shape[1] - curve.shape[1])), constant_values=1)
    return (255 * np.concatenate([grey, curve])).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="presets/mini")
    parser.add_argument("--moods", default="higher,lower,brighter,slower")
    parser.add_argument(
        "--picture", type=Path, help="a PNG of clara's first text, as it is and in each mood"
    )
    args = parser.parse_args()
    with open_model(args.model, "cpu", AT_ONCE) as engine:
        taken = {AS_IT_IS: speak(engine, TEXTS, "")}
        taken |= {mood: speak(engine, TEXTS, mood) for mood in args.moods.split(",")}
    print("\n".join(rows(taken)))
    if args.picture:
        picture([waves[0] for waves in taken.values()], args.picture)


if __name__ == "__main__":
    main()
