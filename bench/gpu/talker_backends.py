"""`python -m bench.gpu.talker_backends`: a frame through the talker's layers, by backend.

Random weights of the published shapes. `persistent N` is one launch of at most N blocks; `layers`
runs layer by layer. Each is compared with the library's products, then timed as a graph.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

import torch
import typer
from torch import Tensor

from bench.gpu.decode_steps import random_talker
from bench.gpu.kernels import graphed, milliseconds
from bench.random_config import config
from engine.model.layers import rotary_embedding
from engine.model.talker import TalkerModel
from engine.worker.kernels.cuda import launch_config, talker_kernels
from engine.worker.state.slot_state import Slots
from engine.worker.talker import talker_forward
from engine.worker.talker.talker_forward import TalkerForward

Form = Callable[[Tensor, Tensor, Tensor], Tensor]


def forms(stack: TalkerModel, slots: Slots, blocks: list[int]) -> dict[str, Form]:
    everywhere = torch.arange(slots.positions, device="cuda")[None]
    turn = rotary_embedding(everywhere, stack.config.head_dim, stack.config.rope_theta)
    cos, sin = (part[0, 0].bfloat16() for part in turn)
    found: dict[str, Form] = {}
    for most in blocks:
        launch_config.MAX_BLOCKS = most
        talker_kernels.MAX_BLOCKS = most  # type: ignore[attr-defined]
        persistent = talker_kernels.build(stack, slots, (cos, sin))
        if persistent is not None:
            found[f"persistent {most}"] = persistent
    return found | {"layers": TalkerForward(stack, slots, cos, sin)}


@torch.inference_mode()
def main(
    size: str = "1.7B",
    rows: Annotated[str, typer.Option(help="as 1,2,4")] = "1,2,4,8,16",
    blocks: Annotated[str, typer.Option(help="of one launch, at most")] = "128,64",
    positions: Annotated[int, typer.Option(help="approximate position of the rows")] = 100,
) -> None:
    place = torch.device("cuda")
    talker = random_talker(config(size, "custom_voice")["talker_config"], place, torch.bfloat16)
    slots = Slots.allocate(talker.config, 64, 1024, place, torch.bfloat16)
    for past in slots.cache.tensors:
        past.normal_()
    known = forms(talker.model, slots, [int(count) for count in blocks.split(",")])
    for count in map(int, rows.split(",")):
        x = torch.randn(count, slots.hidden.shape[1], device="cuda").bfloat16()
        index = torch.randperm(64, device="cuda")[:count]
        at = positions // 2 + torch.randint(positions, (count,), device="cuda")
        few, talker_forward.FUSED_ROWS = talker_forward.FUSED_ROWS, 0
        exact = known["layers"](x, index, at).float()
        talker_forward.FUSED_ROWS = few
        found: dict[str, float] = {"rows": count}
        for name, form in known.items():
            if name != "layers" and count > talker_kernels.MAX_ROWS:
                continue
            error = (form(x, index, at).float() - exact).norm() / exact.norm()
            found[f"{name} error"] = round(error.item(), 4)
            found[f"{name} ms"] = round(milliseconds(graphed(lambda: form(x, index, at))), 3)  # noqa: B023
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    typer.run(main)
