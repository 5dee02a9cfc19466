"""Kokoro-82M (hexgrad, Apache-2.0), a StyleTTS 2 network: phonemes and a style in, speech out.

Written for batches whose rows are equally long, so nothing is masked: the text side takes rows of
equal token counts, the sound side rows of equal frame counts (`even` makes them so in the closing
silence). Between both, a caller may move pace and pitch. Parameters have the published names, with
weight norms folded (training.teachers.kokoro_weights reads them). Knows no text and no voices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RATE = 24_000
FRAME = 600  # samples: the unit of durations, 25 ms
STYLE = 128  # numbers of a half style: the first half is timbre, the second prosody
HIDDEN = 512
TOKENS = 178
PITCH_HOP = 300  # samples: pitch and energy come twice a frame
UNVOICED = 10.0  # Hz: below, no harmonics
SPOKEN = 40.0  # Hz: below, nothing that a factor should move (pauses have 11)
HARMONICS = 9
LOUDNESS_OF_SINES, NOISE = 0.1, 0.003
SPECTRUM, HOP = 20, 5  # the generator speaks in spectra of so many samples


class Attention(nn.Module):
    HEADS = 12

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.dense = nn.Linear(width, width), nn.Linear(width, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part(x).unflatten(-1, (self.HEADS, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return self.LayerNorm(x + self.dense(mixed))


class AlbertLayer(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.attention = Attention(width)
        self.ffn, self.ffn_output = nn.Linear(width, inner), nn.Linear(inner, width)
        self.full_layer_layer_norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention(x)
        inner = F.gelu(self.ffn(x), approximate="tanh")
        return self.full_layer_layer_norm(x + self.ffn_output(inner))


class Albert(nn.Module):
    """Reads phonemes: one layer twelve times."""

    NARROW, WIDTH, INNER, TIMES = 128, 768, 2048, 12
    POSITIONS = 512

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(TOKENS, self.NARROW),
                "position_embeddings": nn.Embedding(self.POSITIONS, self.NARROW),
                "token_type_embeddings": nn.Embedding(2, self.NARROW),
                "LayerNorm": nn.LayerNorm(self.NARROW, eps=1e-12),
            }
        )
        self.widen = nn.Linear(self.NARROW, self.WIDTH)
        self.layer = AlbertLayer(self.WIDTH, self.INNER)

    def forward(self, ids: Tensor) -> Tensor:
        tables: Any = self.embeddings
        x = tables["word_embeddings"](ids) + tables["token_type_embeddings"].weight[0]
        x = x + tables["position_embeddings"].weight[: ids.shape[1]]
        x = self.widen(tables["LayerNorm"](x))
        for _ in range(self.TIMES):
            x = self.layer(x)
        return x


def both_ways(inputs: int) -> nn.LSTM:
    return nn.LSTM(inputs, HIDDEN // 2, batch_first=True, bidirectional=True)


class ChannelNorm(nn.Module):
    """Layer norm of [B, channels, T] over its channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        x = F.layer_norm(x.transpose(1, 2), self.gamma.shape, self.gamma, self.beta)
        return x.transpose(1, 2)


class TextEncoder(nn.Module):
    """How phonemes sound: [B, T] ids -> [B, T, HIDDEN]."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, HIDDEN)
        self.cnn = nn.ModuleList(
            nn.Sequential(nn.Conv1d(HIDDEN, HIDDEN, 5, padding=2), ChannelNorm(HIDDEN))
            for _ in range(3)
        )
        self.lstm = both_ways(HIDDEN)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids).transpose(1, 2)
        for layer in self.cnn:
            x = F.leaky_relu(layer(x), 0.2)
        return self.lstm(x.transpose(1, 2))[0]


class StyledLayerNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * HIDDEN)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        gamma, beta = self.fc(style)[:, None].chunk(2, -1)
        return (1 + gamma) * F.layer_norm(x, (HIDDEN,)) + beta


class DurationEncoder(nn.Module):
    """[B, T, HIDDEN] -> the same beside the style: [B, T, HIDDEN + STYLE]."""

    def __init__(self) -> None:
        super().__init__()
        self.lstms = nn.ModuleList(
            both_ways(HIDDEN + STYLE) if index % 2 == 0 else StyledLayerNorm() for index in range(6)
        )

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        beside = style[:, None].expand(-1, x.shape[1], -1)
        x = torch.cat((x, beside), -1)
        for lstm, norm in zip(self.lstms[::2], self.lstms[1::2], strict=True):
            x = torch.cat((norm(lstm(x)[0], style), beside), -1)
        return x


class StyledNorm(nn.Module):
    """Each channel over its own time, then scaled and moved by the style: [B, channels, T]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, 2 * channels)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        gamma, beta = self.fc(style)[:, :, None].chunk(2, 1)
        return torch.addcmul(beta, 1 + gamma, F.instance_norm(x))


class StyledBlock(nn.Module):
    """Two convolutions beside a shortcut; `twice` makes twice as many frames."""

    def __init__(self, inputs: int, outputs: int, twice: bool = False) -> None:
        super().__init__()
        self.twice = twice
        self.norm1, self.norm2 = StyledNorm(inputs), StyledNorm(outputs)
        self.conv1 = nn.Conv1d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv1d(outputs, outputs, 3, padding=1)
        self.conv1x1 = nn.Conv1d(inputs, outputs, 1, bias=False) if inputs != outputs else None
        self.pool = (
            nn.ConvTranspose1d(inputs, inputs, 3, 2, 1, output_padding=1, groups=inputs)
            if twice
            else None
        )

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        y = F.leaky_relu(self.norm1(x, style), 0.2)
        y = self.conv1(self.pool(y) if self.pool else y)
        y = self.conv2(F.leaky_relu(self.norm2(y, style), 0.2))
        x = x.repeat_interleave(2, -1) if self.twice else x
        return (y + (self.conv1x1(x) if self.conv1x1 else x)) * math.sqrt(0.5)


class Predictor(nn.Module):
    """How long each phoneme is, then pitch and energy."""

    LONGEST = 50  # frames of a phoneme, each a bet of its own

    def __init__(self) -> None:
        super().__init__()
        self.text_encoder = DurationEncoder()
        self.lstm, self.shared = both_ways(HIDDEN + STYLE), both_ways(HIDDEN + STYLE)
        self.duration_proj = nn.Linear(HIDDEN, self.LONGEST)
        self.F0, self.N = self._blocks(), self._blocks()
        self.F0_proj, self.N_proj = nn.Conv1d(HIDDEN // 2, 1, 1), nn.Conv1d(HIDDEN // 2, 1, 1)

    @staticmethod
    def _blocks() -> nn.ModuleList:
        half = HIDDEN // 2
        return nn.ModuleList(
            (StyledBlock(HIDDEN, HIDDEN), StyledBlock(HIDDEN, half, True), StyledBlock(half, half))
        )

    def durations(self, x: Tensor) -> Tensor:
        """[B, T, …] as the encoder leaves it -> frames of each phoneme, before rounding."""
        return self.duration_proj(self.lstm(x)[0]).sigmoid().sum(-1)

    def contours(self, x: Tensor, style: Tensor) -> tuple[Tensor, Tensor]:
        """Pitch in Hz and energy, two a frame, of [B, frames, …]."""
        x = self.shared(x)[0].transpose(1, 2)
        found = []
        for blocks, last in ((self.F0, self.F0_proj), (self.N, self.N_proj)):
            y = x
            for block in blocks:
                y = block(y, style)
            found.append(last(y)[:, 0])
        return found[0], found[1]


class SnakeBlock(nn.Module):
    """Three pairs of convolutions with periodic activations, the first of each pair dilated."""

    DILATIONS = (1, 3, 5)

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        pad = kernel // 2
        self.convs1 = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, padding=pad * d, dilation=d)
            for d in self.DILATIONS
        )
        self.convs2 = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, padding=pad) for _ in self.DILATIONS
        )
        self.adain1 = nn.ModuleList(StyledNorm(channels) for _ in self.DILATIONS)
        self.adain2 = nn.ModuleList(StyledNorm(channels) for _ in self.DILATIONS)
        self.alpha1, self.alpha2 = (
            nn.ParameterList(torch.ones(1, channels, 1) for _ in self.DILATIONS) for _ in range(2)
        )

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        for index in range(len(self.DILATIONS)):
            y = self.adain1[index](x, style)
            y = self.convs1[index](snake(y, self.alpha1[index]))
            y = self.adain2[index](y, style)
            x = x + self.convs2[index](snake(y, self.alpha2[index]))
        return x


def snake(x: Tensor, alpha: Tensor) -> Tensor:
    return torch.addcdiv(x, torch.sin(alpha * x).square(), alpha)


class Generator(nn.Module):
    """Frames and pitch into sound: harmonics are shaped, spectrum by spectrum."""

    def __init__(self) -> None:
        super().__init__()
        widths, channels = (512, 256, 128), SPECTRUM + 2
        self.sources = nn.Linear(HARMONICS, 1)
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(a, b, 2 * step, step, step // 2)
            for a, b, step in zip(widths[:-1], widths[1:], (10, 6), strict=True)
        )
        self.resblocks = nn.ModuleList(
            SnakeBlock(width, kernel) for width in widths[1:] for kernel in (3, 7, 11)
        )
        self.noise_convs = nn.ModuleList(
            (nn.Conv1d(channels, 256, 12, 6, 3), nn.Conv1d(channels, 128, 1))
        )
        self.noise_res = nn.ModuleList((SnakeBlock(256, 7), SnakeBlock(128, 11)))
        self.conv_post = nn.Conv1d(128, channels, 7, padding=3)
        self.register_buffer("window", torch.hann_window(SPECTRUM), persistent=False)

    def forward(self, x: Tensor, style: Tensor, pitch: Tensor, noise: bool) -> Tensor:
        window = self.get_buffer("window")
        source = torch.tanh(self.sources(harmonics(pitch, noise))).squeeze(-1)
        spectrum = torch.stft(source, SPECTRUM, HOP, window=window, return_complex=True)
        heard = torch.cat((spectrum.abs(), spectrum.angle()), 1)
        for index, up in enumerate(self.ups):
            added = self.noise_res[index](self.noise_convs[index](heard), style)
            x = up(F.leaky_relu(x, 0.1))
            x = (F.pad(x, (1, 0), mode="reflect") if index == len(self.ups) - 1 else x) + added
            blocks = self.resblocks[3 * index : 3 * index + 3]
            x = torch.stack([block(x, style) for block in blocks]).mean(0)
        size, angle = self.conv_post(F.leaky_relu(x)).float().chunk(2, 1)
        made = torch.polar(size.exp(), angle.sin())
        return torch.istft(made, SPECTRUM, HOP, window=window)


def harmonics(pitch: Tensor, noise: bool) -> Tensor:
    """Pitch [B, n] in Hz -> sines of it and its multiples, [B, n * PITCH_HOP, HARMONICS].

    Turns are summed in double precision: ten seconds are a million radians. Between two values the
    angle moves evenly; where nothing is voiced there is noise alone.
    """
    multiples = torch.arange(1, HARMONICS + 1, device=pitch.device)
    turns = (pitch.double()[:, :, None] * multiples / RATE) % 1  # a sample
    ends = torch.cumsum(turns, 1) * PITCH_HOP  # [B, n, HARMONICS]
    ends = torch.cat((ends[:, :1], ends, ends[:, -1:]), 1)
    starts, moves = ends[:, :-1] % 1, ends.diff(dim=1)
    along = (torch.arange(PITCH_HOP, device=pitch.device) + 0.5) / PITCH_HOP
    angle = starts.float()[:, :, None] + moves.float()[:, :, None] * along[:, None]
    half = PITCH_HOP // 2
    sines = torch.sin(2 * math.pi * angle).flatten(1, 2)[:, half:-half] * LOUDNESS_OF_SINES
    voiced = (pitch > UNVOICED).to(sines.dtype).repeat_interleave(PITCH_HOP, 1)[..., None]
    sines = sines * voiced
    if noise:
        size = voiced * NOISE + (1 - voiced) * LOUDNESS_OF_SINES / 3
        sines = sines + size * torch.randn_like(sines)
    return sines


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        wide, beside = 1024, 64
        self.encode = StyledBlock(HIDDEN + 2, wide)
        inputs = wide + 2 + beside
        self.decode = nn.ModuleList(
            (*(StyledBlock(inputs, wide) for _ in range(3)), StyledBlock(inputs, HIDDEN, True))
        )
        self.F0_conv, self.N_conv = (nn.Conv1d(1, 1, 3, 2, 1) for _ in range(2))
        self.asr_res = nn.Conv1d(HIDDEN, beside, 1)
        self.generator = Generator()

    def forward(
        self, sounds: Tensor, pitch: Tensor, energy: Tensor, style: Tensor, noise: bool
    ) -> Tensor:
        """Phonemes laid out in time [B, HIDDEN, frames], two pitches and energies a frame."""
        contours = self.F0_conv(pitch[:, None]), self.N_conv(energy[:, None])
        x = self.encode(torch.cat((sounds, *contours), 1), style)
        beside = self.asr_res(sounds)
        for block in self.decode:
            x = block(torch.cat((x, beside, *contours), 1), style)
        return self.generator(x, style, pitch, noise)


@dataclass(frozen=True, eq=False)
class Planned:
    """What the text side says of rows with equally many tokens."""

    prosody: Tensor  # [B, T, HIDDEN + STYLE]
    sounds: Tensor  # [B, T, HIDDEN]
    durations: Tensor  # [B, T] frames, before rounding


class Kokoro(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bert, self.bert_encoder = Albert(), nn.Linear(Albert.WIDTH, HIDDEN)
        self.text_encoder, self.predictor, self.decoder = TextEncoder(), Predictor(), Decoder()

    def plan(self, ids: Tensor, style: Tensor) -> Planned:
        """Token ids [B, T] and styles [B, 2 * STYLE]."""
        prosody = self.predictor.text_encoder(self.bert_encoder(self.bert(ids)), style[:, STYLE:])
        durations = self.predictor.durations(prosody)
        return Planned(prosody, self.text_encoder(ids), durations)

    def contours(self, prosody: Tensor, style: Tensor) -> tuple[Tensor, Tensor]:
        """Pitch and energy of prosody laid out in time [B, frames, …]."""
        return self.predictor.contours(prosody, style[:, STYLE:])

    def speak(
        self, sounds: Tensor, pitch: Tensor, energy: Tensor, style: Tensor, noise: bool = True
    ) -> Tensor:
        """Sounds laid out in time [B, frames, HIDDEN] -> waves [B, frames * FRAME]."""
        return self.decoder(sounds.transpose(1, 2), pitch, energy, style[:, :STYLE], noise)


def frames_of(durations: Tensor, pace: Tensor) -> Tensor:
    """Whole frames [B, T] of each phoneme, stretched by `pace` [B]."""
    return (durations * pace[:, None]).round().clamp(min=1).long()


def even(frames: Tensor, whole: int) -> Tensor:
    """The same frames [T], the closing silence so much longer that they are `whole`."""
    frames = frames.clone()
    frames[-1] += whole - frames.sum()
    return frames


def lay_out(values: Tensor, frames: Tensor) -> Tensor:
    """Values of phonemes [T, …] frame by frame [frames.sum(), …]."""
    return values.repeat_interleave(frames, 0)


def move_pitch(pitch: Tensor, factor: Tensor, spread: Tensor) -> Tensor:
    """Pitch [B, n] times `factor` [B], its distance from the row's middle times `spread` [B]."""
    voiced = pitch > SPOKEN
    logs = torch.where(voiced, pitch, 1.0).log()
    middle = logs.sum(1, keepdim=True) / voiced.sum(1, keepdim=True).clamp(min=1)
    moved = (middle + (logs - middle) * spread[:, None]).exp() * factor[:, None]
    return torch.where(voiced, moved, pitch)
