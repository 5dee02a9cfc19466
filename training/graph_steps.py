"""Captures training steps in CUDA graphs, since small networks are bound by kernel launches.

A step is a function of tensors of fixed shapes, and of nothing else that changes between calls;
random numbers and the learning rate are on the device. Without capture the function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

Metrics: TypeAlias = dict[str, Tensor]
Step: TypeAlias = Callable[..., Metrics]
Made = TypeVar("Made")
WARM = 4  # eager calls before a capture, to warm up


def values(metrics: Metrics) -> str:
    return " ".join(f"{name} {value.item():.3f}" for name, value in metrics.items())


class GraphedStep:
    """A step on a GPU, with a graph for each set of shapes and choices."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._pool = torch.cuda.graph_pool_handle()  # graphs run one after another: one memory
        self._kept: dict[Hashable, tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...], Metrics]] = {}

    def __call__(self, *inputs: Tensor, **choices: Hashable) -> Metrics:
        key = (*(x.shape for x in inputs), *sorted(choices.items()))
        if key not in self._kept:
            self._kept[key] = self._record(inputs, choices)
        graph, places, metrics = self._kept[key]
        for place, value in zip(places, inputs, strict=True):
            place.copy_(value)
        graph.replay()
        return metrics

    def _record(
        self, inputs: tuple[Tensor, ...], choices: dict[str, Hashable]
    ) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...], Metrics]:
        places = tuple(x.clone() for x in inputs)
        graph, metrics = captured(lambda: self._step(*places, **choices), self._pool)
        return graph, places, metrics


def captured(call: Callable[[], Made], pool: Any = None) -> tuple[torch.cuda.CUDAGraph, Made]:
    """A graph of the call, and the static outputs of its replays."""
    here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        for _ in range(WARM):
            call()
    here.wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        made = call()
    return graph, made
