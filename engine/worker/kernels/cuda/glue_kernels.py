"""CUDA kernels for the work between the networks of a frame, by the rules of
`kernels.frame_glue`."""

from __future__ import annotations

import ctypes
import math

import torch
from torch import Tensor

from engine.checkpoints.checkpoint import RESERVED_CODES, SpecialIds
from engine.model.configs import TalkerConfig
from engine.model.talker import Talker
from engine.worker.kernels.cuda import nvrtc
from engine.worker.kernels.cuda.constants import predictor_constants
from engine.worker.kernels.frame_glue import FrameGlue, PlainFrameGlue, PredictorInputs
from engine.worker.lean_torch import seeded
from engine.worker.state.kv_cache import Rows
from engine.worker.state.sampling import CANDIDATES, MIN_FRAMES, SAMPLING_COLUMNS, sampling_tensors
from engine.worker.state.slot_state import Slots

SOURCES = ("primitives", "attention", "sampling", "frame_glue")
THREADS = 256
TRIAL_SLOTS = 5  # rows for the comparison; there is one slot more
_POINTERS = (
    *("hidden", "code", "position", "frame", "seen", "text", "texts", "spoken", "codes"),
    *("sampling", "keys", "endless"),
)


class SlotPointers(ctypes.Structure):
    """The slots' tensors; frame_glue.cu has the same struct."""

    _fields_ = (*((name, ctypes.c_void_p) for name in _POINTERS), ("limit", ctypes.c_int64))


def slot_pointers(slots: Slots) -> SlotPointers:
    tensors = (
        *(slots.hidden, slots.code, slots.position, slots.frame, slots.seen, slots.text),
        *(slots.texts, slots.spoken, slots.codes, slots.sampling, slots.keys, slots.endless),
    )
    return SlotPointers(*(tensor.data_ptr() for tensor in tensors), slots.positions)


def constants(talker: Talker, ids: SpecialIds) -> dict[str, int | float]:
    """Compile-time constants of the kernels."""
    return predictor_constants(talker.code_predictor) | dict(
        VOCABULARY=talker.config.vocab_size, RESERVED=RESERVED_CODES, END=ids.codec_eos,
        SETTINGS=SAMPLING_COLUMNS, PENALTY=SAMPLING_COLUMNS - 1, MIN_FRAMES=MIN_FRAMES,
    )  # fmt: skip


def source(talker: Talker, ids: SpecialIds) -> nvrtc.Source:
    """The kernels of a talker."""
    return nvrtc.read_source(SOURCES, constants(talker, ids))


class FusedFrameGlue:
    """Implements `FrameGlue`; rows are read by `index` alone."""

    def __init__(self, slots: Slots, module: nvrtc.Module, embeddings: Tensor, pad: Tensor) -> None:
        self._slots, self._module = slots, module
        self._embeddings, self._pad = embeddings, pad.contiguous()
        self._vocabulary, self._books = slots.seen.shape[1], slots.codes.shape[2] - 1
        self._predictor_inputs = module.kernel("predictor_inputs")
        self._talker_inputs = module.kernel("talker_inputs")
        self._sample_next = module.kernel("sample_next", self._vocabulary * 16 + 128)

    def over(self, slots: Slots) -> FusedFrameGlue:
        """The same kernels over other slots."""
        return FusedFrameGlue(slots, self._module, self._embeddings, self._pad)

    def plain(self, slots: Slots, ids: SpecialIds) -> PlainFrameGlue:
        """The plain form for the comparison."""
        return PlainFrameGlue(slots, ids, self._embeddings, self._pad)

    def predictor_inputs(self, rows: Rows, index: Tensor) -> PredictorInputs:
        count, slots, empty = len(index), self._slots, self._slots.sampling.new_empty
        hidden, first = slots.hidden.new_empty(2, count, slots.hidden.shape[1])
        settings, uniforms = empty(count, SAMPLING_COLUMNS), empty(count, self._books)
        position = torch.empty_like(index)
        outputs = hidden, first, settings, uniforms, position
        self._predictor_inputs(
            count, THREADS, slot_pointers(slots), index, self._embeddings, *outputs
        )
        return PredictorInputs(hidden, first, sampling_tensors(settings)[1], uniforms, position)

    def talker_inputs(
        self, rows: Rows, index: Tensor, codes: Tensor, total: Tensor
    ) -> tuple[Tensor, Tensor]:
        x, frame = torch.empty_like(total), index.new_empty(len(index), self._books + 2)
        inputs = codes.contiguous(), total.contiguous(), self._pad
        self._talker_inputs(
            len(index), THREADS, slot_pointers(self._slots), index, *inputs, x, frame
        )
        return x, frame

    def sample_next(
        self,
        rows: Rows,
        index: Tensor,
        hidden: Tensor,
        logits: Tensor,
        frame: Tensor | None,
        count: int | None,
    ) -> None:
        index = index.contiguous()
        inputs = hidden.contiguous(), logits.contiguous(), frame
        ranked = min(count or self._vocabulary, self._vocabulary)
        advance = int(frame is not None)
        self._sample_next(
            len(index), THREADS, slot_pointers(self._slots), index, *inputs, advance, ranked
        )


def build(slots: Slots, ids: SpecialIds, talker: Talker, pad: Tensor) -> FusedFrameGlue | None:
    """None where the kernels don't support the device or the sizes."""
    weight, config = slots.hidden, talker.code_predictor.model.config
    if weight.dtype != torch.bfloat16 or torch.cuda.get_device_capability(weight.device) < (8, 0):
        return None
    if weight.device.index not in (
        None,
        torch.cuda.current_device(),
    ):  # where launches go
        return None
    known = config.head_dim == 128 and config.heads <= 2 * config.kv_heads
    books = len(talker.code_predictor.lm_head)
    if not known or talker.config.vocab_size % 512 or weight.shape[1] % 8 or books > 15:
        return None
    module = nvrtc.Module(source(talker, ids))
    return FusedFrameGlue(slots, module, talker.model.codec_embedding.weight.detach(), pad)


def difference(fused: FusedFrameGlue, ids: SpecialIds, talker: Talker) -> float:
    """0 if both forms give equal slots and outputs, else infinite."""
    like = talker.model.codec_embedding.weight
    ours, plain = (trial_slots(talker.config, like) for _ in range(2))
    same = same_results(plain, fused.plain(plain, ids), ours, fused.over(ours))
    return 0.0 if same else math.inf


def trial_slots(config: TalkerConfig, like: Tensor) -> Slots:
    """Slots in all states: text that continues or has ended, all kinds of sampling."""
    random = seeded(1)
    rows, positions = TRIAL_SLOTS + 1, 8

    def integers(below: int, *size: int) -> Tensor:
        return torch.randint(below, size, generator=random)

    slots = Slots.allocate(config, TRIAL_SLOTS, positions, like.device, like.dtype)
    slots.hidden.copy_(torch.randn(slots.hidden.shape, generator=random))
    slots.text.copy_(torch.randn(slots.text.shape, generator=random))
    slots.code.copy_(integers(config.vocab_size - RESERVED_CODES, rows))
    slots.position.copy_(integers(positions, rows))
    slots.frame.copy_(torch.arange(rows) % (positions - 1))
    slots.texts.copy_(integers(positions, rows))
    slots.spoken.copy_(integers(2, rows))
    slots.seen.copy_(integers(2, *slots.seen.shape))
    slots.endless.copy_(integers(2, rows))
    slots.keys.copy_(integers(1 << 32, rows, 2))
    mask = (torch.arange(rows) % 3 > 0).float()
    setting = torch.stack((1 + mask, 8 + mask, 1 - mask / 9, mask), 1)
    slots.sampling.copy_(torch.cat((setting, setting, 1 + mask[:, None] / 4), 1))
    return slots


@torch.inference_mode()
def same_results(plain: Slots, wanted: FrameGlue, ours: Slots, found: FrameGlue) -> bool:
    """Whether both forms, on equal copies of slots, give equal results."""
    random = seeded(2)
    index = torch.tensor([3, 0, 4, 1, 2], device=plain.code.device)
    hidden = torch.randn(TRIAL_SLOTS, plain.hidden.shape[1], generator=random).to(plain.hidden)
    logits = 4 * torch.randn(TRIAL_SLOTS, plain.seen.shape[1], generator=random)
    logits = logits.to(plain.hidden)
    codes = torch.randint(99, (TRIAL_SLOTS, plain.codes.shape[2] - 1), generator=random).to(index)
    results = []
    for slots, glue in ((plain, wanted), (ours, found)):
        inputs = glue.predictor_inputs(index, index)
        x, frame = glue.talker_inputs(index, index, codes, hidden)
        glue.sample_next(index, index, hidden, logits, frame, CANDIDATES)
        glue.sample_next(index[:2], index[:2], hidden[2:4], logits[2:4], None, 1)
        outputs = inputs.hidden, inputs.first, *inputs.sampling.tensors, inputs.uniforms
        results.append((*outputs, inputs.position, x, frame, *slots.tensors))
    return all(torch.equal(*pair) for pair in zip(*results, strict=True))
