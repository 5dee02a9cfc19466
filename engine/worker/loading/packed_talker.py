"""A talker's weights in the order in which kernels read them, to be kept and mapped.

Equal layers lie side by side, so that a kernel takes all of them as one array without a copy. The
table of the text stays in the checkpoint, if it is mapped there. Knows no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

from engine.model.quantized_linear import GROUP, QuantizedLinear
from engine.model.talker import Talker
from engine.worker.loading.packed_file import Form, form_of

TEXT_TABLE = "model.text_embedding.weight"
PANELS = ".panels"
PANEL_BYTES = 320  # of 16 outputs and a group of inputs, see kernels.cpu.nibbles
Item = TypeVar("Item")


def packed_forms(talker: Talker, panels: bool) -> dict[str, Form]:
    """Of a talker's packed weights, from one without memory whose layers are quantised already.
    `panels`: layers of 4 bits are kept as these alone."""
    found = {}
    for name, tensor, layer in _tensors(talker):
        if layer is None or not name.endswith(".weight"):
            found[name] = form_of(tensor)
        else:
            found |= _layer_forms(name.removesuffix(".weight"), layer, panels)
    return _side_by_side(found)


def packed_arrays(talker: Talker, panels: bool) -> dict[str, Tensor]:
    """The same of a talker that is loaded."""
    found = {}
    for name, tensor, layer in _tensors(talker):
        if panels and layer is not None and layer.bits == 4:
            if name.endswith(".weight"):  # that is the panels, where prompts take these too
                own = tensor if layer.panels is None else layer.panels
                found[name.removesuffix(".weight") + PANELS] = own
            elif not name.endswith(".scales"):
                found[name] = tensor
        else:
            found[name] = tensor
    return _side_by_side(found)


def take_arrays(talker: Talker, arrays: Mapping[str, Tensor]) -> None:
    """Fill a talker without memory with its packed weights."""
    for name, tensor in arrays.items():
        path, _, leaf = name.rpartition(".")
        owner = talker.get_submodule(path)
        if isinstance(owner, QuantizedLinear) and leaf == "weight":
            owner.take(tensor, arrays[f"{path}.scales"])
        elif isinstance(owner, QuantizedLinear) and leaf == "panels":
            owner.panels = tensor
            owner.take(tensor, torch.ones(owner.out_features))
        elif leaf in owner._parameters:
            setattr(owner, leaf, nn.Parameter(tensor, requires_grad=False))
        elif leaf in owner._buffers:
            setattr(owner, leaf, tensor)


def _tensors(talker: Talker) -> Iterator[tuple[str, Tensor, QuantizedLinear | None]]:
    """What is kept, by name, and the quantised layer that it belongs to."""
    for name, tensor in talker.state_dict(keep_vars=True).items():
        if name != TEXT_TABLE:
            owner = talker.get_submodule(name.rpartition(".")[0])
            yield name, tensor, owner if isinstance(owner, QuantizedLinear) else None


def _layer_forms(path: str, layer: QuantizedLinear, panels: bool) -> dict[str, Form]:
    outputs, inputs = layer.out_features, layer.in_features
    scales: tuple[int, ...]
    if layer.bits == 8:
        weight, scales = Form(torch.int8, (outputs, inputs)), (outputs,)
    elif panels:
        size = outputs // 16, inputs // GROUP * PANEL_BYTES
        return {path + PANELS: Form(torch.uint8, size)}
    else:
        weight = Form(torch.uint8, (outputs, inputs // 2))
        scales = (inputs // GROUP, outputs, 2)
    return {f"{path}.weight": weight, f"{path}.scales": Form(torch.bfloat16, scales)}


def _side_by_side(found: Mapping[str, Item]) -> dict[str, Item]:
    """By names without their numbers, which are those of layers and codebooks, in one order
    whether or not layers are packed already."""
    kinds: dict[str, dict[str, Item]] = {}
    for name, each in found.items():
        kinds.setdefault(re.sub(r"\.\d+\.", ".#.", name), {})[name] = each
    return {name: each for _, kind in sorted(kinds.items()) for name, each in kind.items()}
