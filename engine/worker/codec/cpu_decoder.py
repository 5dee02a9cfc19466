"""The codec's decoder on numba's kernel for CPUs: the same audio as CodecDecoder.step.

It advances rows of a state in place, as CodecDecoder does, but a row's past is laid out samples
before channels. Where channels do not fill whole vectors, outputs of weight zero do, and no layer
reads them. Knows no slots and no requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from engine.model.codec import CodecDecoder, CodecState, PreTransformer
from engine.model.configs import CodecConfig, TransformerConfig
from engine.model.convs import CausalConv, CausalUpsample, ConvNeXtBlock, SnakeBeta
from engine.model.layers import scale_of
from engine.worker.kernels.cpu import amx
from engine.worker.kernels.cpu import codec as kernel
from engine.worker.kernels.cpu.codec import Memory, Network, State
from engine.worker.kernels.cpu.entries import Entry, fixed
from engine.worker.kernels.cpu.layers import array
from engine.worker.kernels.cpu.llvm import LANES
from engine.worker.kernels.cpu.memory import empty, zeros
from engine.worker.kernels.cpu.threads import ThreadTeam, fastest, new_sync
from engine.worker.kernels.cpu.tiles import KEEP, RESIDUAL, SNAKE, STORE, pack
from engine.worker.lean_torch import seeded
from engine.worker.loading.packed_file import Form

MAX_FRAMES = 16  # of all rows of a step: more are not faster, and take memory
TIMED_FRAMES = 4
_KINDS = {"float32": torch.float32, "float16": torch.uint16, "bfloat16": torch.int16}  # as kept
TRIAL_FRAMES = 8, 4  # steps in which the kernel is compared with the plain decoder
_decode = Entry(kernel.decode)


def supports(config: CodecConfig) -> bool:
    """Whether the kernel computes a codec of these sizes."""
    block = config.transformer
    widths = [config.decoder_dim >> level for level in range(len(config.upsample_rates) + 1)]
    whole = [
        config.codebook_dim, config.latent_dim,
        block.hidden_size, block.intermediate_size, block.heads * block.head_dim,
    ]  # fmt: skip
    return (
        all(width % LANES == 0 for width in whole)
        and all(width % 2 == 0 for width in widths)  # bfloat16 is multiplied in pairs
        and block.heads == block.kv_heads
        and not block.qk_norm
        and (block.sliding_window or 0) > 1
    )


@dataclass
class _Table:
    """Rows of the kernel's table, with the weights and constants that they name."""

    kind: str  # of the weights
    holds: bool  # the numbers too; else only where they are
    rows: list[list[int]] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)
    constants: list[Tensor] = field(default_factory=list)
    weight_count: int = 0  # numbers so far
    constant_count: int = 0
    length: int = 1  # samples of a frame where the signal is now
    pasts: int = 0  # numbers of a state row so far

    def add(self, kind: int, **columns: int) -> list[int]:
        row = [0] * kernel.COLUMNS
        row[kernel.KIND], row[kernel.LENGTH], row[kernel.SUMS_PAST] = kind, self.length, -1
        for name, value in columns.items():
            row[getattr(kernel, name)] = value
        self.rows.append(row)
        return row

    def constant(self, *tensors: Tensor) -> int:
        if self.holds:
            self.constants += [tensor.detach().float().flatten() for tensor in tensors]
        return self._constants(sum(tensor.numel() for tensor in tensors))

    def _constants(self, count: int) -> int:
        self.constant_count += count
        return self.constant_count - count

    def _weights(self, count: int) -> int:
        self.weight_count += count
        return self.weight_count - count

    def past(self, size: int) -> int:
        self.pasts += size
        return self.pasts - size

    def product(
        self,
        weight: Tensor,
        bias: Tensor | None,
        follows: int,
        *,
        dilation: int = 1,
        snake: SnakeBeta | None = None,
        wide: bool = False,
        sums_front: int = 0,
    ) -> list[int]:
        """weight [rate, outputs, taps, channels], oldest tap first."""
        rate, width, taps, channels = weight.shape
        if self.holds:
            self._hold(weight, bias, snake)
        follows |= SNAKE if snake is not None else 0
        outputs, stride = rate * (width + -width % LANES), channels + -channels % LANES
        samples = (taps - 1) * dilation
        front = samples * stride
        self.rows[-1][kernel.NEXT_FRONT] = front
        row = self.add(
            kernel.PRODUCT, WEIGHTS=self._weights(outputs * taps * channels),
            CONSTANTS=self._constants(outputs * (1 if snake is None else 3)), CHANNELS=channels,
            STRIDE=stride, TAPS=taps,
            DILATION=dilation, WIDTH=outputs, FOLLOWS=follows, TO_WIDE=int(wide), FRONT=front,
            PAST=self.past(samples * channels), SUMS_FRONT=sums_front,
        )  # fmt: skip
        self.length *= rate
        return row

    def _hold(self, weight: Tensor, bias: Tensor | None, snake: SnakeBeta | None) -> None:
        """Keep a product's numbers; what is missing of whole vectors is zero."""
        rate, width = weight.shape[:2]
        missing = 0, -width % LANES
        constants = [torch.zeros(width) if bias is None else bias.detach().float()]
        if snake is not None:
            frequency, scale = snake.compute().float()[..., 0]
            constants += [frequency / torch.pi, scale]
        self.constants += [pad(each, missing).repeat(rate) for each in constants]
        flat = pad(weight.detach().float().flatten(2), (0, 0, *missing)).flatten(0, 1)
        self.weights.append(pack(flat, self.kind))

    def conv(self, layer: CausalConv, follows: int, snake: SnakeBeta | None = None,
             wide: bool = False) -> None:  # fmt: skip
        weight = layer.conv.weight.permute(0, 2, 1)
        self.product(weight[None], layer.conv.bias, follows, dilation=layer.conv.dilation[0],
                     snake=snake, wide=wide)  # fmt: skip

    def upsample(self, layer: CausalUpsample, follows: int, snake: SnakeBeta | None = None,
                 sums_front: int = 0) -> list[int]:  # fmt: skip
        weight, rate = layer.conv.weight, layer.conv.stride[0]  # [C, out, taps * rate]
        channels, out, _ = weight.shape
        taps = weight.view(channels, out, -1, rate)
        taps = taps.flip(2) if self.holds else taps  # outputs of the last input come first
        return self.product(taps.permute(3, 1, 2, 0), layer.conv.bias, follows, snake=snake,
                            sums_front=sums_front)  # fmt: skip

    def linear(self, layer: nn.Linear, follows: int, scale: Tensor | None = None,
               wide: bool = False, sums_front: int = 0) -> None:  # fmt: skip
        """`scale` of each output is folded into the weight."""
        weight: Tensor = layer.weight
        bias: Tensor | None = layer.bias
        if scale is not None and self.holds:
            weight = weight * scale[:, None]
            bias = None if bias is None else bias * scale
        self.product(weight[None, :, None], bias, follows, wide=wide, sums_front=sums_front)

    def transformer(self, network: PreTransformer) -> None:
        config = network.config
        width, inner = config.hidden_size, config.intermediate_size
        self.linear(network.input_proj, KEEP)
        for number, block in enumerate(network.layers):
            attention, mlp = block.self_attn, block.mlp
            self.add(
                kernel.NORM, WIDTH=width, CONSTANTS=self.constant(block.input_layernorm.weight)
            )
            self.linear(attention.qkv_proj, STORE, wide=True)
            self.add(kernel.ATTEND, WIDTH=width, INDEX=number)
            self.linear(attention.o_proj, RESIDUAL | KEEP, scale_of(block.self_attn_layer_scale))
            norm = self.constant(block.post_attention_layernorm.weight)
            self.add(kernel.NORM, WIDTH=width, CONSTANTS=norm)
            self.linear(mlp.gate_up_proj, STORE, wide=True)
            self.add(kernel.GATE, WIDTH=inner)
            self.linear(mlp.down_proj, RESIDUAL | KEEP, scale_of(block.mlp_layer_scale))
        self.add(kernel.NORM, WIDTH=width, CONSTANTS=self.constant(network.norm.weight))
        self.linear(network.output_proj, STORE)

    def convnext(self, upsample: CausalUpsample, block: ConvNeXtBlock) -> None:
        conv = block.dwconv.conv
        width, _, taps = conv.weight.shape
        front = (taps - 1) * width
        before = self.upsample(upsample, KEEP, sums_front=front)
        assert conv.bias is not None
        parts = (conv.weight[:, 0].T, conv.bias, block.norm.weight, block.norm.bias)
        past = before[kernel.SUMS_PAST] = self.past(front)
        self.add(kernel.DEPTHWISE, WIDTH=width, TAPS=taps, CONSTANTS=self.constant(*parts),
                 SUMS_FRONT=front, PAST=past)  # fmt: skip
        self.linear(block.pwconv1, STORE, wide=True)
        self.add(kernel.GELU, WIDTH=block.pwconv1.out_features)
        self.linear(block.pwconv2, RESIDUAL | STORE, block.gamma, sums_front=front)

    def decoder(self, first: CausalConv, *rest: Any) -> None:
        *blocks, last, output = rest
        snakes = [*(block.block[0] for block in blocks[1:]), last]
        self.conv(first, STORE, blocks[0].block[0])
        for block, after in zip(blocks, snakes, strict=True):
            _, upsample, *units = block.block
            self.upsample(upsample, KEEP | STORE, units[0].act1)
            for unit, follows in zip(units, [*(u.act1 for u in units[1:]), after], strict=True):
                self.conv(unit.conv1, STORE, unit.act2)
                self.conv(unit.conv2, RESIDUAL | KEEP | STORE, follows)
        self.conv(output, STORE, wide=True)
        self.add(kernel.WAVE)


class PackedCodec:
    """A decoder's weights as the kernel reads them.

    In float16 weights and the codes' entries take half the memory, and half of what a chunk of one
    frame waits for. In bfloat16 they do so up to the first wide convolution; from there on, where
    nearly all the work is, weights and inputs are bfloat16. Inputs before it stay in float32: their
    rounding would be heard more than all that.
    """

    def __init__(
        self, codec: CodecDecoder, kind: str, kept: Mapping[str, Tensor] | None = None
    ) -> None:
        """From a decoder; `kept`: arrays that were made before, then the decoder needs no memory
        and only says where in them everything is."""
        assert supports(codec.config)
        self.config, self.receptive_frames = codec.config, codec.receptive_frames
        self.pasts = codec.pasts
        self.tables, self.features = _tables(codec, kind, holds=kept is None)
        self.arrays = kept or self._made(codec)

    @classmethod
    def forms(cls, codec: CodecDecoder, kind: str) -> dict[str, Form]:
        """Types and shapes of the arrays, from a decoder without memory."""
        config, found = codec.config, {}
        for number, table in enumerate(_tables(codec, kind, holds=False)[0]):
            found[f"weights.{number}"] = Form(_KINDS[table.kind], (table.weight_count,))
            found[f"constants.{number}"] = Form(torch.float32, (table.constant_count,))
        size = config.codebooks * config.codebook_size, config.codebook_dim
        return {**found, "codes": Form(_entry_kind(kind), size)}

    def _made(self, codec: CodecDecoder) -> dict[str, Tensor]:
        made = {}
        for number, table in enumerate(self.tables):
            weights = empty(table.weight_count, table.weights[0].dtype)
            np.concatenate(table.weights, out=weights)
            made[f"weights.{number}"] = torch.from_numpy(weights)
            made[f"constants.{number}"] = torch.cat(table.constants)
            table.weights, table.constants = [], []
        entries = codec.quantizer.compute().contiguous()
        whole = _entry_kind(self.tables[0].kind) == torch.float32
        return {**made, "codes": entries if whole else entries.half().view(torch.uint16)}

    def networks(self) -> list[Network]:
        block = self.config.transformer
        return [
            Network(
                np.array(table.rows),
                array(self.arrays[f"weights.{number}"]),
                array(self.arrays[f"constants.{number}"]),
                array(self.arrays["codes"]),
                block.heads,
                np.float32(block.norm_eps),
            )
            for number, table in enumerate(self.tables)
        ]


def _entry_kind(kind: str) -> torch.dtype:
    """Of the codes' entries: as the first table's weights."""
    return torch.float32 if kind == "float32" else _KINDS["float16"]


def _tables(codec: CodecDecoder, kind: str, holds: bool) -> tuple[list[_Table], int]:
    """A table for each kind of inputs, and how many rows of the first one end with features."""
    table = _Table("float32" if kind == "float32" else "float16", holds)
    table.add(kernel.EMBED, WIDTH=codec.config.codebook_dim)
    table.conv(codec.pre_conv, STORE)
    table.transformer(codec.pre_transformer)
    features = len(table.rows) - 1  # the last projection is for what follows
    for upsample, convnext in codec.upsample:
        table.convnext(upsample, convnext)
    tables = [table]
    if kind == "bfloat16":
        table.rows[-1][kernel.TO_WIDE] = 1
        tables.append(_Table("bfloat16", holds, length=table.length, pasts=table.pasts))
        tables[-1].add(kernel.TAKE, WIDTH=codec.config.latent_dim)
    tables[-1].decoder(*codec.decoder)
    return tables, features


class CpuDecoder:
    """Runs a packed decoder on some threads."""

    def __init__(self, packed: PackedCodec, threads: int) -> None:
        self.packed = packed
        self.config, self.receptive_frames = packed.config, packed.receptive_frames
        self.team, self.threads = ThreadTeam(threads), threads
        self._networks, self._features = packed.networks(), packed.features
        self.bytes = sum(each.nbytes for each in packed.arrays.values())
        block = packed.config.transformer
        frequency = torch.arange(0, block.head_dim, 2) / block.head_dim
        self._frequency = (1.0 / block.rope_theta**frequency).numpy()
        self.memories = self._allocate(block)
        self._parts = list(zip(fixed(*self._networks), fixed(*self.memories), strict=True))

    def _allocate(self, block: TransformerConfig) -> list[Memory]:
        """Allocate an array for each table; only inputs are not shared."""
        rows = np.concatenate([network.table for network in self._networks])
        sizes = rows[:, kernel.LENGTH] * rows[:, kernel.WIDTH]
        fronts = rows[:, (kernel.NEXT_FRONT, kernel.SUMS_FRONT)].max()
        size = MAX_FRAMES * int(sizes.max() + fronts)
        assert block.sliding_window is not None
        width = max(int(rows[:, kernel.WIDTH].max()), block.sliding_window + 2 * block.head_dim)
        wide = MAX_FRAMES * int(sizes[rows[:, kernel.TO_WIDE] > 0].max())
        shared = (
            zeros(size, np.float32),
            zeros(wide, np.float32),
            zeros((self.team.size, width), np.float32),
            zeros((self.team.size if amx.permitted() else 0, amx.SIZE), np.float32),
            new_sync(),
        )
        kinds = [
            np.int16 if each.weights.dtype == np.int16 else np.float32 for each in self._networks
        ]
        return [Memory(zeros((2, size), kind), *shared) for kind in kinds]

    def step(self, codes: Tensor, state: CodecState, rows: Tensor) -> Tensor:
        """Advance these rows [B] of the state by codes [B, codebooks, T] -> [B, T * hop]."""
        return self._pieces(codes.transpose(1, 2), state, rows, None)

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        """As CodecDecoder's, from codes [B, T, codebooks]."""
        self._pieces(codes, state, rows, self._features)

    def _pieces(self, codes: Tensor, state: CodecState, rows: Tensor, layers: int | None) -> Tensor:
        """Decode in steps of at most MAX_FRAMES frames; only the first `layers`, if given."""
        waves = []
        for piece, index in zip(codes.split(MAX_FRAMES), rows.split(MAX_FRAMES), strict=True):
            frames = MAX_FRAMES // len(piece)
            pieces = [self._run(each, state, index, layers) for each in piece.split(frames, 1)]
            waves.append(torch.cat(pieces, 1))
        return torch.cat(waves)

    def _run(self, codes: Tensor, state: CodecState, rows: Tensor, layers: int | None) -> Tensor:
        frames = codes.shape[1]
        held = State(*map(array, state.tensors))
        index, given = array(rows.contiguous()), array(codes.long().contiguous())
        positions = held.frames[index][:, None] + np.arange(frames)
        angle = positions[..., None].astype(np.float32) * self._frequency
        cos, sin = np.cos(angle), np.sin(angle)
        rotary = np.concatenate((cos, cos), -1), np.concatenate((-sin, sin), -1)
        wave = np.empty((len(codes), frames * self.config.hop), np.float32)
        parts = self._parts[: 1 if layers else None]
        steps = [
            _decode(network, layers or len(network.whole.table), held, index, given, *rotary,
                    memory, wave, at == len(parts))
            for at, (network, memory) in enumerate(parts, 1)
        ]  # fmt: skip

        def run(number: int, threads: int) -> None:
            for step in steps:
                step(number, threads)

        self.team.run(run, self.threads)
        return torch.from_numpy(wave)

    @torch.inference_mode()
    def choose_threads(self) -> None:
        """Take as many threads as a chunk is fastest with."""
        state, row = CodecState.allocate(self.config, 1, "cpu", torch.float32), torch.zeros(1)
        codes = torch.zeros(1, self.config.codebooks, TIMED_FRAMES)

        def run(threads: int) -> None:
            self.threads = threads
            self.step(codes, state, row.long())

        self.threads = fastest(run, self.team.size)

    @torch.inference_mode()
    def difference(self, codec: CodecDecoder) -> float:
        """Relative RMS difference from the plain decoder's audio, for random codes in two steps."""
        random = seeded(0)
        states = [CodecState.allocate(self.config, 1, "cpu", torch.float32) for _ in range(2)]
        row = torch.zeros(1, dtype=torch.long)
        size = (1, self.config.codebooks, sum(TRIAL_FRAMES))
        codes = torch.randint(self.config.codebook_size, size, generator=random)
        found, wanted = (
            torch.cat([step(each, state, row) for each in codes.split(TRIAL_FRAMES, 2)], 1)
            for step, state in zip((self.step, codec.step), states, strict=True)
        )
        floor = 1e-2  # near silence is compared absolutely
        return float((found - wanted).square().mean().sqrt() / wanted.std().clamp(min=floor))
