"""The kernels between a frame's networks, compiled for the CPU, equal the plain form."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.checkpoints.checkpoint import SpecialIds
from engine.model.configs import TalkerConfig, TransformerConfig
from engine.model.talker import Talker
from engine.worker.kernels.cuda import glue_kernels
from engine.worker.kernels.frame_glue import FrameGlue, PlainFrameGlue
from engine.worker.state.sampling import CANDIDATES
from engine.worker.state.slot_state import Slots
from tests.engine.worker.kernels.small import LAUNCHES, TwinModule, compiled

WIDE, VOCABULARY = 512, 2048
BLOCK = TransformerConfig(WIDE, 512, 1, 4, 2, 128, 1e6, 1e-6)
SHAPE = TalkerConfig(BLOCK, BLOCK, VOCABULARY, 512, 4, 9, 9, 99)
END = VOCABULARY - 800
IDS = SpecialIds(*range(7), codec_eos=END, think=8, nothink=9, think_bos=10, think_eos=11)
ENTRY = LAUNCHES + "RUN(predictor_inputs) RUN(talker_inputs) RUN(sample_next)"


@pytest.fixture(scope="module")
def talker() -> Talker:
    torch.manual_seed(0)
    return Talker(SHAPE).bfloat16().requires_grad_(False)


@pytest.fixture(scope="module")
def module(talker: Talker, tmp_path_factory: pytest.TempPathFactory) -> TwinModule:
    folder = tmp_path_factory.mktemp("glue")
    return TwinModule(
        compiled(folder, "glue", glue_kernels.SOURCES, ENTRY, glue_kernels.constants(talker, IDS))
    )


Pair = tuple[Slots, FrameGlue]


def both_forms(talker: Talker, module: TwinModule) -> tuple[Pair, Pair]:
    """The plain form and the kernels, each over its own slots of equal content."""
    embeddings = talker.model.codec_embedding.weight
    pad = embeddings[7].clone()
    plain, ours = (glue_kernels.trial_slots(SHAPE, embeddings) for _ in range(2))
    return (plain, PlainFrameGlue(plain, IDS, embeddings, pad)), (
        ours,
        glue_kernels.FusedFrameGlue(ours, module, embeddings, pad),  # type: ignore[arg-type]
    )


def test_kernels_equal_the_plain_form(talker: Talker, module: TwinModule) -> None:
    (plain, wanted), (ours, found) = both_forms(talker, module)
    assert glue_kernels.same_results(plain, wanted, ours, found)


@pytest.mark.parametrize("name", ["code", "frame", "seen", "keys", "sampling", "spoken"])
def test_a_difference_in_any_input_changes_the_outputs(
    talker: Talker, module: TwinModule, name: str
) -> None:
    """Kernels read every tensor: other rows in, other codes or inputs out."""
    (plain, wanted), (ours, found) = both_forms(talker, module)
    kept: Tensor = getattr(ours, name)
    before = kept.clone()
    kept.copy_(kept.logical_not() if kept.dtype == torch.bool else kept + 1)
    made = [outputs_of(slots, form) for slots, form in ((plain, wanted), (ours, found))]
    assert not all(torch.equal(*pair) for pair in zip(*made, strict=True))
    assert not torch.equal(kept, before)


def outputs_of(slots: Slots, form: FrameGlue) -> tuple[Tensor, ...]:
    """All outputs of the kernels, without values that are passed through."""
    index, random = torch.tensor([3, 1]), torch.Generator().manual_seed(2)
    hidden = torch.randn(2, WIDE, generator=random).bfloat16()
    logits = (4 * torch.randn(2, VOCABULARY, generator=random)).bfloat16()
    inputs = form.predictor_inputs(index, index)
    x, made = form.talker_inputs(index, index, torch.randint(99, (2, 3), generator=random), hidden)
    form.sample_next(index, index, hidden, logits, made, CANDIDATES)
    return (*inputs.sampling.tensors, inputs.first, inputs.uniforms, x, made, slots.code[index])


@pytest.mark.parametrize("count", [CANDIDATES, None, 1])
@pytest.mark.parametrize("behind_prompt", [False, True])
@torch.inference_mode()
def test_samples_equal_the_plain_forms(
    talker: Talker, module: TwinModule, count: int | None, behind_prompt: bool
) -> None:
    index = torch.tensor([4, 2, 0])
    random = torch.Generator().manual_seed(5)
    logits = (3 * torch.randn(3, VOCABULARY, generator=random)).bfloat16()
    logits[:, END] = 30  # the end, where it is allowed
    logits[0, 5:9] = 29  # and equal ones behind it
    hidden = torch.randn(3, WIDE, generator=random).bfloat16()
    left = []
    for slots, form in both_forms(talker, module):
        made = None if behind_prompt else torch.zeros(3, 5, dtype=torch.long)
        form.sample_next(index, index, hidden, logits, made, count)
        left.append((slots.code, slots.seen, slots.frame, slots.position, slots.hidden, made))
    for found, wanted in zip(*left, strict=True):
        assert found is wanted is None or torch.equal(found, wanted)  # type: ignore[arg-type]
