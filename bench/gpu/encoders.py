"""`python -m bench.gpu.encoders`: encodes recordings on a GPU, eagerly and by CUDA graphs.

Random weights of the published shapes. One line per length: milliseconds until the result is on the
host, and the difference by graphs: share of other codes, and distance of vectors.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import torch
import typer
from torch import nn

from bench.random_checkpoint import scatter, write_json
from bench.random_config import codec_config, config
from engine.model.configs import EncoderConfig, SpeakerConfig
from engine.model.encoder import CodecEncoder
from engine.model.speaker import SpeakerEncoder
from engine.types import SAMPLE_RATE, Waveform
from engine.worker.cuda_graphs import synchronize
from engine.worker.device import set_libraries
from engine.worker.reference.encoder_graphs import EagerEncoder, EncoderRunner, select_encoder

SECONDS = (2.0, 5.0, 9.3, 14.9, 19.9, 30.0)


class EncoderPair(NamedTuple):
    """One network, eager and by graphs."""

    plain: EagerEncoder
    served: EncoderRunner


def networks(size: str, device: torch.device) -> dict[str, EncoderPair]:
    generator = torch.Generator().manual_seed(0)
    encoder = CodecEncoder(EncoderConfig.from_dict(codec_config(size)))
    speaker = SpeakerEncoder(
        SpeakerConfig.from_dict(config(size, "base")["speaker_encoder_config"])
    )
    for network in (encoder, speaker):
        _ready(scatter(network, generator), device)
    works = {"codes": encoder.encode, "vector": speaker.embed}
    return {
        name: EncoderPair(EagerEncoder(work, device), select_encoder(work, device))
        for name, work in works.items()
    }


def _ready(network: nn.Module, device: torch.device) -> nn.Module:
    return network.eval().requires_grad_(False).to(device)


def noise(seconds: float, seed: int = 0) -> Waveform:
    draw = np.random.default_rng(seed)
    samples = round(seconds * SAMPLE_RATE)
    return (0.1 * draw.standard_normal(samples)).astype(np.float32)


def milliseconds(hear: EncoderRunner, seconds: float, times: int) -> float:
    """Milliseconds until the result is on the host; each time another recording."""

    def once(number: int) -> float:
        audio, start = noise(seconds, number), time.perf_counter()
        hear([audio])[0].cpu()
        return 1e3 * (time.perf_counter() - start)

    return statistics.median([once(number) for number in range(times + 2)][2:])


def difference(pair: EncoderPair, audio: Waveform) -> float:
    """The share of different codes; for vectors, one minus the cosine."""
    wanted = pair.plain([audio])[0].cpu()
    made = pair.served([audio])[0][: len(wanted)].cpu()
    if wanted.is_floating_point():
        return float(1 - torch.cosine_similarity(wanted.double(), made.double(), 0))
    return float((made != wanted).float().mean())


def taken(work: Callable[[], object], device: torch.device) -> float:
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


@torch.inference_mode()
def main(
    size: str = "1.7B",
    device: str = "cuda",
    times: int = 15,
    seconds: Annotated[list[float] | None, typer.Option()] = None,
    out: Path | None = None,
) -> None:
    place = torch.device(device)
    set_libraries(place)
    report: dict[str, object] = {"torch": torch.__version__}
    for name, pair in networks(size, place).items():
        warm = taken(pair.served.warm, place)
        print(f"{name}: ready after {warm:.2f} s", flush=True)
        for length in seconds or SECONDS:
            row = {
                "written_ms": milliseconds(pair.plain, length, times),
                "served_ms": milliseconds(pair.served, length, times),
                "difference": difference(pair, noise(length)),
            }
            report[f"{name} {length:g} s"] = row
            row_text = ", ".join(f"{key} {value:.3g}" for key, value in row.items())
            print(f"{name} {length:g} s: {row_text}", flush=True)
    if out:
        write_json(out, report)


if __name__ == "__main__":
    typer.run(main)
