"""The codec in training: the engine's encoder and decoder around a quantizer that learns.

Codebooks are running means (unused entries are restarted), with straight-through gradients.
Codebook 0 learns the content: it is trained on phones alone, so that a talker can predict it from
text; the others learn the sound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.model.codec import CodecDecoder
from engine.model.configs import CodecConfig, EncoderConfig
from engine.model.encoder import Codebook, CodecEncoder, ResidualQuantizer
from engine.model.layers import Causal
from training import model_config
from training.data.phones import PHONES
from training.data.speech_format import PHONES_A_FRAME

DECAY = 0.99
DEAD_USAGE = 0.15  # an entry used less than this share of the average is restarted
ALL_CODEBOOKS = model_config.CODEBOOKS - 1  # all acoustic codebooks
UNQUANTISED = 0  # a depth: latents are not quantised, so encoder and decoder use all of them


@dataclass(frozen=True, eq=False)
class CodecOutput:
    wave: Tensor  # [B, samples]
    commitment: Tensor
    phones: Tensor  # logits [B, T, 4, phones]
    targets: Tensor  # [B, T, 2 d]: what is quantised


@torch.no_grad()
def update_codebook(book: Codebook, vectors: Tensor, codes: Tensor, learning: Tensor) -> None:
    """Move a codebook towards the vectors [N, d] that chose its entries [N], if `learning` is 1."""
    entries = torch.arange(len(book.cluster_usage), device=codes.device)
    hot = (codes[:, None] == entries).to(vectors.dtype)  # [N, entries]
    book.cluster_usage.lerp_(hot.sum(0), (1 - DECAY) * learning)
    book.embed_sum.lerp_(hot.T @ vectors, (1 - DECAY) * learning)
    share = len(vectors) / len(book.cluster_usage)
    dead = (book.cluster_usage < DEAD_USAGE * share)[:, None] & (learning > 0)
    chosen = vectors[torch.randint(len(vectors), book.cluster_usage.shape, device=vectors.device)]
    book.embed_sum.copy_(torch.where(dead, chosen * share, book.embed_sum))
    book.cluster_usage.copy_(torch.where(dead[:, 0], share, book.cluster_usage))


def quantize(
    half: ResidualQuantizer, latents: Tensor, depth: Tensor, learning: Tensor | None, fixed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Latents [B, width, T] -> their quantised sum [B, T, d], the commitment loss, and what was
    quantised [B, T, d].

    `depth` [B]: how many codebooks a row uses, or UNQUANTISED. With `learning` (1 or 0) codebooks
    learn, but for the first `fixed`.
    """
    left = target = half.input_proj(latents).transpose(1, 2).float()
    total, commitment = torch.zeros_like(left), left.new_zeros(())
    for index, layer in enumerate(half.layers):
        codes, found = layer.codebook.nearest(left.detach())
        if learning is not None and index >= fixed:
            update_codebook(layer.codebook, left.detach().flatten(0, 1), codes.flatten(), learning)
        used = (depth > index)[:, None, None]
        commitment = commitment + ((left - found).square() * used).mean()
        total = total + found * used
        left = left - found
    free = (depth == UNQUANTISED)[:, None, None]
    total = torch.where(free, target, total)
    return target + (total - target).detach(), commitment, target


class Codec(nn.Module):
    def __init__(self, sizes: dict[str, Any] | None = None) -> None:
        """`sizes`: as in speech_tokenizer/config.json; the recipe's by default."""
        super().__init__()
        sizes = sizes or model_config.codec()
        config = EncoderConfig.from_dict(sizes)
        self.encoder = CodecEncoder(config)
        self.decoder = CodecDecoder(CodecConfig.from_dict(sizes["decoder_config"]))
        inner = config.codebook_dim
        self.phone_head = nn.Sequential(
            nn.Linear(inner, 128), nn.GELU(), nn.Linear(128, PHONES_A_FRAME * len(PHONES))
        )
        self._latents, self._synthesize = self.encoder.latents, synthesize
        self.fixed = 0  # so many codebooks do not learn
        self.learning: Tensor
        self.register_buffer("learning", torch.ones(()), persistent=False)  # 0: none of them does
        for book in self.codebooks():
            book.embed_sum.normal_()
        for name, value in self.named_parameters():
            if name.endswith((".scale", ".gamma")):  # higher initial values for a short training
                nn.init.constant_(value, 0.1)

    def compile_networks(self) -> None:
        """Run encoder and decoder by torch.compile; the quantizer between them stays as it is."""
        self._latents = torch.compile(self.encoder.latents)
        self._synthesize = torch.compile(synthesize)

    def codebooks(self) -> list[Codebook]:
        """The encoder's codebooks: the semantic one, then the acoustic ones."""
        halves = self._halves()
        return [layer.codebook for half in halves for layer in half.layers]

    def _halves(self) -> tuple[ResidualQuantizer, ResidualQuantizer]:
        quantizer = self.encoder.quantizer
        return (
            quantizer.semantic_residual_vector_quantizer,
            quantizer.acoustic_residual_vector_quantizer,
        )

    def forward(self, wave: Tensor, depth: Tensor) -> CodecOutput:
        """Encode, quantise and decode."""
        latents = self._latents(wave)
        semantic, sounds = self._halves()
        learning = self.learning if self.training else None
        words, words_loss, content = quantize(
            semantic, latents, torch.ones_like(depth), learning, self.fixed
        )
        sound, sound_loss, target = quantize(sounds, latents, depth, learning, self.fixed - 1)
        into = self.decoder.quantizer
        latent = into.rvq_first.output_proj(words.detach().transpose(1, 2))
        latent = latent + into.rvq_rest.output_proj(sound.transpose(1, 2))
        phones = self.phone_head(words).unflatten(-1, (PHONES_A_FRAME, -1))
        wave = self._synthesize(self.decoder, latent)
        targets = torch.cat((content, target), -1)
        return CodecOutput(wave, words_loss + sound_loss, phones, targets)

    def targets(self, latents: Tensor) -> Tensor:
        """What is quantised of latents [B, width, T]: [B, T, 2 d], the content first."""
        halves = [half.input_proj(latents).transpose(1, 2).float() for half in self._halves()]
        return torch.cat(halves, -1)

    @torch.no_grad()
    def copy_codebooks(self) -> None:
        """Give the decoder the encoder's tables, both as plain means with counts of one."""
        into = self.decoder.quantizer
        layers = [*into.rvq_first.vq.layers, *into.rvq_rest.vq.layers]
        for book, layer in zip(self.codebooks(), layers, strict=True):
            table = book.table()
            book.embed_sum.copy_(table)
            book.cluster_usage.fill_(1)
            layer._codebook.embedding_sum.copy_(table)
            layer._codebook.cluster_usage.fill_(1)


def synthesize(decoder: CodecDecoder, latent: Tensor, window: Tensor | None = None) -> Tensor:
    """Latents [B, width, T] -> waves; of the frames in `window` alone, if there is one, where the
    decoder's first layers still see all of them."""
    positions = torch.arange(latent.shape[-1], device=latent.device)[None]
    x = decoder.pre_conv(latent).transpose(1, 2)
    x = decoder.pre_transformer(x, positions, Causal(decoder.config.transformer.sliding_window))
    x = x.transpose(1, 2) if window is None else x[:, window].transpose(1, 2)
    for layer in [*(part for pair in decoder.upsample for part in pair), *decoder.decoder]:
        x = layer(x)
    return x.squeeze(1).clamp(-1, 1)


def mel_filterbank(bins: int, size: int, device: torch.device) -> Tensor:
    """Triangular filters, evenly spaced on the mel scale: [bins, size / 2 + 1]."""
    top = 2595 * torch.log10(torch.tensor(1 + 12_000 / 700))
    hertz = 700 * (10 ** (torch.linspace(0, float(top), bins + 2) / 2595) - 1)
    grid = torch.linspace(0, 12_000, size // 2 + 1)
    low, mid, high = hertz[:-2, None], hertz[1:-1, None], hertz[2:, None]
    rise, fall = (grid - low) / (mid - low), (high - grid) / (high - mid)
    bank = torch.minimum(rise, fall).clamp(min=0)
    return (bank / bank.sum(1, keepdim=True).clamp(min=1e-8)).to(device)


FLOOR = 2e-4  # amplitude; softer sounds count as silence and are not compared


class SpectralLoss(nn.Module):
    """The distance of two waves by log mel spectrograms at several scales."""

    SCALES = ((2048, 160), (1024, 100), (512, 60), (256, 24), (128, 10))

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.banks = [mel_filterbank(bins, size, device) for size, bins in self.SCALES]
        self.windows = [torch.hann_window(size, device=device) for size, _ in self.SCALES]

    def forward(self, made: Tensor, real: Tensor) -> Tensor:
        total = made.new_zeros(())
        both = torch.cat((made, real)).float()
        for (size, _), bank, window in zip(self.SCALES, self.banks, self.windows, strict=True):
            complex_ = torch.stft(both, size, size // 4, window=window, return_complex=True)
            power = torch.view_as_real(complex_).square().sum(-1) * (4 / size) ** 2
            a, b = (bank @ (power + 1e-12).sqrt() + FLOOR).log().chunk(2)
            total = total + F.l1_loss(a, b)
        return total / len(self.SCALES)
