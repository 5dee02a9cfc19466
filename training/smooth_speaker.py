"""Trains the speaker encoder to map every sentence to its voice's target vector.

A classifier scatters the sentences of unknown voices between known ones, and the midpoint of two
vectors is no voice. Here every voice has a target (`speaker_targets.py`), and the encoder learns to
find it from any sentence, with changes of speed, a third of them copies through a codec. `--speed
0.25 --microphones` is for voices unlike the teacher's: pitches that no mixture has with its timbre.
After few steps it costs exactness (training/experiments/2026-11-26-any-word-any-pitch.md).

    python -m training.smooth_speaker --speech DIR --init speaker.pt --codec codec.pt \\
        --out smooth.pt --minutes 2
"""

from __future__ import annotations

import argparse
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.speaker import SpeakerEncoder
from training import train_loop
from training.batching.encoding_batches import resample
from training.batching.speaker_targets import faster, speaker_targets
from training.batching.talker_dataset import SPEED
from training.codec import Codec
from training.data.speakers import all_speakers
from training.data.speech_format import FRAME, RATE
from training.data.speech_pool import SpeechPool
from training.graph_steps import Metrics
from training.train_speaker import (
    NeutralUtterances,
    augment,
    fit,
    load_encoder,
    load_frozen_codec,
    random_length,
    save_encoder,
    speaker_parser,
    through_codec,
)

RIDGE = 30.0  # of the least-squares fit
HUMPS, HUMP_GAIN, HUMP_WIDTH = 4, 3.0, 0.7  # of a microphone's response: how many, dB, octaves
BAND_LIMITED, HIGHEST, EDGE = 0.3, (3_500.0, 11_000.0), 200.0  # share of the waves; Hz
# Many recordings lack a low voice's fundamental. Share of the waves, Hz, dB an octave below that.
WITHOUT_LOWS, LOWEST, LOW_SLOPE = 0.5, (70.0, 400.0), (6.0, 30.0)
FAINTEST = -45.0  # dB
COPY_FRAMES = 48  # frames of a copy through the codec
MIN_CODEBOOKS = 6  # codebooks of a copy


@torch.no_grad()
def fit_last_layer(
    encoder: SpeakerEncoder, utterances: NeutralUtterances, axes: Tensor, sentences: int
) -> None:
    """Set the last layer to the least-squares fit to the targets."""
    known, voices = last_layer_inputs(encoder, utterances, sentences)
    middle, spread = known.mean(0), known.std(0) + 1e-6
    like = F.pad((known - middle) / spread, (0, 1), value=1.0)
    square = like.T @ like + RIDGE * torch.eye(like.shape[1], device=like.device)
    solved = torch.linalg.solve(square, like.T @ speaker_targets(axes[voices]))
    weight, bias = solved.split((len(middle), 1))
    encoder.fc.weight.copy_((weight / spread[:, None]).T[..., None])
    assert encoder.fc.bias is not None
    encoder.fc.bias.copy_(bias[0] - (middle / spread) @ weight)


def last_layer_inputs(
    encoder: SpeakerEncoder, utterances: NeutralUtterances, sentences: int
) -> tuple[Tensor, Tensor]:
    """Inputs of the last layer for some sentences [sentences, 2 C], and their speakers."""
    inputs: list[Tensor] = []
    hook = encoder.fc.register_forward_pre_hook(lambda _, args: inputs.append(args[0][..., 0]))
    voices = []
    for _ in range(0, sentences, 32):
        wave, voice = utterances.draw(32, 3 * RATE)
        encoder.embed(augment(wave))
        voices.append(voice)
    hook.remove()
    return torch.cat(inputs), torch.cat(voices)


def codec_copies(utterances: NeutralUtterances, codec: Codec, count: int) -> tuple[Tensor, Tensor]:
    """Some speech through the codec, and its speakers."""
    drawn = [utterances.draw(8, COPY_FRAMES * FRAME) for _ in range(0, count, 8)]
    waves = [through_codec(wave, codec, MIN_CODEBOOKS) for wave, _ in drawn]
    return torch.cat(waves), torch.cat([voice for _, voice in drawn])


def join_batches(
    speech: tuple[Tensor, Tensor], copied: tuple[Tensor, Tensor], count: int
) -> tuple[Tensor, Tensor]:
    """A batch of speech followed by `count` copies, all of one length."""
    (wave, voice), (waves, voices) = speech, copied
    pick = torch.randint(len(waves), (count,), device=waves.device)
    length = min(wave.shape[1], waves.shape[1])
    start = int(torch.randint(waves.shape[1] - length + 1, ()))
    return (
        torch.cat((wave[:, :length], waves[pick, start : start + length])),
        torch.cat((voice, voices[pick])),
    )


def other_microphones(wave: Tensor) -> Tensor:
    """Waves [B, samples] with random humps in the spectrum, some without their lows or highs."""
    batch, device = len(wave), wave.device
    spectrum = torch.fft.rfft(wave)
    hertz = torch.linspace(0, RATE / 2, spectrum.shape[1], device=device)
    octave = (hertz / 50).clamp(min=1).log2()  # 0 to about 8
    response = torch.zeros(batch, len(hertz), device=device)  # dB
    for _ in range(HUMPS):
        centre = 8 * torch.rand(batch, 1, device=device)
        gain = HUMP_GAIN * torch.randn(batch, 1, device=device)
        response += gain * (-((octave - centre) / HUMP_WIDTH).square()).exp()
    response += low_cut(batch, hertz)
    highest = torch.empty(batch, 1, device=device).uniform_(*HIGHEST)
    whole = torch.rand(batch, 1, device=device) >= BAND_LIMITED
    passed = ((highest - hertz) / EDGE).sigmoid().masked_fill(whole, 1.0)
    return torch.fft.irfft(spectrum * 10 ** (response / 20) * passed, wave.shape[1])


def low_cut(batch: int, hertz: Tensor) -> Tensor:
    """The response of microphones that do not hear the lows [B, frequencies], in dB."""

    def drawn(lowest: float, highest: float) -> Tensor:
        return torch.empty(batch, 1, device=hertz.device).uniform_(lowest, highest)

    corner, slope = drawn(*map(math.log2, LOWEST)), drawn(*LOW_SLOPE)
    below = (corner - hertz.clamp(min=1).log2()).clamp(min=0)  # octaves
    hears = drawn(0, 1) >= WITHOUT_LOWS
    return (-slope * below).clamp(min=FAINTEST).masked_fill(hears, 0.0)


def run(args: argparse.Namespace) -> None:
    device = train_loop.set_up(args)
    pool = SpeechPool(args.speech, args.hours, device, args.until)
    pool.wait(args.wait_hours)
    utterances, encoder = NeutralUtterances(pool), load_encoder(args.init).to(device)
    axes = torch.tensor([speaker.axes() for speaker in all_speakers()], device=device)
    copied = codec_copies(utterances, load_frozen_codec(args.codec, device), args.copies)
    fit_last_layer(encoder, utterances, axes, args.fitted)

    def losses() -> Metrics:
        speech = utterances.draw(args.batch * 2 // 3, random_length(1.0, 4.0))
        both = join_batches(speech, copied, args.batch // 3)
        return {"total": target_distance(encoder, *both, axes, args.speed, args.microphones)}

    fit(encoder, utterances, args, 100, 20.0, losses)
    save_encoder(encoder, args.out)


def target_distance(
    encoder: SpeakerEncoder,
    wave: Tensor,
    voice: Tensor,
    axes: Tensor,
    speed_range: float,
    microphones: bool,
) -> Tensor:
    """The distance of the vectors of waves [B, samples] to the targets of their voices [B]."""
    speed = 1 + speed_range * (2 * torch.rand(()).item() - 1)
    wave = resample(wave, round(wave.shape[1] / speed))
    wave = augment(other_microphones(wave) if microphones else wave)
    off = encoder.embed(wave) - speaker_targets(faster(axes[voice], speed))
    return off.square().sum(1).mean()


def main() -> None:
    defaults = dict(rate=6e-4, batch=192, hours=12, seed=5, minutes=2)
    parser = speaker_parser(__doc__, True, **defaults)
    parser.add_argument("--copies", type=int, default=2400)
    parser.add_argument("--fitted", type=int, default=3200, help="sentences of the first fit")
    parser.add_argument("--speed", type=float, default=SPEED, help="largest relative change of it")
    parser.add_argument("--microphones", action="store_true", help="other ones for every wave")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
