"""A larger network that goes on where a smaller one was.

New channels hear all channels, and are at first heard by new ones alone; new transformer layers
come last and at first add nothing: so the network does what the smaller one did. That holds for
convolutions, for the inside of a transformer's MLP and what works on each channel by itself, not
for norms and attention, whose widths must agree.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

ADDING = ("o_proj.weight", "down_proj.weight")  # what a transformer's layer adds comes from these
FUSED = "gate_up_proj.weight"  # the rows of two matrices


@torch.no_grad()
def grown(network: nn.Module, small: dict[str, Tensor]) -> dict[str, Tensor]:
    """The network's state with that of a smaller one in it."""
    turned = {  # weights [from, to, …]
        f"{name}.weight"
        for name, part in network.named_modules()
        if isinstance(part, nn.ConvTranspose1d)
    }
    larger = {}
    for name, value in network.state_dict().items():
        if name not in small:
            larger[name] = value * (not name.endswith(ADDING))
        elif name.endswith(FUSED):
            halves = zip(value.chunk(2), small[name].to(value).chunk(2), strict=True)
            larger[name] = torch.cat([_with(new.clone(), old, False) for new, old in halves])
        else:
            larger[name] = _with(value.clone(), small[name].to(value), name in turned)
    return larger


def _with(value: Tensor, old: Tensor, turned: bool) -> Tensor:
    """`value` with the old one in its corner."""
    if any(new < size for new, size in zip(value.shape, old.shape, strict=True)):
        raise ValueError(f"{tuple(old.shape)} does not fit into {tuple(value.shape)}")
    if value.ndim > 1:
        to, known = (x.transpose(0, 1) if turned else x for x in (value, old))
        to[: known.shape[0], known.shape[1] :] = 0
    value[tuple(map(slice, old.shape))] = old
    return value
