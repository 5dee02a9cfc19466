"""Random weights with which a codec decoder or encoder gives finite, quiet audio.

A signal keeps its size from layer to layer, and branches beside a residual path start small.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.model.codec import CodecDecoder
from engine.model.convs import ConvNeXtBlock, ResidualUnit
from engine.model.quantizer import Codebook

RESIDUAL = 0.1  # scale of a residual branch
QUIET = 0.02  # scale of the last convolution: about −30 dB


@torch.no_grad()
def initialise(network: nn.Module) -> None:
    """Draw the weights of a codec decoder or a codec encoder."""
    for module in network.modules():
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.ConvTranspose1d)):
            _draw(module)
        elif isinstance(module, Codebook):
            module.embedding_sum.normal_()
    for module in network.modules():  # after the weights they scale
        if isinstance(module, ConvNeXtBlock):
            module.gamma.fill_(RESIDUAL)
        elif isinstance(module, ResidualUnit):
            module.conv2.conv.weight.mul_(RESIDUAL)
        elif isinstance(module, CodecDecoder):
            module.decoder[-1].conv.weight.mul_(QUIET)


def _draw(layer: nn.Linear | nn.Conv1d | nn.ConvTranspose1d) -> None:
    weight: Tensor = layer.weight
    inputs = weight[0].numel()  # that meet in one output
    if isinstance(layer, nn.ConvTranspose1d):
        inputs = layer.in_channels * layer.kernel_size[0] // layer.stride[0]
    weight.normal_(0.0, inputs**-0.5)
    if layer.bias is not None:
        layer.bias.zero_()
