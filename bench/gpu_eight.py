"""`python -m bench.gpu_eight`: weights in 8 bits beside whole ones, many rows at a time.

Random weights of the published shapes. For the talker's layers and prompts: ms as graphs, and how
far hidden states are from ordinary products of the same rounded weights, and from those of whole
weights.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from bench.gpu.decode_steps import random_talker
from bench.gpu.kernels import error, graphed, milliseconds
from bench.random_config import config
from engine.model.layers import rotary_embedding
from engine.model.talker import Talker
from engine.worker.eight import products, round_weights
from engine.worker.state.slot_state import Slots
from engine.worker.talker.talker_forward import TalkerForward

POSITIONS = 512


def told(**found: Any) -> None:
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}),
          flush=True)  # fmt: skip


def timed(work: Callable[[], Any]) -> float:
    return milliseconds(graphed(work), 50)


class Talk:
    """Rows somewhere in their slots, through the library's products or those in 8 bits."""

    def __init__(self, talker: Talker, slots: int) -> None:
        place, shape = torch.device("cuda"), talker.config.transformer
        self.slots = Slots.allocate(talker.config, slots, POSITIONS, place, torch.bfloat16)
        for past in self.slots.cache.tensors:
            past.normal_(generator=torch.Generator(place).manual_seed(1))
        everywhere = torch.arange(POSITIONS, device=place)[None]
        turn = rotary_embedding(everywhere, shape.head_dim, shape.rope_theta)
        cos, sin = (part[0, 0].bfloat16() for part in turn)
        self.talking = TalkerForward(talker.model, self.slots, cos, sin)
        self.talking.whole = None

    def inputs(self, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        draw = torch.Generator("cuda").manual_seed(rows)
        x = torch.randn(rows, self.slots.hidden.shape[1], device="cuda", generator=draw).bfloat16()
        index = torch.randperm(self.slots.spare, device="cuda", generator=draw)[:rows]
        # positions of a slot are always the same: no call changes another's past
        return x, index, 50 + index * 37 % 100

    def many(self, rows: int) -> Tensor:
        x, index, at = self.inputs(rows)
        return self.once(x, index, at)

    def once(self, x: Tensor, index: Tensor, at: Tensor) -> Tensor:
        attend = self.talking._over(self.talking._attention.attend, index, at)
        return self.talking._many(x, attend)


def talker_lines(
    whole: dict[int, Tensor], talk: Talk, eight: Any, before: dict[int, float]
) -> None:
    for rows, exact in whole.items():
        inputs = talk.inputs(rows)
        talk.talking.eight = None
        ordinary = talk.once(*inputs)
        talk.talking.eight = eight
        made = talk.once(*inputs)
        told(part="talker", rows=rows, whole_ms=before[rows],
             eight_ms=timed(partial(talk.once, *inputs)),
             error_of_products=error(made, ordinary), error_of_weights=error(ordinary, exact),
             error=error(made, exact))  # fmt: skip


def prompt_line(talk: Talk, eight: Any, prompts: int = 4, length: int = 256) -> None:
    """Prompts beside each other: as many rows as a step takes."""
    x, index, _ = talk.inputs(prompts)
    x = torch.randn(prompts, length, x.shape[1], device="cuda").bfloat16()
    at = torch.arange(length, device="cuda").expand(prompts, length)
    spent, states = {}, {}
    for name, form in (("whole", None), ("eight", eight)):
        talk.talking.eight = form
        spent[f"{name}_ms"] = timed(partial(talk.talking.prompt, x, index, at))
        states[name] = talk.talking.prompt(x, index, at)
    told(part="prompts", rows=prompts * length, **spent,
         error_of_products=error(states["eight"], states["whole"]))  # fmt: skip


@torch.inference_mode()
def main(
    size: str = "1.7B",
    rows: Annotated[str, typer.Option(help="of the talker, as 17,32")] = "17,32,64,128,256",
) -> None:
    raw = config(size, "custom_voice")["talker_config"]
    talker = random_talker(raw, torch.device("cuda"), torch.bfloat16)
    counts = [int(count) for count in rows.split(",")]
    talk = Talk(talker, max(counts))
    whole = {count: talk.many(count) for count in counts}
    before = {count: timed(partial(talk.once, *talk.inputs(count))) for count in counts}
    round_weights(talker)
    eight = products(talker.model)
    assert eight is not None, "this GPU makes no products in 8 bits"
    told(size=size, card=torch.cuda.get_device_name(), torch=torch.__version__, off=eight.off(300))
    talker_lines(whole, talk, eight, before)
    prompt_line(talk, eight)


if __name__ == "__main__":
    typer.run(main)
