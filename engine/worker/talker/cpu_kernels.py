"""Puts frames and prompts on numba's kernels, on a CPU where these run and agree with the plain
form.

They take full weights, which are read as bfloat16 where that holds them exactly, weights of 8 bits,
and of 4 on x86-64 with AVX2. Neither operators nor Python run between layers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from engine.model.quantized_linear import QuantizedLinear
from engine.worker.backends import Candidate, select_backend
from engine.worker.kernels.verify import TOLERANCE, predictor_difference
from engine.worker.lean_torch import seeded
from engine.worker.state.sampling import CANDIDATES, SamplingTensors
from engine.worker.talker.decode_step import FrameStep

if TYPE_CHECKING:
    from engine.worker.kernels.cpu.first_codes import CpuFrameGlue
    from engine.worker.kernels.cpu.predictor import CpuPredictor
    from engine.worker.kernels.cpu.prompts import CpuPrompts
    from engine.worker.kernels.cpu.talker import CpuTalker
    from engine.worker.kernels.cpu.threads import ThreadTeam
    from engine.worker.loading.start_cache import KernelProof

TRIAL_PROMPT = 20  # positions before the one that is compared
TALKER_TOLERANCE = 0.05  # relative: torch's products of 8 bits round their inputs to bfloat16


class CpuKernels(NamedTuple):
    team: ThreadTeam
    predict: CpuPredictor
    talk: CpuTalker
    glue: CpuFrameGlue


def use_cpu_kernels(
    step: FrameStep, threads: int, proof: KernelProof | None = None
) -> ThreadTeam | None:
    """Use the kernels for a step's predictor and talker, each on the number of threads, up to
    `threads`, that it is fastest with. Returns their threads; None: the plain form stays.

    What a `proof` says is not tried again; else it is told what was found.
    """
    known = proof.known() if proof else None
    candidate = Candidate(
        "the kernels for CPUs",
        lambda: _build(step, threads),
        lambda kernels: 0.0 if known else _difference(step, kernels),
    )
    kernels = select_backend([candidate], None, 1.0)
    for layer in _quantized(step.talker):
        layer.levels, layer.panels = None, layer.panels if kernels else None
    if kernels is None:
        return None
    if known:
        kernels.predict.threads = known.get("predict", threads)
        kernels.talk.threads = known.get("talk", threads)
    else:
        _choose_threads(step, kernels)
    step.predict.use(kernels.predict)
    step.talk_one, step.logits, step.glue = kernels.talk, kernels.talk.logits, kernels.glue
    if not known or "prompts" in known:
        _use_prompt_kernel(step, kernels, trusted=bool(known))
    if proof and not known:
        found = {"predict": kernels.predict.threads, "talk": kernels.talk.threads}
        proof.keep({**found, "prompts": threads} if step.talk_prompts else found)
    return kernels.team


def _quantized(network: nn.Module) -> list[QuantizedLinear]:
    return [each for each in network.modules() if isinstance(each, QuantizedLinear)]


def _use_prompt_kernel(step: FrameStep, kernels: CpuKernels, trusted: bool) -> None:
    """Use the kernels of prompts for their layers, and for the products that embed them."""
    candidate = Candidate(
        "the kernel of prompts",
        lambda: _build_prompts(step, kernels),
        lambda kernel: 0.0 if trusted else _prompt_difference(step, kernel),
    )
    prompts = select_backend([candidate], None, 1.0)
    if prompts is None:
        return
    step.talk_prompts = prompts
    multiply = prompts.products
    for layer in _quantized(step.talker):
        if layer.panels is not None:
            layer.take_panels(multiply)
    for layer in _quantized(step.talker.text_projection):
        layer.multiply = multiply


def _build_prompts(step: FrameStep, kernels: CpuKernels) -> CpuPrompts | None:
    from engine.worker.kernels.cpu.prompts import CpuPrompts
    from engine.worker.kernels.cpu.row_products import bits_of, supports

    if not supports(bits_of(kernels.talk.weights.qkv)):
        return None
    cos, sin = (part.numpy() for part in step.rotary)
    return CpuPrompts(
        step.talker.model.config, kernels.talk.weights, (cos, sin), step.slots.cache, kernels.team
    )


@torch.inference_mode()
def _prompt_difference(step: FrameStep, prompts: CpuPrompts) -> float:
    """The difference from the plain form, in multiples of the tolerance."""
    slots, random = step.slots, seeded(0)
    length = min(TRIAL_PROMPT, slots.positions)
    x = torch.randn(1, length, slots.hidden.shape[1], generator=random)
    row, at = torch.tensor([slots.padding_row]), torch.arange(length)[None]
    plain = step.run(x, row, row, at, length)[0]
    hidden = prompts(x[0], [(slots.padding_row, 0, length)])
    return float((hidden - plain).norm() / plain.norm()) / TALKER_TOLERANCE


def _build(step: FrameStep, threads: int) -> CpuKernels | None:
    from engine.worker.kernels.cpu.first_codes import CpuFrameGlue  # needs numba
    from engine.worker.kernels.cpu.layers import supports
    from engine.worker.kernels.cpu.predictor import CpuPredictor
    from engine.worker.kernels.cpu.talker import CpuTalker
    from engine.worker.kernels.cpu.threads import ThreadTeam

    talker, slots = step.talker, step.slots
    if not supports(talker.model) or not supports(talker.code_predictor.model):
        return None
    team = ThreadTeam(threads)
    return CpuKernels(
        team,
        CpuPredictor(talker.code_predictor, slots.padding_row, team),
        CpuTalker(talker, slots.cache, *step.rotary, team),
        CpuFrameGlue(slots, step.ids, talker, step.pad),
    )


@torch.inference_mode()
def _difference(step: FrameStep, kernels: CpuKernels) -> float:
    """The difference from the plain form, in multiples of the tolerance."""
    from engine.worker.kernels.cpu.first_codes import agrees

    if not agrees(step.ids, step.talker, step.pad):
        return math.inf
    predictor = predictor_difference(step.talker.code_predictor, kernels.predict, 1)
    slots, random = step.slots, seeded(0)
    length = min(TRIAL_PROMPT, slots.positions - 1)
    x = torch.randn(1, length + 1, slots.hidden.shape[1], generator=random)
    row, at = torch.tensor([slots.padding_row]), torch.arange(length + 1)[None]
    plain = step.run(x, row, row, at, length + 1)[:, -1]
    hidden = kernels.talk(x[:, -1].contiguous(), row, at[0, -1:].clone())
    return max(
        predictor / TOLERANCE, float((hidden - plain).norm() / plain.norm()) / TALKER_TOLERANCE
    )


@torch.inference_mode()
def _choose_threads(step: FrameStep, kernels: CpuKernels) -> None:
    from engine.worker.kernels.cpu.threads import fastest

    slots, most = step.slots, kernels.team.size
    like, row = slots.hidden[:1], torch.tensor([slots.padding_row])
    one = torch.ones(1, 1)
    uniforms = one.expand(1, slots.codes.shape[2] - 1) / 2

    def predict(threads: int) -> None:
        kernels.predict.threads = threads
        kernels.predict(like, like, SamplingTensors(one, one, one, one), uniforms, CANDIDATES)

    def talk(threads: int) -> None:
        kernels.talk.threads = threads
        kernels.talk(like, row, torch.zeros_like(row))

    kernels.predict.threads = fastest(predict, most)
    kernels.talk.threads = fastest(talk, most)
