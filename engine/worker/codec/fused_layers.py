"""The codec's layers as its kernels want them: weights packed, sound channels last.

`Flow` is one step under way: which rows it advances, and where they keep what they remember.
Knows shapes and tensors; the order of the layers is codec_fused's business.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import triton
from torch import Tensor, nn

from engine.model.codec import CodecState
from engine.model.convs import CausalConv, CausalUpsample, ConvNeXtBlock, SnakeBeta
from engine.worker.kernels.triton import codec_kernels as kernels
from engine.worker.kernels.triton.launch import launch

BUSY = 96  # tiles that fill the card


@dataclass(frozen=True)
class Flow:
    """Rows [B] of a state during one step of some frames."""

    state: CodecState
    rows: Tensor
    counts: Tensor  # [B] frames that a row goes on by; of those behind it remembers nothing
    frames: int

    @property
    def row_size(self) -> int:
        return self.state.pasts.shape[1]


@dataclass(frozen=True)
class Snake:
    """What follows a sum: x + scale * sin²(alpha x)."""

    alpha: Tensor  # [C], float32 both
    scale: Tensor

    @classmethod
    def pack(cls, snake: SnakeBeta) -> Snake:
        alpha, scale = snake.compute().float()[..., 0].contiguous()
        return cls(alpha, scale)


@dataclass(frozen=True)
class Product:
    """A convolution as a matrix product: weight [taps * C, rate * out], oldest tap first."""

    weight: Tensor
    bias: Tensor  # [out]
    channels: int
    rate: int = 1
    dilation: int = 1
    offset: int = 0  # of its past in a row
    active: Snake | str | None = None

    @property
    def taps(self) -> int:
        return self.weight.shape[0] // self.channels

    @property
    def behind(self) -> int:
        return (self.taps - 1) * self.dilation

    def then(self, snake: SnakeBeta | str) -> Product:
        """The same, with what follows it."""
        return replace(self, active=Snake.pack(snake) if isinstance(snake, SnakeBeta) else snake)

    def __call__(
        self, flow: Flow, x: Tensor, residual: Tensor | None = None, keep: bool = False
    ) -> tuple[Tensor | None, Tensor]:
        """x [B, T, C] -> the sums [B, T * rate, out], if they are to be kept, and what follows
        them; without an activation these are the sums themselves."""
        batch, length, channels = x.shape
        width = self.weight.shape[1]
        made = x.new_empty(batch, length * self.rate, width // self.rate)
        raw = torch.empty_like(made) if keep and self.active else None
        size = tiles(batch * length, width, channels, self.taps)
        count = triton.cdiv(batch * length, size["tile_m"]) * triton.cdiv(width, size["tile_n"])
        alpha, scale, follows = self._follows()
        exact = x.dtype.itemsize > 2 or not x.is_cuda  # elsewhere there is no such cosine
        launch(
            kernels.convolve, (count,),
            x, flow.state.pasts[:, self.offset :], flow.rows, self.weight, self.bias, alpha, scale,
            made if residual is None else residual, made if raw is None else raw, made,
            int(residual is not None), int(keep or not follows),
            batch * length, length, channels, width, width // self.rate,
            self.taps, self.dilation, self.behind, flow.row_size,
            has_past=self.behind > 0, follows=follows, exact=exact, **size,
        )  # fmt: skip
        if self.behind:
            remember(flow, x, self.behind, self.offset)
        return raw, made

    def _follows(self) -> tuple[Tensor, Tensor, str]:
        if isinstance(self.active, Snake):
            return self.active.alpha, self.active.scale, "snake"
        return self.bias, self.bias, self.active or ""


def tiles(total: int, width: int, channels: int, taps: int) -> dict[str, int]:
    """Sizes of a product's tiles, by measurement on an H200: the largest that keep it busy."""
    deep = next(size for size in (64, 32, 16) if channels % size == 0)
    long = taps > 1  # then some idle columns cost less than reading the signal twice
    if deep < 64:
        wide = 128 if long and total >= 128 * BUSY else 64 if long else 32
        return _tile(128, wide, deep, 5)
    for tall, wide, stages in ((128, 128, 3), (64, 128, 3), (128, 64, 4), (64, 64, 4)):
        count = triton.cdiv(total, tall) * triton.cdiv(width, wide)
        fills = width % wide == 0 or wide == 64 or (long and width > wide)
        if count >= BUSY and fills:
            return _tile(tall, wide, deep, stages)
    if channels % 128 == 0 and total <= 160:
        return _tile(16, 32, 128, 6)
    return _tile(16 if total <= 1024 else 64, 64, deep, 4)


def _tile(tall: int, wide: int, deep: int, stages: int) -> dict[str, int]:
    return dict(tile_m=tall, tile_n=wide, tile_k=deep, num_warps=4, num_stages=stages)


def remember(flow: Flow, x: Tensor, behind: int, offset: int) -> None:
    batch, length, channels = x.shape
    block, rate = 32, length // flow.frames
    launch(
        kernels.remember, (batch, triton.cdiv(channels, block)),
        x, flow.state.pasts[:, offset:], flow.rows, flow.counts,
        length, rate, channels, behind, flow.row_size,
        tile_p=triton.next_power_of_2(behind), tile_c=block,
    )  # fmt: skip


@dataclass
class Packer:
    """Packs layers one after the other: each one's past lies behind the last one's."""

    dtype: torch.dtype
    offset: int = 0

    def conv(self, layer: CausalConv) -> Product:
        weight, bias = layer.conv.weight, layer.conv.bias  # [out, C, taps]
        packed = weight.permute(2, 1, 0).reshape(-1, weight.shape[0]).to(self.dtype).contiguous()
        assert bias is not None
        made = Product(
            packed,
            bias.float(),
            weight.shape[1],
            dilation=layer.conv.dilation[0],
            offset=self._place(layer),
        )
        assert made.behind == layer.past
        return made

    def upsample(self, layer: CausalUpsample) -> Product:
        weight, rate = layer.conv.weight, layer.conv.stride[0]  # [C, out, taps * rate]
        channels, out, _ = weight.shape
        taps = weight.view(channels, out, -1, rate).flip(2)  # outputs of the last input come first
        packed = taps.permute(2, 0, 3, 1).reshape(-1, rate * out).to(self.dtype).contiguous()
        assert layer.conv.bias is not None
        return Product(packed, layer.conv.bias.float(), channels, rate, offset=self._place(layer))

    def linear(self, layer: nn.Linear, scale: Tensor | None = None) -> Product:
        """With a scale for each output folded in."""
        weight, bias = layer.weight.float(), layer.bias.float()
        if scale is not None:
            weight, bias = weight * scale.float()[:, None], bias * scale.float()
        return Product(weight.T.to(self.dtype).contiguous(), bias, weight.shape[1])

    def smoothing(self, block: ConvNeXtBlock) -> Smoothing:
        rise = self.linear(block.pwconv1).then("gelu")
        fall = self.linear(block.pwconv2, block.gamma)
        return Smoothing(block, rise, fall, self._place(block.dwconv))

    def sound(self, layer: CausalConv) -> Sound:
        return Sound(layer, self._place(layer))

    def _place(self, layer: CausalConv | CausalUpsample) -> int:
        offset, self.offset = self.offset, self.offset + layer.memory
        return offset


class Smoothing:
    """A ConvNeXt block."""

    def __init__(self, block: ConvNeXtBlock, rise: Product, fall: Product, offset: int) -> None:
        conv = block.dwconv.conv
        assert conv.bias is not None
        self._weight = conv.weight[:, 0].T.float().contiguous()  # [taps, C]
        self._bias, self._offset = conv.bias.float(), offset
        self._norm, self._shift = block.norm.weight.float(), block.norm.bias.float()
        self._eps, self._rise, self._fall = block.norm.eps, rise, fall

    def __call__(self, flow: Flow, x: Tensor) -> Tensor:
        batch, length, channels = x.shape
        smooth = torch.empty_like(x)
        taps = len(self._weight)
        launch(
            kernels.smooth, (batch * length,),
            x, flow.state.pasts[:, self._offset :], flow.rows, self._weight, self._bias,
            self._norm, self._shift, smooth, length, channels, flow.row_size, self._eps,
            taps=taps, tile_c=triton.next_power_of_2(channels),
        )  # fmt: skip
        remember(flow, x, taps - 1, self._offset)
        _, inner = self._rise(flow, smooth)
        return self._fall(flow, inner, residual=x)[1]


class Sound:
    """The last convolution: one channel, clamped."""

    def __init__(self, conv: CausalConv, offset: int) -> None:
        assert conv.conv.bias is not None
        self._weight = conv.conv.weight[0].T.float().contiguous()  # [taps, C]
        self._bias, self._offset = conv.conv.bias.float(), offset

    def __call__(self, flow: Flow, x: Tensor, dtype: torch.dtype) -> Tensor:
        """x [B, T, C] -> [B, T], float or int16."""
        batch, length, channels = x.shape
        made = x.new_empty(batch, length, dtype=dtype)
        taps, block = len(self._weight), 32
        launch(
            kernels.sound, (triton.cdiv(batch * length, block),),
            x, flow.state.pasts[:, self._offset :], flow.rows, self._weight, self._bias, made,
            batch * length, length, channels, flow.row_size,
            taps=taps, tile_m=block, tile_c=triton.next_power_of_2(channels),
        )  # fmt: skip
        remember(flow, x, taps - 1, self._offset)
        return made
