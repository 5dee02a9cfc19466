"""Random weights to start training from.

A signal keeps its size from layer to layer, branches beside a residual path start small,
and the codec's first waveform is quiet. What is trained, and how, is not known here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.model.codec import CodecDecoder
from engine.model.convs import ConvNeXtBlock, ResidualUnit
from engine.model.quantizer import Codebook

BRANCH = 0.1  # of a residual branch beside its path
QUIET = 0.02  # of the last convolution: some −30 dB


@torch.no_grad()
def initialise(network: nn.Module) -> None:
    """Draw the weights of a codec decoder, a codec encoder or a speaker encoder."""
    for module in network.modules():
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.ConvTranspose1d)):
            _draw(module)
        elif isinstance(module, Codebook):
            module.embedding_sum.normal_()
    for module in network.modules():  # after the weights they scale
        if isinstance(module, ConvNeXtBlock):
            module.gamma.fill_(BRANCH)
        elif isinstance(module, ResidualUnit):
            module.conv2.conv.weight.mul_(BRANCH)
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
