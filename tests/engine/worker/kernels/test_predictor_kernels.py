"""The predictor's kernels, compiled for the CPU, equal the plain predictor.

Every thread of the grid is a fiber (twin.cpp); the arithmetic is the GPU's.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from bench.gpu.cards import CARDS, talker_of
from engine.model.configs import TransformerConfig
from engine.worker.kernels.cuda import predictor_kernels, predictor_persistent, predictor_tiled
from engine.worker.kernels.cuda.constants import predictor_tables
from engine.worker.kernels.cuda.launch_config import (
    MAX_ROWS,
    STATIC,
    LaunchConfig,
    find_launch_config,
)
from engine.worker.kernels.cuda.predictor_persistent import (
    allocate_scratch,
    constants,
    kernel_arguments,
    last_logits,
    pack_weights,
)
from engine.worker.kernels.verify import plain_logits
from engine.worker.loading.model_loader import load_talker
from engine.worker.state.sampling import CANDIDATES, SamplingTensors, pick
from tests.conftest import golden_folders
from tests.engine.worker.kernels.small import (
    BOOKS,
    CODES,
    LAUNCHES,
    WIDE,
    TwinModule,
    compiled,
    distance,
    inputs,
    network,
)

PUBLISHED_CODES = 2048
FEW_ENTRY = """
extern "C" bool run_predict(const PredictorArguments* args, unsigned long shared) {
  int partitions = (args->rows + args->partition_rows - 1) / args->partition_rows;
  return run_grid(partitions * GRID, shared, [=] { predict(*args); });
}
"""
MANY_ENTRY = LAUNCHES + "RUN(add_norm) RUN(gate) RUN(attend_rows) RUN(draw_rows) RUN(sum_rows)"


class Twin:
    """The persistent kernel, for so many tiles of 16 rows and partitions, with or without
    barriers."""

    def __init__(self, folder: Path, tiles: int, partitions: int, posted: bool) -> None:
        self.network, self.rows, self.partitions = (
            network(),
            16 * tiles * partitions - 3,
            partitions,
        )
        # products whole, or in parts of which the largest fills the ring
        stages, most, parts = ((70, 64, (1, 1, 1, 1)), (32, 32, (8, 4, 8, 8)))[tiles - 1]
        width = self.network.model.config.hidden_size
        self.launch = LaunchConfig(2, 256, stages, 8 * most * 512 + 512, MAX_ROWS * width, parts)
        values = constants(self.network, self.launch, tiles, posted)
        library = compiled(folder, f"few{tiles}", predictor_persistent.SOURCES, FEW_ENTRY, values)
        self._run = ctypes.CDLL(str(library)).run_predict
        self._run.restype, self._run.argtypes = ctypes.c_bool, (ctypes.c_void_p, ctypes.c_ulong)
        self.weights = pack_weights(self.network, self.launch) | predictor_tables(self.network)
        scratch = allocate_scratch(self.network, self.network.model.norm.weight)
        self.posted = {name: scratch[name] for name in ("posted", "launches")}  # of all launches

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Codes, sums, and the logits of the last codebook."""
        scratch = allocate_scratch(self.network, hidden, self.partitions)
        for name, tensor in scratch.items():
            if name not in ("barrier", *self.posted):
                tensor.fill_(float("nan"))
        scratch |= self.posted
        made = torch.full((len(hidden), BOOKS), -1), torch.full_like(first, float("nan"))
        begin = self.network.small_to_mtp_projection(torch.stack((hidden, first)))
        each = -(-len(hidden) // min(self.partitions, len(hidden)))
        arguments = kernel_arguments(
            self.weights | scratch, begin, first, sampling, uniforms, count, *made, each
        )
        assert self._run(ctypes.addressof(arguments), self.launch.shared), "blocks wait forever"
        assert not scratch["barrier"].any()
        return *made, last_logits(scratch, len(hidden))


FORMS = {
    "few": (1, 1, False), "posted": (1, 1, True), "more": (2, 1, False), "partitions": (1, 2, False)
}  # fmt: skip


@pytest.fixture(scope="module", params=FORMS.values(), ids=FORMS)
def twin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Twin:
    return Twin(tmp_path_factory.mktemp("twin"), *request.param)


def at(logits: Tensor, ids: Tensor) -> Tensor:
    return logits.gather(1, ids[:, None])


@pytest.mark.parametrize("count", [CANDIDATES, None, 1])
@torch.inference_mode()
def test_one_launch_equals_the_plain_predictor(twin: Twin, count: int | None) -> None:
    hidden, first, sampling, uniforms = inputs(twin.rows if count == CANDIDATES else 2, 5)
    codes, total, logits = twin(hidden, first, sampling, uniforms, count)
    plain, sums = plain_logits(twin.network, hidden, first, codes)
    exact, _ = plain_logits(network().double(), hidden.double(), first.double(), codes)
    assert torch.equal(total, sums)
    error = distance(plain[:, -1], exact[:, -1])
    assert distance(logits, exact[:, -1]) < 1.2 * error < 0.02
    wanted = pick(logits, sampling, uniforms[:, -1:], count)  # of equal logits either may be taken
    assert torch.equal(at(logits, wanted), at(logits, codes[:, -1]))


@torch.inference_mode()
def test_a_row_alone_equals_the_row_in_a_batch(twin: Twin) -> None:
    hidden, first, sampling, uniforms = inputs(twin.rows, 7)
    codes, total, logits = twin(hidden, first, sampling, uniforms, CANDIDATES)
    one = slice(twin.rows - 1, twin.rows)
    sampling = SamplingTensors(*(column[one] for column in sampling.tensors))
    alone = twin(hidden[one], first[one], sampling, uniforms[one], CANDIDATES)
    for found, wanted in zip(alone, (codes, total, logits), strict=True):
        assert torch.equal(found, wanted[one])


@pytest.mark.parametrize(
    ("rows", "count"), [pytest.param(19, CANDIDATES, marks=pytest.mark.slow), (3, None), (3, 1)]
)
@torch.inference_mode()
def test_the_tiled_kernels_sample_as_the_plain_predictor(
    rows: int,
    count: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = network(WIDE)
    for head in net.lm_head:  # so confident that rounding seldom changes a sample
        head.weight.mul_(20)
    values = predictor_tiled.predictor_constants(net)
    library = compiled(tmp_path, "many", predictor_tiled.SOURCES, MANY_ENTRY, values)
    monkeypatch.setattr(predictor_tiled.nvrtc, "Module", lambda *_: TwinModule(library))
    form = predictor_tiled.TiledPredictor(net, predictor_tables(net))
    hidden, first, sampling, uniforms = inputs(rows, 3)
    codes, total = form(hidden, first, sampling, uniforms, count)
    logits, sums = plain_logits(net, hidden, first, codes)
    assert torch.equal(total, sums)
    plain = [pick(logits[:, i], sampling, uniforms[:, i : i + 1], count) for i in range(BOOKS)]
    assert (torch.stack(plain, 1) == codes).float().mean() > 0.8  # 33 to 36 of 38, by processor
    assert codes.max() < CODES


@pytest.mark.parametrize("folder", golden_folders(), ids=lambda folder: folder.name)
def test_small_predictors_have_no_launch_config(folder: Path) -> None:
    talker = load_talker(folder, torch.device("cpu"), torch.float32)
    predictor = talker.code_predictor
    assert (
        find_launch_config(predictor.model.config, 132, 232_448, predictor.lm_head[0].out_features)
        is None
    )


@pytest.mark.parametrize("width", [1024, 2048])
@pytest.mark.parametrize("processors", [132, 114, 78])
def test_published_sizes_have_a_launch_config(width: int, processors: int) -> None:
    for config, codes in (
        (TransformerConfig(width, 3 * width, 28, 16, 8, 128, 1e6, 1e-6), 0),
        (TransformerConfig(1024, 3072, 5, 16, 8, 128, 1e6, 1e-6), 2048),
    ):
        found = find_launch_config(config, processors, 232_448, codes)
        assert found is not None
        assert found.blocks == (128 if processors == 132 else 64)
        assert found.shared <= 232_448 - STATIC


@pytest.mark.parametrize("width", [1024, 2048])
def test_cards_with_little_shared_memory_have_a_launch_config(width: int) -> None:
    shared = 101_376  # of an RTX 5090
    talker = TransformerConfig(width, 3 * width, 28, 16, 8, 128, 1e6, 1e-6)
    predictor = TransformerConfig(1024, 3072, 5, 16, 8, 128, 1e6, 1e-6)
    for config, codes in ((talker, 0), (predictor, 2048)):
        found = find_launch_config(config, 170, shared, codes)
        if width == 2048 and not codes:
            assert found is None  # its residual and a part of its weights take more
            continue
        assert found is not None
        assert found.blocks == 128
        assert found.shared <= shared - STATIC


def test_every_kernel_that_serves_is_compiled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an H100, for the sizes that are published."""
    card = next(card for card in CARDS if card.name == "H100")
    properties = SimpleNamespace(
        major=card.capability[0],
        multi_processor_count=card.processors,
        shared_memory_per_block_optin=card.shared,
    )
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: card.capability)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    predictor = talker_of("0.6B").code_predictor
    ahead = list(predictor_kernels.sources(predictor))
    assert len({*ahead}) == len(ahead) == 4
    processors = {rows: card.processors // -(-rows // MAX_ROWS) for rows in range(1, 65)}
    for rows, count in processors.items():
        launch = find_launch_config(predictor.model.config, count, card.shared, PUBLISHED_CODES)
        assert launch
        form = predictor_persistent.kernel_form(rows)
        assert predictor_persistent.source(predictor, launch, *form) in ahead
    assert predictor_tiled.source(predictor) in ahead
