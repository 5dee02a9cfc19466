"""On a GPU: kernels are selected, and sample as the plain forms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.checkpoints.checkpoint import SpecialIds
from engine.model.configs import TalkerConfig, TransformerConfig
from engine.model.layers import rotary_embedding
from engine.model.predictor import Predictor
from engine.model.talker import Talker, TalkerModel
from engine.worker.kernels.verify import SampleFrame
from engine.worker.state.kv_cache import SlotAttend
from engine.worker.state.sampling import CANDIDATES, SamplingTensors, pick
from engine.worker.state.slot_state import Slots
from engine.worker.talker.decode_step import select_frame_glue
from engine.worker.talker.talker_forward import select_talker_forward

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
WIDE, CODES, BOOKS = 768, 1024, 15


@pytest.fixture(scope="module")
def network() -> Predictor:
    """Heads so confident that rounding seldom changes a sample."""
    block = TransformerConfig(512, 1024, 3, 8, 4, 128, 1e6, 1e-6)
    talker = TransformerConfig(WIDE, 512, 1, 4, 2, 128, 1e6, 1e-6)
    config = TalkerConfig(talker, block, 600, CODES, BOOKS + 1, 9, 9, 99)
    random = torch.Generator("cuda").manual_seed(0)
    with torch.device("cuda"):
        made = Predictor(config).bfloat16().requires_grad_(False)
    for name, weight in made.named_parameters():
        if weight.dim() > 1:
            size = 1.0 if "embedding" in name else weight.shape[1] ** -0.5
            weight.normal_(0, 20 * size if "lm_head" in name else size, generator=random)
        else:
            weight.uniform_(0.5, 1.5, generator=random)
    return made


@pytest.fixture(scope="module", params=["persistent", "partitioned", "tiled"])
def form(request: pytest.FixtureRequest, network: Predictor) -> SampleFrame:
    from engine.worker.kernels.cuda.predictor_kernels import PredictorKernels

    if torch.cuda.get_device_capability() < ((8, 0) if request.param == "tiled" else (9, 0)):
        pytest.skip("this GPU takes the plain form")
    kernels = PredictorKernels(network)
    found: SampleFrame | None = getattr(kernels, request.param)
    assert found is not None, "the kernels do not agree with the plain form"
    return found


def inputs(rows: int) -> tuple[Tensor, Tensor, SamplingTensors, Tensor]:
    random = torch.Generator("cuda").manual_seed(rows)
    hidden, first = torch.randn(2, rows, WIDE, generator=random, device="cuda").bfloat16()
    heat, top_p, sample_mask = torch.rand(3, rows, 1, generator=random, device="cuda")
    top_k = torch.randint(1, CANDIDATES, (rows, 1), generator=random, device="cuda").float()
    # a table's columns, as a step has them
    table = torch.cat((1 / (heat + 0.5), top_k, 1 - top_p / 2, sample_mask.round()), 1)
    uniforms = torch.rand(rows, BOOKS + 1, generator=random, device="cuda")[:, :-1]
    return hidden, first, SamplingTensors(*table.split(1, 1)), uniforms


@pytest.mark.parametrize("rows", [1, 3, 16, 32, 33, 61])
@pytest.mark.parametrize("count", [CANDIDATES, None, 1])
@torch.inference_mode()
def test_samples_equal_the_plain_forms(
    network: Predictor, form: SampleFrame, rows: int, count: int | None
) -> None:
    if rows > getattr(form, "max_rows", rows):
        pytest.skip("another form takes so many")
    hidden, first, sampling, uniforms = inputs(rows)
    codes, total = form(hidden, first, sampling, uniforms, count)
    plain: list[Tensor] = []

    def taken(book: int, logits: Tensor) -> Tensor:
        plain.append(pick(logits, sampling, uniforms[:, book - 1 : book], count))
        return codes[:, book - 1]

    _, sums = network.sample(hidden, first, taken)
    assert torch.equal(total, sums)
    # a draw at the edge between two codes may go either way: one in ten, or two where draws are few
    assert int((torch.stack(plain, 1) != codes).sum()) <= max(2, codes.numel() // 10)


@torch.inference_mode()
def test_repeated_calls_are_equal(form: SampleFrame) -> None:
    hidden, first, sampling, uniforms = inputs(16)
    wanted, _ = form(hidden, first, sampling, uniforms, CANDIDATES)
    for _ in range(20):
        codes, _ = form(hidden, first, sampling, uniforms, CANDIDATES)
        assert torch.equal(codes, wanted)


@torch.inference_mode()
def test_frame_glue_has_kernels_that_agree() -> None:
    from engine.worker.kernels.cuda.glue_kernels import FusedFrameGlue

    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("this GPU takes the plain form")
    block = TransformerConfig(WIDE, 512, 1, 4, 2, 128, 1e6, 1e-6)
    with torch.device("cuda"):
        talker = Talker(TalkerConfig(block, block, 3072, CODES, BOOKS + 1, 9, 9, 99)).bfloat16()
    ids = SpecialIds(*range(7), codec_eos=2150, think=8, nothink=9, think_bos=10, think_eos=11)
    like = talker.model.codec_embedding.weight.detach()
    slots = Slots.allocate(talker.config, 4, 64, like.device, like.dtype)
    assert isinstance(select_frame_glue(slots, ids, talker, like[0]), FusedFrameGlue)


@torch.inference_mode()
def test_few_rows_run_in_one_launch() -> None:
    from engine.worker.kernels.cuda.talker_kernels import build

    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("this GPU goes layer by layer")
    block = TransformerConfig(1024, 1024, 2, 8, 4, 128, 1e6, 1e-6)
    config = TalkerConfig(block, block, 3072, CODES, BOOKS + 1, 9, 9, 99)
    with torch.device("cuda"):
        stack = TalkerModel(config).bfloat16()
        everywhere = torch.arange(256)[None]
    cos, sin = (part[0, 0].bfloat16() for part in rotary_embedding(everywhere, 128, 1e6))
    slots = Slots.allocate(config, 4, 256, cos.device, torch.bfloat16)
    assert build(stack, slots, (cos, sin)) is not None

    def plain(x: Tensor, index: Tensor, positions: Tensor) -> Tensor:
        attend = SlotAttend(slots.cache, index, index, positions, int(positions.max()) + 1)
        return stack.run(x, (cos[positions][:, None], sin[positions][:, None]), attend)

    talk = select_talker_forward(stack, slots, cos, sin, plain)
    assert talk is not None
    assert talk.persistent is not None


@torch.inference_mode()
def test_what_is_posted_equals_what_lies_behind_barriers(
    network: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.worker.kernels.cuda import predictor_persistent
    from engine.worker.kernels.cuda.predictor_kernels import PredictorKernels

    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("this GPU has no kernel of one launch")
    form = PredictorKernels(network).persistent
    assert isinstance(form, predictor_persistent.PersistentPredictor)
    drawn = [inputs(rows) for rows in (1, 2, 16, 3, 1, 8, 13, 4)]

    def heard() -> list[Tensor]:
        found = []
        for hidden, first, each, uniforms in (
            drawn * 10
        ):  # either half after launches of other sizes
            codes, total = form(hidden, first, each, uniforms, CANDIDATES)
            logits = predictor_persistent.last_logits(form.scratch, len(hidden)).clone()
            found += [codes, total, logits]
        return found

    posted = heard()
    monkeypatch.setattr(predictor_persistent, "POSTED_ROWS", 0)
    for found, wanted in zip(posted, heard(), strict=True):
        assert torch.equal(found, wanted)
