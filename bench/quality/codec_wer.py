"""`python -m bench.quality.codec_wer --model DIR`: word errors caused by a codec.

flite speaks held-out sentences; a recogniser transcribes them directly and through a checkpoint's
codec. That is a bound for any talker. Prints a table, then one JSON line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from bench.quality.intelligibility import SENTENCES, percent
from bench.quality.wer import Listener
from engine import Waveform
from training.codec import ALL, Codec
from training.data.flite_speakers import NAMED, Speaker
from training.data.synthesize_corpus import say
from training.resume import codec_of


@torch.inference_mode()
def passed_on(codec: Codec, wave: Waveform) -> Waveform:
    coded = codec(torch.from_numpy(wave)[None], torch.tensor([ALL]))
    made: Waveform = coded.wave[0].numpy()
    return made


def judged(codec: Codec, listener: Listener, speaker: Speaker, texts: list[str]) -> dict[str, Any]:
    """Errors in percent of the words, before and after the codec."""
    words = before = after = 0
    for text in texts:
        wave = say(text, speaker).wave
        wrong, count = listener.errors(text, wave)
        words, before = words + count, before + wrong
        after += listener.errors(text, passed_on(codec, wave))[0]
    return {
        "voice": speaker.name,
        "teacher_percent": percent(before, words),
        "codec_percent": percent(after, words),
    }


def main(
    model: Annotated[Path, typer.Option(help="a checkpoint's folder")],
    sentences: Annotated[int, typer.Option(min=1, max=100, help="of each voice")] = 100,
) -> None:
    """Count a recogniser's word errors with and without the codec."""
    texts = SENTENCES.read_text().splitlines()[:sentences]
    codec, listener, rows = codec_of(model), Listener(), []
    for speaker in NAMED[:4]:
        rows.append(judged(codec, listener, speaker, texts))
        typer.echo(" ".join(map(str, rows[-1].values())), err=True)
    typer.echo(json.dumps({"model": str(model), "sentences": len(texts), "voices": rows}))


if __name__ == "__main__":
    typer.run(main)
