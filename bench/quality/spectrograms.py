"""`python -m bench.quality.spectrograms CARD OUT.jpg`: a sentence by teacher, codec and model.

They show clicks at the borders of chunks, buzz between harmonics and clipped peaks. CARD is a
folder that `bench.quality.voice_card speak` has filled. Prints loudness, peak and the largest jump
between samples of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyloudnorm
import typer

from bench.quality.voice_card import recordings
from engine import SAMPLE_RATE, Waveform

SOURCES = ("teacher", "codec", "model")
VOICES = ("clara", "otto", "milo")


def waves_of(card: Path, voices: Sequence[str], number: int) -> dict[str, Waveform]:
    """The same sentence of each voice by each source that has it."""
    return {
        f"{voice}: {source}": list(recordings.read(card / source, f"voices.{voice}"))[number].wave
        for voice in voices
        for source in SOURCES
        if f"voices.{voice}" in recordings.groups(card / source)
    }


def measured(wave: Waveform) -> str:
    loud = pyloudnorm.Meter(SAMPLE_RATE).integrated_loudness(wave.astype(np.float64))
    jump = np.abs(np.diff(wave)).max()
    return f"{loud:.1f} LUFS, peak {np.abs(wave).max():.2f}, largest jump {jump:.2f}"


def draw(waves: dict[str, Waveform], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(
        len(waves), 1, figsize=(10, 2.4 * len(waves)), sharex=True, squeeze=False
    )
    for row, (name, wave) in zip(rows[:, 0], waves.items(), strict=True):
        row.specgram(wave + 1e-9, NFFT=512, Fs=SAMPLE_RATE, noverlap=384, vmin=-140, vmax=-40)
        row.set_title(name, loc="left", fontsize=10)
        row.set_ylabel("Hz")
    rows[-1, 0].set_xlabel("seconds")
    figure.tight_layout()
    figure.savefig(out, dpi=70)


def main(
    card: Path,
    out: Path,
    voice: Annotated[list[str] | None, typer.Option(help="of the card")] = None,
    sentence: Annotated[int, typer.Option(min=0, help="its number")] = 0,
) -> None:
    """Draw and measure."""
    waves = waves_of(card, voice or VOICES, sentence)
    if not waves:
        raise typer.BadParameter(f"none of these voices is in {card}")
    for name, wave in waves.items():
        typer.echo(f"{name}: {measured(wave)}")
    draw(waves, out)


if __name__ == "__main__":
    typer.run(main)
