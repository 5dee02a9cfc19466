"""What lies between the networks of a frame, one launch each on a GPU. `talker.frame_glue` has
the rules. What does not do the same as the plain form there is not used.
"""

from __future__ import annotations

import ctypes
import logging

import torch
from torch import Tensor

from engine.checkpoints.checkpoint import RESERVED_CODES, SpecialIds
from engine.model.configs import TalkerConfig
from engine.model.talker import Talker
from engine.worker.kernels.cuda import nvrtc
from engine.worker.kernels.cuda.constants import shape_constants
from engine.worker.state.kv_cache import Rows
from engine.worker.state.sampling import CANDIDATES, KNOBS, LEAST_FRAMES, knobs
from engine.worker.state.slot_state import Slots
from engine.worker.talker.frame_glue import FrameGlue, PlainFrameGlue, PredictorInputs

PARTS = ("primitives", "attention", "sampling", "frame_glue")
THREADS = 256
TRIED = 5  # rows that both forms are tried on, of as many slots and one more
_POINTERS = (
    *("hidden", "code", "position", "frame", "seen", "text", "texts", "spoken", "made"),
    *("knobs", "keys", "endless"),
)

log = logging.getLogger("timbre")


class Lanes(ctypes.Structure):
    """Where the slots' rows lie; frame_glue.cu has the same."""

    _fields_ = (*((name, ctypes.c_void_p) for name in _POINTERS), ("limit", ctypes.c_int64))


def lanes(slots: Slots) -> Lanes:
    return Lanes(*(getattr(slots, name).data_ptr() for name in _POINTERS), slots.positions)


def constants(talker: Talker, ids: SpecialIds) -> dict[str, int | float]:
    """What the kernels are compiled for."""
    return shape_constants(talker.code_predictor) | dict(
        VOCABULARY=talker.config.vocab_size, RESERVED=RESERVED_CODES, END=ids.codec_eos,
        KNOBS=KNOBS, PENALTY=KNOBS - 1, LEAST_FRAMES=LEAST_FRAMES,
    )  # fmt: skip


class FusedFrameGlue:
    """As `FrameGlue`; rows are taken by `index` alone."""

    def __init__(self, slots: Slots, module: nvrtc.Module, embeddings: Tensor, pad: Tensor) -> None:
        self._slots, self._embeddings, self._pad = slots, embeddings, pad.contiguous()
        self._open, self._feed = module.kernel("open_rows"), module.kernel("feed_rows")
        self._codes, self._books = slots.seen.shape[1], slots.made.shape[2] - 1
        self._close = module.kernel("close_rows", self._codes * 16 + 128)

    def predictor_inputs(self, rows: Rows, index: Tensor) -> PredictorInputs:
        count, slots, made = len(index), self._slots, self._slots.knobs.new_empty
        hidden, first = slots.hidden.new_empty(2, count, slots.hidden.shape[1])
        table, uniforms = made(count, KNOBS), made(count, self._books)
        position = torch.empty_like(index)
        to = hidden, first, table, uniforms, position
        self._open(count, THREADS, lanes(slots), index, self._embeddings, *to)
        return PredictorInputs(hidden, first, knobs(table)[1], uniforms, position)

    def talker_inputs(
        self, rows: Rows, index: Tensor, codes: Tensor, total: Tensor
    ) -> tuple[Tensor, Tensor]:
        x, made = torch.empty_like(total), index.new_empty(len(index), self._books + 2)
        given = codes.contiguous(), total.contiguous(), self._pad
        self._feed(len(index), THREADS, lanes(self._slots), index, *given, x, made)
        return x, made

    def sample_next(
        self,
        rows: Rows,
        index: Tensor,
        hidden: Tensor,
        logits: Tensor,
        made: Tensor | None,
        count: int | None,
    ) -> None:
        index = index.contiguous()
        given = hidden.contiguous(), logits.contiguous(), made
        ranked = min(count or self._codes, self._codes)
        step = int(made is not None)
        self._close(len(index), THREADS, lanes(self._slots), index, *given, step, ranked)


def fused(slots: Slots, ids: SpecialIds, talker: Talker, pad: Tensor) -> FusedFrameGlue | None:
    """None where no kernel knows the device or the shapes, or where it errs."""
    weight, block = slots.hidden, talker.code_predictor.model.config
    if weight.dtype != torch.bfloat16 or torch.cuda.get_device_capability(weight.device) < (8, 0):
        return None
    if weight.device.index not in (None, torch.cuda.current_device()):  # launches go there
        return None
    known = block.head_dim == 128 and block.heads <= 2 * block.kv_heads
    books = len(talker.code_predictor.lm_head)
    if not known or talker.config.vocab_size % 512 or weight.shape[1] % 8 or books > 15:
        return None
    module = nvrtc.Module(nvrtc.source(*PARTS), nvrtc.constants(constants(talker, ids)))
    embeddings = talker.model.codec_embedding.weight.detach()

    def trial() -> tuple[Slots, FrameGlue, Slots, FrameGlue]:
        plain, ours = tried(talker.config, weight), tried(talker.config, weight)
        forms = (
            PlainFrameGlue(plain, ids, embeddings, pad),
            FusedFrameGlue(ours, module, embeddings, pad),
        )
        return plain, forms[0], ours, forms[1]

    if agree(*trial()):
        return FusedFrameGlue(slots, module, embeddings, pad)
    log.warning("A kernel of the seams errs on this GPU and is not used. Please report it.")
    return None


def tried(config: TalkerConfig, like: Tensor) -> Slots:
    """Slots full of what may be there: text that goes on and text that has ended, each setting."""
    random = torch.Generator().manual_seed(1)
    rows, positions = TRIED + 1, 8

    def whole(below: int, *size: int) -> Tensor:
        return torch.randint(below, size, generator=random)

    slots = Slots.allocate(config, TRIED, positions, like.device, like.dtype)
    slots.hidden.copy_(torch.randn(slots.hidden.shape, generator=random))
    slots.text.copy_(torch.randn(slots.text.shape, generator=random))
    slots.code.copy_(whole(config.vocab_size - RESERVED_CODES, rows))
    slots.position.copy_(whole(positions, rows))
    slots.frame.copy_(torch.arange(rows) % (positions - 1))
    slots.texts.copy_(whole(positions, rows))
    slots.spoken.copy_(whole(2, rows))
    slots.seen.copy_(whole(2, *slots.seen.shape))
    slots.endless.copy_(whole(2, rows))
    slots.keys.copy_(whole(1 << 32, rows, 2))
    sample_mask = (torch.arange(rows) % 3 > 0).float()
    setting = torch.stack((1 + sample_mask, 8 + sample_mask, 1 - sample_mask / 9, sample_mask), 1)
    slots.knobs.copy_(torch.cat((setting, setting, 1 + sample_mask[:, None] / 4), 1))
    return slots


@torch.inference_mode()
def agree(plain: Slots, wanted: FrameGlue, ours: Slots, found: FrameGlue) -> bool:
    """Both forms, each on its own slots of equal content, leave the same there."""
    seams, random = ((plain, wanted), (ours, found)), torch.Generator().manual_seed(2)
    index = torch.tensor([3, 0, 4, 1, 2], device=plain.code.device)
    hidden = torch.randn(TRIED, plain.hidden.shape[1], generator=random).to(plain.hidden)
    logits = (4 * torch.randn(TRIED, plain.seen.shape[1], generator=random)).to(plain.hidden)
    codes = torch.randint(99, (TRIED, plain.made.shape[2] - 1), generator=random).to(index)
    left = []
    for slots, form in seams:
        begun = form.predictor_inputs(index, index)
        x, made = form.talker_inputs(index, index, codes, hidden)
        form.sample_next(index, index, hidden, logits, made, CANDIDATES)
        form.sample_next(index[:2], index[:2], hidden[2:4], logits[2:4], None, 1)
        given = begun.hidden, begun.first, *begun.own.tensors, begun.uniforms, begun.position
        left.append((*given, x, made, *slots.tensors))
    return all(torch.equal(*pair) for pair in zip(*left, strict=True))
