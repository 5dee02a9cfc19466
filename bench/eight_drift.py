"""`python -m bench.eight_drift --model DIR`: what weights in 8 bits change of what is heard.

Speaks held-out sentences with presets, with whole weights and with rounded ones. Greedy: how many
frames are alike up to the first that is not, and by all; drawn: words that a recogniser gets wrong.
On a CPU only weights are rounded. On a GPU products of many rows round their inputs, too, so the
sentences are spoken beside each other.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
import typer

from bench.quality.intelligibility import SENTENCES, percent
from bench.quality.wer import Listener
from engine import Engine, Preset, SamplingParams, SpeechRequest, open_engine

GREEDY = SamplingParams(greedy=True, repetition_penalty=1.0)


def spoken(
    engine: Engine, said: list[str], voice: str, how: SamplingParams
) -> list[tuple[Any, Any]]:
    """Samples, and codes [frames, 16], of all sentences; they are spoken beside each other."""
    requests = [
        SpeechRequest(text, Preset(voice), "english", how, seed=seed, live=False)
        for seed, text in enumerate(said)
    ]
    streams = [list(stream) for stream in [engine.submit(each) for each in requests]]
    return [
        (np.concatenate([each.pcm for each in own]), np.concatenate([each.codes for each in own]))
        for own in streams
    ]


def listened(engine: Engine, said: list[str], voices: list[str]) -> dict[str, Any]:
    """Greedy codes of each sentence and voice, and words heard wrong of drawn ones."""
    listener, wrong, words, codes = Listener(), 0, 0, []
    for voice in voices:
        codes += [codes for _, codes in spoken(engine, said, voice, GREEDY)]
        for text, (pcm, _) in zip(said, spoken(engine, said, voice, SamplingParams()), strict=True):
            found = listener.errors(text, (pcm / 32768).astype(np.float32))
            wrong, words = wrong + found[0], words + found[1]
    return {"codes": codes, "words": words, "wrong": wrong}


def alike(first: Any, second: Any) -> tuple[int, int, int]:
    """Frames before the first that differs, frames alike in their places, and all."""
    count = min(len(first), len(second))
    same = (first[:count] == second[:count]).all(1)
    before = count if same.all() else int(same.argmin())
    return before, int(same.sum()), max(len(first), len(second))


def main(
    model: Annotated[str, typer.Option(help="a checkpoint: folder or hub id")],
    sentences: Annotated[int, typer.Option(min=1, max=100, help="of each voice")] = 25,
    voices: Annotated[str, typer.Option(help="presets, as a,b")] = "clara,robert",
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Measure the drift."""
    said, heard = SENTENCES.read_text().splitlines()[:sentences], []
    for eight_bits in (False, True):
        engine = open_engine([model], device, dtype, eight_bits=eight_bits, max_waiting=200)
        try:
            heard.append(listened(engine, said, voices.split(",")))
        finally:
            engine.close()
        score = {"eight_bits": eight_bits, "words": heard[-1]["words"]}
        score["word_errors_percent"] = percent(heard[-1]["wrong"], heard[-1]["words"])
        typer.echo(json.dumps(score))
    pairs = zip(heard[0]["codes"], heard[1]["codes"], strict=True)
    before, same, every = (
        sum(each) for each in zip(*(alike(*pair) for pair in pairs), strict=True)
    )
    typer.echo(json.dumps({
        "greedy_frames": every,
        "before_the_first_that_differs_percent": percent(before, every),
        "alike_percent": percent(same, every),
    }))  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
