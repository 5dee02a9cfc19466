"""What is kept of a talker has the forms that a later start expects."""

from __future__ import annotations

import pytest
import torch

from engine.model.quantized_linear import QuantizedLinear
from engine.worker.kernels.cpu.nibbles import pack
from engine.worker.loading.model_loader import empty_talker, load_talker
from engine.worker.loading.packed_file import form_of
from engine.worker.loading.packed_talker import packed_arrays, packed_forms
from studio.cli.app_context import MINI


@pytest.mark.parametrize(
    ("weights", "panels"), [("auto", False), ("8bit", False), ("4bit", False), ("4bit", True)]
)
def test_arrays_have_the_forms_of_a_talker_with_and_without_memory(
    weights: str, panels: bool
) -> None:
    talker = load_talker(MINI, torch.device("cpu"), torch.float32, weights)
    for layer in talker.modules():
        if panels and isinstance(layer, QuantizedLinear) and layer.bits == 4:
            assert layer.levels is not None
            layer.panels = torch.from_numpy(pack(layer.levels, layer.scales))
    kept = {name: form_of(array) for name, array in packed_arrays(talker, panels).items()}
    assert kept == packed_forms(talker, panels)
    assert list(kept) == list(packed_forms(empty_talker(MINI, weights)[0], panels))
    assert kept == packed_forms(empty_talker(MINI, weights)[0], panels)
