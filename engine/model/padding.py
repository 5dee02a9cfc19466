"""Where sounds end inside padded rows: what stands behind an end changes nothing.

A network that hears recordings whole asks its span wherever it would look past an end, or sum
over time. So one padded length serves all recordings up to it. Knows no network.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Span(Protocol):
    """All signals are [B, C, T]."""

    def zeroed(self, x: Tensor) -> Tensor:
        """Zeros behind the end."""
        ...

    def held(self, x: Tensor) -> Tensor:
        """The last value again and again behind the end."""
        ...

    def mirrored(self, x: Tensor) -> Tensor:
        """Behind the end, what stands before it, backwards."""
        ...

    def share(self, x: Tensor) -> Tensor:
        """What each step is of the whole, as weights of a mean: [B or 1, 1, T]."""
        ...

    def hidden(self, scores: Tensor) -> Tensor:
        """No chance behind the end."""
        ...

    def steps(self, stride: int) -> Span:
        """The same at a lower rate; a step begun is a step."""
        ...

    def hops(self, hop: int) -> Span:
        """The same at a lower rate; whole ones only."""
        ...


class Whole:
    """Rows that end where they end."""

    def zeroed(self, x: Tensor) -> Tensor:
        return x

    held = mirrored = hidden = zeroed

    def share(self, x: Tensor) -> Tensor:
        return torch.full_like(x[:1, :1], 1 / x.shape[2])

    def steps(self, _: int) -> Whole:
        return self

    hops = steps


WHOLE = Whole()


class Padded:
    """Rows that end at these lengths [B], which may change from run to run of a recorded graph."""

    def __init__(self, lengths: Tensor) -> None:
        self._lengths = lengths[:, None, None]

    def zeroed(self, x: Tensor) -> Tensor:
        return x.masked_fill(self._behind(x), 0)

    def held(self, x: Tensor) -> Tensor:
        return self._taken(x, _places(x).minimum(self._lengths - 1))

    def mirrored(self, x: Tensor) -> Tensor:
        last = self._lengths - 1
        return self._taken(x, (last - (_places(x) - last).abs()).clamp(min=0))

    def share(self, x: Tensor) -> Tensor:
        return (~self._behind(x)).to(x.dtype) / self._lengths

    def hidden(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(self._behind(scores), -torch.inf)

    def steps(self, stride: int) -> Padded:
        return Padded((self._lengths[:, 0, 0] + stride - 1) // stride)

    def hops(self, hop: int) -> Padded:
        return Padded(self._lengths[:, 0, 0] // hop)

    def _behind(self, x: Tensor) -> Tensor:
        return _places(x) >= self._lengths

    @staticmethod
    def _taken(x: Tensor, places: Tensor) -> Tensor:
        return x.gather(2, places.expand(len(x), x.shape[1], -1))


def _places(x: Tensor) -> Tensor:
    """[1, 1, T]"""
    return torch.arange(x.shape[2], device=x.device)[None, None]
