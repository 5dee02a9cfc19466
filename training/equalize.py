"""Gives back highs that a decoder has learned to make too soft, in its last convolution.

Log spectra are matched by their middles and not by their energies, so decoded speech is somewhat
darker than what was coded. A filter of two taps, y[n] - tilt y[n - 1], makes it brighter; the last
convolution is fitted to the filtered waves, so that decoding costs what it did.

    python -m training.equalize --state codec.pt --speech DIR --tilt 0.12
"""

from __future__ import annotations

import argparse
import cmath
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training import state as states
from training.codec import ALL_CODEBOOKS, Codec
from training.data.speech_format import FRAME, RATE
from training.data.speech_pool import SpeechPool

UNCHANGED = 500.0  # Hz, where the filter's gain is one: about as loud as before
PIECE = 48 * FRAME  # samples that are decoded at once
HELD_OUT = 0.2  # share of the pieces by which the fit is judged
RIDGE = 1e-9  # of the mean square of what is heard


def tilted(wave: Tensor, tilt: float) -> Tensor:
    """A wave [samples] through the filter."""
    return (wave - tilt * F.pad(wave, (1, 0))[:-1]) / response(UNCHANGED, tilt)


def response(hertz: float, tilt: float) -> float:
    """How much louder the filter makes a tone, before it is scaled."""
    return abs(1 - tilt * cmath.exp(-2j * math.pi * hertz / RATE))


class Heard:
    """What the last convolution heard [samples, inputs] and said [samples], piece by piece."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.last = cast(nn.Conv1d, codec.decoder.decoder[-1].conv)

    @torch.no_grad()
    def __call__(self, wave: Tensor) -> tuple[Tensor, Tensor]:
        inputs: list[Tensor] = []

        def keep(_: nn.Module, given: tuple[Tensor, ...]) -> None:
            inputs.append(given[0][0])

        hook = self.last.register_forward_pre_hook(keep)
        self._codec(wave[None], torch.tensor([ALL_CODEBOOKS]))
        hook.remove()
        # Padded before, so that each sample has its taps: [channels, samples, taps].
        windows = inputs[0].unfold(1, self.last.kernel_size[0], 1)
        heard = windows.transpose(0, 1).flatten(1)
        heard = torch.cat((heard, torch.ones_like(heard[:, :1])), 1)
        return heard.double(), heard.double() @ self.weights().double()

    def weights(self) -> Tensor:
        assert self.last.bias is not None
        return torch.cat((self.last.weight.detach().flatten(), self.last.bias.detach()))

    @torch.no_grad()
    def set_weights(self, weights: Tensor) -> None:
        assert self.last.bias is not None
        self.last.weight.copy_(weights[:-1].view_as(self.last.weight))
        self.last.bias.copy_(weights[-1:])


def equalize(codec: Codec, waves: Iterable[Tensor], tilt: float) -> float:
    """Fit the last convolution to its own filtered sound; what is then wrong of pieces that it was
    not fitted to, in dB."""
    heard, pieces = Heard(codec), list(waves)
    fitted = pieces[: max(1, round(len(pieces) * (1 - HELD_OUT)))]
    size = len(heard.weights())
    squares, products = torch.zeros(size, size).double(), torch.zeros(size).double()
    for inputs, sound in map(heard, fitted):
        squares += inputs.T @ inputs
        products += inputs.T @ tilted(sound, tilt)
    ridge = RIDGE * squares.diagonal().mean() * torch.eye(size)
    weights = torch.linalg.solve(squares + ridge, products)
    wrong, whole = 0.0, 0.0
    for inputs, sound in map(heard, pieces[len(fitted) :] or fitted):
        wanted = tilted(sound, tilt)
        wrong += float((inputs @ weights - wanted).square().sum())
        whole += float(wanted.square().sum())
    heard.set_weights(weights.float())
    return 10 * math.log10(wrong / whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="a codec's; changed in place")
    parser.add_argument("--speech", type=Path, required=True)
    parser.add_argument("--tilt", type=float, required=True)
    parser.add_argument("--seconds", type=float, default=60, help="of speech to fit to")
    args = parser.parse_args()
    state: dict[str, Any] = states.load(args.state)
    codec = Codec().eval()
    codec.load_state_dict(state["codec"])
    pool = SpeechPool(args.speech, args.seconds / 3600 + 0.5, torch.device("cpu"))
    pool.wait(args.seconds / 3600)
    starts = torch.arange(0, int(args.seconds * RATE), PIECE)
    wrong = equalize(codec, pool.cut(starts, PIECE), args.tilt)
    print(f"fitted to {wrong:.1f} dB")
    states.save(state | {"codec": codec.state_dict()}, args.state)


if __name__ == "__main__":
    main()
