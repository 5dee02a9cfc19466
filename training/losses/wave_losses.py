"""The losses between generated and real waves, and the networks that learn beside them.

Spectra, a phone recognizer and discriminators compare the waves. What comes out is the gradient for
the generated wave, so recognizer and discriminators are passed through once for both sides. Knows
no codec.
"""

from __future__ import annotations

from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch import Tensor, nn

from training import state as states
from training.codec import SpectralLoss
from training.losses.discriminators import (
    Discriminators,
    FeatureMaps,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
)
from training.losses.phone_recognizer import PhoneRecognizer, feature_distance, phone_loss
from training.optimizers import make_optimizer, reset_optimizer

# The share of each loss in the gradient for the wave, each as long as the others before: by their
# values alone, discriminators move a decoder a hundredth of what spectra do.
SHARES = {"spectral": 1.0, "recognized": 0.05, "recognizer": 0.1, "score": 0.5, "features": 1.0}
LENGTH = 20.0  # of a gradient whose share is 1, beside a codec's other losses
REMEMBERED = 0.99  # of the lengths so far, at each step
ADVERSARIAL_SAMPLES = 12_288  # samples of a piece that discriminators see: 0.51 s
SPREAD = 38_400  # samples of a wave from which one piece is taken
NETWORKS = ("discriminators", "recognizer")


class WaveLosses:
    """`rate` is the learning rate of both networks, a tensor on the device."""

    def __init__(
        self, device: torch.device, rate: Tensor, learn_phones: bool, compiled: bool = False
    ) -> None:
        self.rate, self.learn_phones = rate, learn_phones
        # Two gradients are taken of one compiled pass.
        functorch_config.donated_buffer = functorch_config.donated_buffer and not compiled
        self._score_both = torch.compile(score_both) if compiled else score_both
        self._generator_losses = torch.compile(generator_losses) if compiled else generator_losses
        self.lengths = {name: torch.zeros((), device=device) for name in SHARES}  # running means
        self.spectral = SpectralLoss(device)
        self.discriminators = Discriminators().to(device)
        self.recognizer = PhoneRecognizer().to(device)
        self.discriminator_optimizer = make_optimizer(self.discriminators, rate)
        self.recognizer_optimizer = make_optimizer(self.recognizer, rate)

    def state(self) -> dict[str, Any]:
        return {
            "discriminators": self.discriminators.state_dict(),
            "recognizer": self.recognizer.state_dict(),
            "discriminator_optimizer": self.discriminator_optimizer.state_dict(),
            "recognizer_optimizer": self.recognizer_optimizer.state_dict(),
            "lengths": self.lengths,
        }

    def resume(self, state: dict[str, Any], restart: bool) -> None:
        """Continue exactly, or from the weights alone (`restart`)."""
        for name in NETWORKS:
            network: nn.Module = getattr(self, name)
            network.load_state_dict(states.matching_weights(network, state.get(name, {})))
        if not restart and "discriminator_optimizer" in state:
            for name in ("discriminator_optimizer", "recognizer_optimizer"):
                getattr(self, name).load_state_dict(state[name])
                getattr(self, name).param_groups[0]["lr"] = self.rate
            for name, length in state["lengths"].items():
                self.lengths[name].copy_(length)

    def reset(self) -> None:
        """Set all that is remembered of steps to zero, where it is."""
        reset_optimizer(self.discriminator_optimizer)
        reset_optimizer(self.recognizer_optimizer)
        for length in self.lengths.values():
            length.zero_()

    def __call__(
        self, made: Tensor, real: Tensor, phones: Tensor, adversarial: bool
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Losses of waves [B, samples] with phones [B, n], and what they ask of `made` together: a
        gradient. Recognizer and discriminators take a step."""
        leaf = made.detach().requires_grad_()
        losses = {"spectral": self.spectral(leaf, real)} | self._recognize(leaf, real, phones)
        if adversarial:
            losses |= self._step_discriminators(*self._random_pieces(leaf, real))
        gradients = [self._share(name, losses[name], leaf) for name in SHARES if name in losses]
        gradient = torch.stack(gradients).sum(0)
        return {name: loss.detach() for name, loss in losses.items()}, gradient

    def _share(self, name: str, loss: Tensor, wave: Tensor) -> Tensor:
        """The loss's gradient for the wave, as long as its share, in the mean of many steps."""
        (gradient,) = torch.autograd.grad(loss, wave, retain_graph=True)
        mean, length = self.lengths[name], gradient.norm()
        mean.copy_(torch.where(mean == 0, length, mean.lerp(length, 1 - REMEMBERED)))
        return gradient * (SHARES[name] * LENGTH / mean.clamp(min=1e-12))

    @staticmethod
    def _random_pieces(made: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """The same random pieces of both waves, since discriminators are most of the work."""
        pieces = max(1, made.shape[1] // SPREAD)
        room = made.shape[1] // pieces
        length = min(ADVERSARIAL_SAMPLES, room)
        start = torch.randint(room - length + 1, (1,), device=made.device)
        first = room * torch.arange(pieces, device=made.device)[:, None] + start
        at = (first + torch.arange(length, device=made.device)).flatten()
        made, real = (
            wave.index_select(1, at).unflatten(1, (pieces, -1)).flatten(0, 1)
            for wave in (made, real)
        )
        return made, real

    def _step_discriminators(self, made: Tensor, real: Tensor) -> dict[str, Tensor]:
        """A step of the discriminators, then what they say of the generated wave."""
        with self._autocast(made):
            loss, real_maps = self._score_both(self.discriminators, made.detach(), real)
        self.discriminator_optimizer.zero_grad()
        loss.backward()
        self.discriminator_optimizer.step()
        self.discriminators.requires_grad_(False)
        with self._autocast(made):
            score, features = self._generator_losses(self.discriminators, made, real_maps)
        self.discriminators.requires_grad_(True)
        return {"score": score, "features": features, "discriminators": loss}

    @staticmethod
    def _autocast(wave: Tensor) -> torch.autocast:
        return torch.autocast(wave.device.type, torch.bfloat16, cache_enabled=False)

    def _recognize(self, made: Tensor, real: Tensor, phones: Tensor) -> dict[str, Tensor]:
        """Phones that are recognized in the generated wave, and the distance of the features."""
        with torch.set_grad_enabled(self.learn_phones):
            truth = self.recognizer(real)
        if self.learn_phones:
            self.recognizer_optimizer.zero_grad()
            phone_loss(truth[-1], phones).backward()
            self.recognizer_optimizer.step()
        self.recognizer.requires_grad_(False)
        features = self.recognizer(made)
        self.recognizer.requires_grad_(True)
        return {
            "recognized": phone_loss(features[-1], phones),
            "recognizer": feature_distance(truth, features),
        }


def score_both(
    discriminators: Discriminators, made: Tensor, real: Tensor
) -> tuple[Tensor, FeatureMaps]:
    """The discriminators' own loss, and their feature maps of the real wave."""
    both = [[x.chunk(2) for x in maps] for maps in discriminators(torch.cat((real, made)))]
    real_maps, made_maps = ([[x[side] for x in maps] for maps in both] for side in (0, 1))
    kept = [[features.detach() for features in maps] for maps in real_maps]
    return discriminator_loss(real_maps, made_maps), kept


def generator_losses(
    discriminators: Discriminators, made: Tensor, real_maps: FeatureMaps
) -> tuple[Tensor, Tensor]:
    """The adversarial loss and the feature loss of the generated wave."""
    made_maps = discriminators(made)
    return adversarial_loss(made_maps), feature_loss(real_maps, made_maps)
