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

TABLE = "code_predictor.model.codec_embedding.0.weight"


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


@pytest.mark.parametrize(
    ("weights", "kind"),
    [("full", torch.float32), ("8bit", torch.bfloat16), ("4bit", torch.bfloat16)],
)
def test_embeddings_of_codes_lose_nothing_unless_layers_have_few_bits(
    weights: str, kind: torch.dtype
) -> None:
    talker = load_talker(MINI, torch.device("cpu"), torch.float32, weights)
    full = load_talker(MINI, torch.device("cpu"), torch.float32, "full")
    wanted = full.get_parameter(TABLE).to(kind)
    assert torch.equal(packed_arrays(talker, panels=False)[TABLE], wanted)
    ids = torch.arange(len(wanted))
    assert torch.equal(talker.code_predictor.embed(1, ids), wanted.float())
