"""`python -m bench.codec_words --model DIR`: how many words a codec costs.

flite says held-out sentences; a recogniser hears them as they are and through the codec of a
checkpoint. What a talker speaks cannot be clearer than that. Prints a table, then one JSON line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from bench.intelligibility import SENTENCES
from bench.words import Listener
from engine import Waveform
from training.codec import ALL, Codec
from training.parts import codec_of
from training.speakers import NAMED
from training.speech import say


@torch.inference_mode()
def passed_on(codec: Codec, wave: Waveform) -> Waveform:
    coded = codec(torch.from_numpy(wave)[None], torch.tensor([ALL]))
    made: Waveform = coded.wave[0].numpy()
    return made


def main(
    model: Annotated[Path, typer.Option(help="a checkpoint's folder")],
    sentences: Annotated[int, typer.Option(min=1, max=100, help="of each voice")] = 100,
) -> None:
    """Count the words a recogniser gets wrong with and without the codec."""
    texts, codec, listener = (
        SENTENCES.read_text().splitlines()[:sentences],
        codec_of(model),
        Listener(),
    )
    rows: list[dict[str, Any]] = []
    for speaker in NAMED[:4]:
        words = before = after = 0
        for text in texts:
            wave = say(text, speaker).wave
            wrong, count = listener.errors(text, wave)
            words, before = words + count, before + wrong
            after += listener.errors(text, passed_on(codec, wave))[0]
        rows.append(
            {
                "voice": speaker.name,
                "teacher_percent": round(100 * before / words, 1),
                "codec_percent": round(100 * after / words, 1),
            }
        )
        typer.echo(" ".join(map(str, rows[-1].values())), err=True)
    typer.echo(json.dumps({"model": str(model), "sentences": len(texts), "voices": rows}))


if __name__ == "__main__":
    typer.run(main)
