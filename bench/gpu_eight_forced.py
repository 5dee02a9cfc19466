"""`python -m bench.gpu_eight_forced --model DIR`: what 8 bits change where true codes are told.

On any device, a CPU by default. What a checkpoint says with whole weights is told to it again, with
whole weights, rounded ones, and rounded ones whose products round their inputs, too; and all in two
bytes, to compare. Prints how far hidden states and logits are from the whole ones, and how many
best codes stay.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor, nn

from bench.eight_drift import spoken
from bench.quality.intelligibility import SENTENCES
from engine import Preset, SamplingParams, open_engine
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.layers import Causal
from engine.model.talker import Talker
from engine.worker.eight import LARGEST, rounded_linears
from engine.worker.loading.model_loader import load_talker
from engine.worker.state.prompts import Embedder

PARTS = ("hidden", "first", "others")
FORMS = ("whole", "bfloat16", "weights", "weights and inputs")


def by_row(linear: nn.Linear, given: tuple[Tensor, ...]) -> tuple[Tensor]:
    """Inputs as products in 8 bits take them."""
    scale = given[0].float().abs().amax(-1, keepdim=True).clamp(min=1e-12) / LARGEST
    near = (given[0].float() / scale).to(torch.float8_e4m3fn).float() * scale
    return (near.to(given[0].dtype),)


def made(form: str, folder: Path, device: torch.device, dtype: torch.dtype) -> Talker:
    dtype = torch.bfloat16 if form == "bfloat16" else dtype
    talker = load_talker(folder, device, dtype, eight_bits=form.startswith("weights"))
    for linear in rounded_linears(talker) if form == FORMS[-1] else ():
        linear.register_forward_pre_hook(by_row)
    return talker


def told(talker: Talker, prompt: Tensor, codes: Tensor, pad: Tensor) -> tuple[Tensor, ...]:
    """Hidden states of every frame, and logits of its first codebook and of the others."""
    x = torch.cat((prompt, talker.embed_codes(codes[:-1]) + pad))[None]
    hidden = talker(x, torch.arange(x.shape[1], device=x.device)[None], Causal())
    hidden = hidden[0, len(prompt) - 1 :]
    return hidden, talker.logits(hidden), talker.predict(hidden, codes)


def compared(found: list[tuple[Tensor, ...]], wanted: list[tuple[Tensor, ...]]) -> dict[str, Any]:
    every: dict[str, Any] = {}
    for name, *parts in zip(
        PARTS, zip(*found, strict=True), zip(*wanted, strict=True), strict=True
    ):
        own, other = map(torch.cat, parts)
        every[f"{name}_error"] = round(((own - other).norm() / other.norm()).item(), 4)
        if name != "hidden":
            same = (own.argmax(-1) == other.argmax(-1)).float().mean().item()
            every[f"{name}_best_alike_percent"] = round(100 * same, 1)
            every[f"{name}_nats"] = round(nats(own, other), 4)
    return every


def nats(found: Tensor, wanted: Tensor) -> float:
    """How far the one's probabilities are from the other's: the divergence, a mean."""
    logs = found.log_softmax(-1), wanted.log_softmax(-1)
    apart = nn.functional.kl_div(*logs, log_target=True, reduction="none")
    return apart.sum(-1).mean().item()


def said(model: str, count: int, voices: list[str]) -> list[tuple[str, str, Any]]:
    """Sentences, who says them, and their codes."""
    lines, drawn = SENTENCES.read_text().splitlines()[:count], SamplingParams()
    engine = open_engine([model], "cpu", max_waiting=200)
    try:
        return [
            (text, voice, codes)
            for voice in voices
            for text, (_, codes) in zip(lines, spoken(engine, lines, voice, drawn), strict=True)
        ]
    finally:
        engine.close()


@torch.inference_mode()
def main(
    model: Annotated[str, typer.Option(help="a checkpoint's folder")],
    sentences: int = 25,
    voices: Annotated[str, typer.Option(help="presets, as a,b")] = "clara,robert",
    device: str = "cpu",
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16")] = "float32",
) -> None:
    place, checkpoint = torch.device(device), LocalCheckpoint(Path(model))
    lines, known = said(model, sentences, voices.split(",")), {}
    for form in FORMS:
        talker = made(form, Path(model), place, getattr(torch, dtype))
        embedder, known[form] = Embedder(talker, checkpoint.ids), []
        for text, voice, codes in lines:
            ids = checkpoint.text_ids(text)
            prompt = checkpoint.prompt(ids, Preset(voice), "english", "whole", False)
            rows, there = embedder.layout([prompt])[0].rows, torch.tensor(codes, device=place)
            known[form].append([*map(Tensor.float, told(talker, rows, there.long(), embedder.pad))])
        if form != "whole":
            frames = sum(len(codes) for *_, codes in lines)
            found = {"form": form, "frames": frames, **compared(known[form], known["whole"])}
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    typer.run(main)
