"""The codec's layers for its Triton kernels: weights packed, audio channels last.

A `StepContext` says which rows a step advances and where their past is. The order of the layers is
fused_decoder's.
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

MIN_TILES = 96  # the fewest tiles that keep the GPU busy


@dataclass(frozen=True)
class StepContext:
    """Rows [B] of a state during one step of some frames."""

    state: CodecState
    rows: Tensor
    counts: Tensor  # [B] frames that a row advances by; later ones stay out of the state
    frames: int

    @property
    def row_size(self) -> int:
        return self.state.pasts.shape[1]


@dataclass(frozen=True)
class Snake:
    """The activation x + scale * sin²(alpha x)."""

    alpha: Tensor  # [C], float32 both
    scale: Tensor

    @classmethod
    def pack(cls, snake: SnakeBeta) -> Snake:
        alpha, scale = snake.compute().float()[..., 0].contiguous()
        return cls(alpha, scale)


@dataclass(frozen=True)
class ConvMatmul:
    """A convolution as a matrix product: weight [taps * C, rate * out], oldest tap first."""

    weight: Tensor
    bias: Tensor  # [out]
    channels: int
    rate: int = 1
    dilation: int = 1
    offset: int = 0  # of its past in a state row
    active: Snake | str | None = None

    @property
    def taps(self) -> int:
        return self.weight.shape[0] // self.channels

    @property
    def history(self) -> int:
        return (self.taps - 1) * self.dilation

    def then(self, snake: SnakeBeta | str) -> ConvMatmul:
        """The same, followed by an activation."""
        return replace(self, active=Snake.pack(snake) if isinstance(snake, SnakeBeta) else snake)

    def __call__(
        self,
        context: StepContext,
        x: Tensor,
        residual: Tensor | None = None,
        keep_sums: bool = False,
    ) -> tuple[Tensor | None, Tensor]:
        """x [B, T, C] -> the sums [B, T * rate, out] with `keep_sums`, and the activation of them;
        without an activation these are the sums themselves."""
        batch, length, channels = x.shape
        width = self.weight.shape[1]
        out = x.new_empty(batch, length * self.rate, width // self.rate)
        sums = torch.empty_like(out) if keep_sums and self.active else None
        size = tiles(batch * length, width, channels, self.taps)
        count = triton.cdiv(batch * length, size["tile_m"]) * triton.cdiv(width, size["tile_n"])
        alpha, scale, activation = self._activation()
        exact = x.dtype.itemsize > 2 or not x.is_cuda  # the interpreter has no fast cosine
        launch(
            kernels.convolve, (count,),
            x, context.state.pasts[:, self.offset :], context.rows,
            self.weight, self.bias, alpha, scale,
            out if residual is None else residual, out if sums is None else sums, out,
            int(residual is not None), int(keep_sums or not activation),
            batch * length, length, channels, width, width // self.rate,
            self.taps, self.dilation, self.history, context.row_size,
            has_past=self.history > 0, activation=activation, exact=exact, **size,
        )  # fmt: skip
        if self.history:
            update_past(context, x, self.history, self.offset)
        return sums, out

    def _activation(self) -> tuple[Tensor, Tensor, str]:
        if isinstance(self.active, Snake):
            return self.active.alpha, self.active.scale, "snake"
        return self.bias, self.bias, self.active or ""


def tiles(total: int, width: int, channels: int, taps: int) -> dict[str, int]:
    """Tile sizes of a product, measured on an H200: the largest that keep the GPU busy."""
    deep = next(size for size in (64, 32, 16) if channels % size == 0)
    long = taps > 1  # idle columns cost less than reading the signal twice
    if deep < 64:
        wide = 128 if long and total >= 128 * MIN_TILES else 64 if long else 32
        return _tile(128, wide, deep, 5)
    for tall, wide, stages in ((128, 128, 3), (64, 128, 3), (128, 64, 4), (64, 64, 4)):
        count = triton.cdiv(total, tall) * triton.cdiv(width, wide)
        fills = width % wide == 0 or wide == 64 or (long and width > wide)
        if count >= MIN_TILES and fills:
            return _tile(tall, wide, deep, stages)
    if channels % 128 == 0 and total <= 160:
        return _tile(16, 32, 128, 6)
    return _tile(16 if total <= 1024 else 64, 64, deep, 4)


def _tile(tall: int, wide: int, deep: int, stages: int) -> dict[str, int]:
    return dict(tile_m=tall, tile_n=wide, tile_k=deep, num_warps=4, num_stages=stages)


def update_past(context: StepContext, x: Tensor, history: int, offset: int) -> None:
    batch, length, channels = x.shape
    block, rate = 32, length // context.frames
    launch(
        kernels.update_past, (batch, triton.cdiv(channels, block)),
        x, context.state.pasts[:, offset:], context.rows, context.counts,
        length, rate, channels, history, context.row_size,
        tile_p=triton.next_power_of_2(history), tile_c=block,
    )  # fmt: skip


@dataclass
class Packer:
    """Packs layers in the order of execution; their pasts follow each other in a state row."""

    dtype: torch.dtype
    offset: int = 0

    def conv(self, layer: CausalConv) -> ConvMatmul:
        weight, bias = layer.conv.weight, layer.conv.bias  # [out, C, taps]
        packed = weight.permute(2, 1, 0).reshape(-1, weight.shape[0]).to(self.dtype).contiguous()
        assert bias is not None
        out = ConvMatmul(
            packed,
            bias.float(),
            weight.shape[1],
            dilation=layer.conv.dilation[0],
            offset=self._place(layer),
        )
        assert out.history == layer.past
        return out

    def upsample(self, layer: CausalUpsample) -> ConvMatmul:
        weight, rate = layer.conv.weight, layer.conv.stride[0]  # [C, out, taps * rate]
        channels, out, _ = weight.shape
        taps = weight.view(channels, out, -1, rate).flip(2)  # outputs of the last input come first
        packed = taps.permute(2, 0, 3, 1).reshape(-1, rate * out).to(self.dtype).contiguous()
        assert layer.conv.bias is not None
        return ConvMatmul(
            packed, layer.conv.bias.float(), channels, rate, offset=self._place(layer)
        )

    def linear(self, layer: nn.Linear, scale: Tensor | None = None) -> ConvMatmul:
        """Pack a linear layer; `scale` per output is folded into the weight."""
        weight, bias = layer.weight.float(), layer.bias.float()
        if scale is not None:
            weight, bias = weight * scale.float()[:, None], bias * scale.float()
        return ConvMatmul(weight.T.to(self.dtype).contiguous(), bias, weight.shape[1])

    def convnext(self, block: ConvNeXtBlock) -> FusedConvNeXt:
        expand = self.linear(block.pwconv1).then("gelu")
        project = self.linear(block.pwconv2, block.gamma)
        return FusedConvNeXt(block, expand, project, self._place(block.dwconv))

    def output(self, layer: CausalConv) -> OutputConv:
        return OutputConv(layer, self._place(layer))

    def _place(self, layer: CausalConv | CausalUpsample) -> int:
        offset, self.offset = self.offset, self.offset + layer.cache_size
        return offset


class FusedConvNeXt:
    """A ConvNeXt block."""

    def __init__(
        self, block: ConvNeXtBlock, expand: ConvMatmul, project: ConvMatmul, offset: int
    ) -> None:
        conv = block.dwconv.conv
        assert conv.bias is not None
        self._weight = conv.weight[:, 0].T.float().contiguous()  # [taps, C]
        self._bias, self._offset = conv.bias.float(), offset
        self._norm, self._shift = block.norm.weight.float(), block.norm.bias.float()
        self._eps, self._expand, self._project = block.norm.eps, expand, project

    def __call__(self, context: StepContext, x: Tensor) -> Tensor:
        batch, length, channels = x.shape
        smooth = torch.empty_like(x)
        taps = len(self._weight)
        launch(
            kernels.depthwise_norm, (batch * length,),
            x, context.state.pasts[:, self._offset :], context.rows, self._weight, self._bias,
            self._norm, self._shift, smooth, length, channels, context.row_size, self._eps,
            taps=taps, tile_c=triton.next_power_of_2(channels),
        )  # fmt: skip
        update_past(context, x, taps - 1, self._offset)
        _, inner = self._expand(context, smooth)
        return self._project(context, inner, residual=x)[1]


class OutputConv:
    """The last convolution: to one channel, clamped."""

    def __init__(self, conv: CausalConv, offset: int) -> None:
        assert conv.conv.bias is not None
        self._weight = conv.conv.weight[0].T.float().contiguous()  # [taps, C]
        self._bias, self._offset = conv.conv.bias.float(), offset

    def __call__(self, context: StepContext, x: Tensor, dtype: torch.dtype) -> Tensor:
        """x [B, T, C] -> [B, T], float or int16."""
        batch, length, channels = x.shape
        out = x.new_empty(batch, length, dtype=dtype)
        taps, block = len(self._weight), 32
        launch(
            kernels.output_conv, (triton.cdiv(batch * length, block),),
            x, context.state.pasts[:, self._offset :], context.rows, self._weight, self._bias, out,
            batch * length, length, channels, context.row_size,
            taps=taps, tile_m=block, tile_c=triton.next_power_of_2(channels),
        )  # fmt: skip
        update_past(context, x, taps - 1, self._offset)
        return out
