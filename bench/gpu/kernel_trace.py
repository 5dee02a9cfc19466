"""The kernels of a trace, and which part of a step each belongs to.

Custom kernels have names; library products between two of them are counted as the same part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

PREDICTOR = ("predict", "add_norm", "gate", "attend_rows", "sum_rows", "draw_rows")
TALKER = ("talk_product", "talk_attend", "talk_add_norm", "talk_gate", "talk")
GLUE = ("predictor_inputs", "talker_inputs", "sample_next")
PROMPTS = ("store_keys", "attend_prompt")
CODEC = ("convolve", "update_past", "depthwise_norm", "output_conv")
PARTS = ("talker", "prompts", "predictor", "rest", "codec", "copies")
COPIES = ("Memcpy", "Memset")
LOUDEST = 14  # kernels and functions listed by name


@dataclass(frozen=True)
class Kernel:
    name: str
    stream: int
    begun: int  # nanoseconds
    lasted: int
    launch: int  # shared by all kernels of one launch; 0: unknown

    @property
    def ended(self) -> int:
        return self.begun + self.lasted

    @property
    def copies(self) -> bool:
        return self.name.startswith(COPIES)


def kernels(seen: torch.profiler.profile) -> list[Kernel]:
    """The kernels of a trace in order."""
    events = seen.profiler.kineto_results.events()  # type: ignore[union-attr]
    found = [
        Kernel(e.name(), e.device_resource_id(), e.start_ns(), e.duration_ns(), e.correlation_id())
        for e in events
        if e.device_type() == torch._C._autograd.DeviceType.CUDA and e.duration_ns() > 0
    ]
    return sorted(found, key=lambda kernel: kernel.begun)


def codec_streams(found: Iterable[Kernel]) -> set[int]:
    """CUDA streams of the codec."""
    return {kernel.stream for kernel in found if _is_named(kernel, CODEC)}


def by_step_part(found: Sequence[Kernel]) -> Iterator[tuple[str, Kernel]]:
    """Each kernel with its part of a step."""
    aside, plain = codec_streams(found), []
    for kernel in found:
        if kernel.copies:
            yield "copies", kernel
        elif kernel.stream in aside:
            yield "codec", kernel
        else:
            plain.append(kernel)
    filling = {kernel.launch for kernel in plain if _is_named(kernel, PROMPTS)} - {0}
    marks = [_part_of(kernel, filling) for kernel in plain]
    after = _next_marks(marks)
    before = None
    for kernel, mark, behind in zip(plain, marks, after, strict=True):
        before = mark or before
        yield mark or (before if before == behind and before else "rest"), kernel


def _part_of(kernel: Kernel, filling: set[int]) -> str | None:
    """A kernel's part. Prompts and frames share kernels; a prefill graph's are the prompt's."""
    if _is_named(kernel, GLUE):
        return "rest"
    if _is_named(kernel, PREDICTOR):
        return "predictor"
    if _is_named(kernel, TALKER):
        return "prompts" if kernel.launch in filling else "talker"
    return "prompts" if _is_named(kernel, PROMPTS) else None


def _next_marks(marks: Sequence[str | None]) -> list[str | None]:
    """The next mark at or after each place."""
    found, behind = [], None
    for mark in reversed(marks):
        behind = mark or behind
        found.append(behind)
    return found[::-1]


def _is_named(kernel: Kernel, names: Iterable[str]) -> bool:
    return kernel.name in names


def part_figures(found: Sequence[Kernel], steps: int) -> dict[str, Any]:
    spent, counts, names = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for part, kernel in by_step_part(found):
        spent[part] += kernel.lasted
        counts[part] += 1
        names[part, kernel.name[:80]] += kernel.lasted
    loudest = [[*key, round(ns / 1e3 / steps, 1)] for key, ns in names.most_common(LOUDEST)]
    return {
        "ms": {part: round(spent[part] / 1e6 / steps, 3) for part in PARTS},
        "kernels": {part: round(counts[part] / steps, 1) for part in PARTS},
        "us_by_kernel": loudest,
    }
