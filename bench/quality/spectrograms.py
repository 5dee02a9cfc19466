"""`python -m bench.quality.spectrograms OUT.jpg`: spectrograms of teacher, codec and model.

They show clicks at chunk borders, buzz between harmonics and clipped peaks. Needs flite (see
training/README.md). Prints loudness, peak and the largest jump between samples of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pyloudnorm
import torch
import typer

from bench.quality.intelligibility import speaking
from engine import FRAME_SAMPLES, SAMPLE_RATE, Preset, Waveform, open_engine
from studio.cli.app_context import MINI
from training.codec import ALL, Codec
from training.data import synthesize_corpus
from training.data.flite_speakers import NAMED
from training.resume import codec_of

SENTENCE = "She found seven white boxes beside the church."


def copied(codec: Codec, wave: Waveform) -> Waveform:
    """The same audio through encoder and decoder."""
    whole = torch.from_numpy(wave[: len(wave) // FRAME_SAMPLES * FRAME_SAMPLES])[None]
    with torch.inference_mode():
        coded = codec(whole, torch.tensor([ALL]))
    return coded.wave[0].numpy()


def measured(wave: Waveform) -> str:
    loud = pyloudnorm.Meter(SAMPLE_RATE).integrated_loudness(wave.astype(np.float64))
    jump = np.abs(np.diff(wave)).max()
    return f"{loud:.1f} LUFS, peak {np.abs(wave).max():.2f}, largest jump {jump:.2f}"


def draw(waves: dict[str, Waveform], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(len(waves), 1, figsize=(10, 2.4 * len(waves)), sharex=True)
    for row, (name, wave) in zip(rows, waves.items(), strict=True):
        row.specgram(wave + 1e-9, NFFT=512, Fs=SAMPLE_RATE, noverlap=384, vmin=-140, vmax=-40)
        row.set_title(name, loc="left", fontsize=10)
        row.set_ylabel("Hz")
    rows[-1].set_xlabel("seconds")
    figure.tight_layout()
    figure.savefig(out, dpi=70)


def main(
    out: Path,
    model: Annotated[Path, typer.Option(help="a folder")] = MINI,
    speakers: Annotated[int, typer.Option(min=1, max=4)] = 2,
) -> None:
    """Draw and measure."""
    waves: dict[str, Waveform] = {}
    codec = codec_of(model)
    with open_engine([str(model)], device="cpu") as engine:
        for speaker in NAMED[:speakers]:
            taught = synthesize_corpus.say(SENTENCE, speaker).wave
            waves[f"{speaker.name}: teacher"] = taught
            waves[f"{speaker.name}: through the codec"] = copied(codec, taught)
            own, _ = speaking(engine, Preset(speaker.name))(SENTENCE, 1)
            waves[f"{speaker.name}: the model"] = own
    for name, wave in waves.items():
        typer.echo(f"{name}: {measured(wave)}")
    draw(waves, out)


if __name__ == "__main__":
    typer.run(main)
