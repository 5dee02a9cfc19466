"""Audio of several lengths in rows of one padded length.

A network that encodes whole recordings asks its `Padding` wherever it would look behind a row's
end, or sum over time, so that the padding never changes the result. One padded length (and one
captured graph) then serves all shorter recordings. Knows no network.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Padding(Protocol):
    """Where rows end. All signals are [B, C, T]."""

    def zero_fill(self, x: Tensor) -> Tensor:
        """Zeros behind the end."""
        ...

    def replicate(self, x: Tensor) -> Tensor:
        """The last value repeated behind the end."""
        ...

    def reflect(self, x: Tensor) -> Tensor:
        """The signal mirrored at its end."""
        ...

    def mean_weights(self, x: Tensor) -> Tensor:
        """Weights whose sum over time is a mean: [B or 1, 1, T]."""
        ...

    def mask_scores(self, scores: Tensor) -> Tensor:
        """-inf behind the end, for a softmax over time."""
        ...

    def downsample(self, stride: int) -> Padding:
        """The padding of the strided signal; a stride begun is a step."""
        ...

    def whole_hops(self, hop: int) -> Padding:
        """The padding of a signal with a step for each whole hop."""
        ...


class NoPadding:
    """Every row is as long as its tensor."""

    def zero_fill(self, x: Tensor) -> Tensor:
        return x

    replicate = reflect = mask_scores = zero_fill

    def mean_weights(self, x: Tensor) -> Tensor:
        return torch.full_like(x[:1, :1], 1 / x.shape[2])

    def downsample(self, _: int) -> NoPadding:
        return self

    whole_hops = downsample


NO_PADDING = NoPadding()


class RightPadding:
    """Rows end at these lengths [B], which may change between replays of a captured graph."""

    def __init__(self, lengths: Tensor) -> None:
        self._lengths = lengths[:, None, None]

    def zero_fill(self, x: Tensor) -> Tensor:
        return x.masked_fill(self._padded(x), 0)

    def replicate(self, x: Tensor) -> Tensor:
        return self._gather(x, _steps(x).minimum(self._lengths - 1))

    def reflect(self, x: Tensor) -> Tensor:
        last = self._lengths - 1
        return self._gather(x, (last - (_steps(x) - last).abs()).clamp(min=0))

    def mean_weights(self, x: Tensor) -> Tensor:
        return (~self._padded(x)).to(x.dtype) / self._lengths

    def mask_scores(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(self._padded(scores), -torch.inf)

    def downsample(self, stride: int) -> RightPadding:
        return RightPadding((self._lengths[:, 0, 0] + stride - 1) // stride)

    def whole_hops(self, hop: int) -> RightPadding:
        return RightPadding(self._lengths[:, 0, 0] // hop)

    def _padded(self, x: Tensor) -> Tensor:
        return _steps(x) >= self._lengths

    @staticmethod
    def _gather(x: Tensor, steps: Tensor) -> Tensor:
        return x.gather(2, steps.expand(len(x), x.shape[1], -1))


def _steps(x: Tensor) -> Tensor:
    """Indices over time: [1, 1, T]."""
    return torch.arange(x.shape[2], device=x.device)[None, None]
