"""The losses between generated and real waves, and the networks that learn beside them.

Spectra, a phone recognizer and discriminators compare the waves. What comes out is the gradient for
the generated wave, so recognizer and discriminators are passed through once for both sides. Knows
no codec.
"""

from __future__ import annotations

from typing import Any

import torch
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
from training.losses.phone_recognizer import PhoneRecognizer, missed, phone_loss

WEIGHTS = {"spectral": 15.0, "heard": 1.0, "missed": 4.0, "score": 4.0, "features": 2.0}
NETWORKS = ("discriminators", "recognizer")


class WaveLosses:
    """`rate` is the learning rate of both networks, a tensor on the device."""

    def __init__(self, device: torch.device, rate: Tensor, learn_phones: bool) -> None:
        self.rate, self.learn_phones = rate, learn_phones
        self.spectral = SpectralLoss(device)
        self.discriminators = Discriminators().to(device)
        self.recognizer = PhoneRecognizer().to(device)
        self.discriminator_steps = optimizer(self.discriminators, rate)
        self.recognizer_steps = optimizer(self.recognizer, rate)

    def state(self) -> dict[str, Any]:
        return {
            "discriminators": self.discriminators.state_dict(),
            "recognizer": self.recognizer.state_dict(),
            "discriminator_steps": self.discriminator_steps.state_dict(),
            "recognizer_steps": self.recognizer_steps.state_dict(),
        }

    def resume(self, state: dict[str, Any], again: bool) -> None:
        """Continue exactly, or from the weights alone (`again`)."""
        for name in NETWORKS:
            network: nn.Module = getattr(self, name)
            network.load_state_dict(states.fitting(network, state.get(name, {})))
        if not again and "discriminator_steps" in state:
            for name in ("discriminator_steps", "recognizer_steps"):
                getattr(self, name).load_state_dict(state[name])
                getattr(self, name).param_groups[0]["lr"] = self.rate

    def __call__(
        self, made: Tensor, real: Tensor, phones: Tensor, judged: bool
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Losses of waves [B, samples] with phones [B, n], and the gradient of their weighted sum
        for `made`. Recognizer and discriminators take a step."""
        leaf = made.detach().requires_grad_()
        losses = {"spectral": self.spectral(leaf, real)} | self._recognize(leaf, real, phones)
        maps = self._maps(leaf, real) if judged else None
        if maps:
            losses |= {"score": adversarial_loss(maps[1]), "features": feature_loss(*maps)}
        total = torch.stack([WEIGHTS[name] * loss for name, loss in losses.items()]).sum()
        (gradient,) = torch.autograd.grad(total, leaf, retain_graph=judged)
        if maps:
            losses["judges"] = self._learn(maps)
        return {name: loss.detach() for name, loss in losses.items()}, gradient

    def _maps(self, made: Tensor, real: Tensor) -> tuple[FeatureMaps, FeatureMaps]:
        """Feature maps of the real and of the generated wave."""
        with torch.autocast(made.device.type, torch.bfloat16, cache_enabled=False):
            return self.discriminators(real), self.discriminators(made)

    def _learn(self, maps: tuple[FeatureMaps, FeatureMaps]) -> Tensor:
        """A step of the discriminators along their own loss."""
        loss, parameters = discriminator_loss(*maps), tuple(self.discriminators.parameters())
        gradients = torch.autograd.grad(loss, parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        self.discriminator_steps.step()
        return loss

    def _recognize(self, made: Tensor, real: Tensor, phones: Tensor) -> dict[str, Tensor]:
        """Phones that are recognized in the generated wave, and the distance of the features."""
        with torch.set_grad_enabled(self.learn_phones):
            truth = self.recognizer(real)
        if self.learn_phones:
            self.recognizer_steps.zero_grad()
            phone_loss(truth[-1], phones).backward()
            self.recognizer_steps.step()
        self.recognizer.requires_grad_(False)
        told = self.recognizer(made)
        self.recognizer.requires_grad_(True)
        return {"heard": phone_loss(told[-1], phones), "missed": missed(truth, told)}


def optimizer(network: nn.Module, rate: Tensor) -> torch.optim.AdamW:
    """AdamW whose learning rate is a tensor, so that a captured step follows it."""
    cuda = rate.device.type == "cuda"
    parameters = network.parameters()
    return torch.optim.AdamW(parameters, lr=rate, betas=(0.8, 0.99), fused=cuda, capturable=cuda)
