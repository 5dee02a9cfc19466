"""A talker's weights in the order in which kernels read them, to be kept and mapped.

Equal layers lie side by side, so that a kernel takes all of them as one array without a copy. The
table of the text stays in the checkpoint, if it is mapped there. Full weights are kept twice, in
float32 and in bfloat16, and only where that holds them exactly. Knows no files.
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
from engine.worker.loading.weight_loader import MAP_FROM

TEXT_TABLE = "model.text_embedding.weight"
PANELS = ".panels"
NARROW = ".narrow"  # a full layer's weights in bfloat16
PLAIN = "text_projection"  # no kernel takes it
PANEL_BYTES = 320  # of 16 outputs and a group of inputs, see kernels.cpu.nibbles
Item = TypeVar("Item")


def packed_forms(talker: Talker, panels: bool) -> dict[str, Form]:
    """The forms of a talker's packed weights. Its layers are quantised already; they may be without
    memory. `panels`: layers of 4 bits are kept as panels alone."""
    found = {}
    for name, tensor, layer in _tensors(talker):
        if layer is None or name.endswith(".bias"):
            found[name] = form_of(tensor)
        elif name.endswith(".weight"):  # scales are there only where memory is
            found |= _layer_forms(name.removesuffix(".weight"), layer, panels)
    for path, linear in _full_layers(talker):
        found[path + NARROW] = Form(torch.int16, tuple(linear.weight.shape))
    return _side_by_side(found)


def loaded_bytes(talker: Talker) -> int:
    """Bytes that the weights of a talker without memory take once it is loaded."""
    forms = packed_forms(talker, panels=False)
    table = 0 if TEXT_TABLE in forms else talker.get_parameter(TEXT_TABLE).nbytes
    return table + sum(form.bytes for name, form in forms.items() if not name.endswith(NARROW))


def packed_arrays(talker: Talker, panels: bool) -> dict[str, Tensor]:
    """The same of a talker that is loaded."""
    found = {}
    for name, tensor, layer in _tensors(talker):
        if panels and layer is not None and layer.bits == 4:
            if name.endswith(".weight"):  # that is the panels, where prompts take these too
                array = tensor if layer.panels is None else layer.panels
                found[name.removesuffix(".weight") + PANELS] = array
            elif not name.endswith(".scales"):
                found[name] = tensor
        else:
            found[name] = tensor
    for path, linear in _full_layers(talker):
        found[path + NARROW] = linear.weight.detach().bfloat16().view(torch.int16)
    return _side_by_side(found)


def fits_bfloat16(talker: Talker) -> bool:
    """Whether bfloat16 holds the weights of all layers that are full exactly."""
    weights = (linear.weight.detach() for _, linear in _full_layers(talker))
    return all(torch.equal(weight.bfloat16().float(), weight) for weight in weights)


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
        elif leaf == NARROW[1:]:
            owner.narrow = tensor
        elif leaf in owner._parameters:
            setattr(owner, leaf, nn.Parameter(tensor, requires_grad=False))
        elif leaf in owner._buffers:
            setattr(owner, leaf, tensor)


def _tensors(talker: Talker) -> Iterator[tuple[str, Tensor, QuantizedLinear | None]]:
    """What is kept, by name, and the quantised layer that it belongs to."""
    for name, tensor in talker.state_dict(keep_vars=True).items():
        if name != TEXT_TABLE or tensor.nbytes < MAP_FROM:
            owner = talker.get_submodule(name.rpartition(".")[0])
            yield name, tensor, owner if isinstance(owner, QuantizedLinear) else None


def _full_layers(talker: Talker) -> Iterator[tuple[str, nn.Linear]]:
    """The layers whose full weights kernels use; none if they have few bits."""
    if any(isinstance(each, QuantizedLinear) for each in talker.modules()):
        return
    for path, each in talker.named_modules():
        if isinstance(each, nn.Linear) and not path.startswith(PLAIN):
            yield path, each


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
