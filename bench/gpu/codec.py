"""`python -m bench.gpu.codec check time profile streams`: the codec's decoder on a GPU.

Builds the published shapes with random weights on the device. `check`: distance from float32 in
decibels; `time`: audio seconds per second by streams and frames; `profile`: time by kernel;
`streams`: many streams in one batch.
"""

from __future__ import annotations

import copy
import random
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor
from torch.autograd import DeviceType  # type: ignore[attr-defined]

from bench.random_checkpoint import scatter, write_json
from bench.random_config import codec_config
from engine.model.codec import CodecDecoder, CodecState
from engine.model.configs import CodecConfig
from engine.model.convs import CausalUpsample, ResidualUnit
from engine.types import FRAME_SECONDS
from engine.worker.codec.codec_runner import CodecRunner
from engine.worker.codec.fused_decoder import FusedDecoder
from engine.worker.cuda_graphs import GraphCapture
from engine.worker.lru_cache import LRUCache

DEVICE = torch.device("cuda")
CELLS = ((1, 1), (1, 2), (1, 4), (1, 8), (1, 12), (8, 1), (8, 4), (8, 12), (32, 1), (32, 8),
         (64, 1), (64, 4), (64, 8), (64, 12))  # fmt: skip
KINDS = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}

ALL = ("plain-fp32", "plain-fp16", "plain-bf16", "fused-fp16", "fused-bf16")

Choose = Callable[[list[float]], float]
Step = Callable[[Tensor, CodecState, Tensor], Tensor]


def build(size: str) -> CodecDecoder:
    """Random weights for which every layer affects the output, without clipping."""
    generator = torch.Generator().manual_seed(0)
    with torch.device("meta"):
        codec = CodecDecoder(CodecConfig.from_dict(codec_config(size)["decoder_config"]))
    codec = codec.to_empty(device="cpu").eval().requires_grad_(False)
    for name, value in [*codec.named_parameters(), *codec.named_buffers()]:
        if value.dim() == 1:
            heard = "scale" in name or "gamma" in name
            even = float("usage" in name or ("norm" in name and "weight" in name))
            value.normal_(0, 0.1, generator=generator).add_(0.3 if heard else even)
    scatter(codec, generator)
    for layer in codec.modules():  # keeps signals near one, in the snake's monotonic range
        if isinstance(layer, ResidualUnit):
            layer.conv2.conv.weight *= 0.5
        if isinstance(layer, CausalUpsample):
            taps = layer.conv.kernel_size[0] // layer.conv.stride[0]
            spread = 0.7 * (layer.conv.in_channels * taps) ** -0.5
            layer.conv.weight.normal_(0, spread, generator=generator)
    codec = codec.to(DEVICE)
    codec.decoder[-1].conv.weight *= 0.1 / codec(codes(codec.config, 1, 25)).std()
    return codec


def codes(shape: CodecConfig, batch: int, frames: int) -> Tensor:
    draw = torch.Generator(DEVICE).manual_seed(1)
    size = (batch, shape.codebooks, frames)
    return torch.randint(0, shape.codebook_size, size, generator=draw, device=DEVICE)


def exactly(on: bool) -> None:
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = not on


def plain(codec: CodecDecoder, dtype: torch.dtype) -> Step:
    other = copy.deepcopy(codec).to(dtype)
    other.fold()
    return other.step


def fused(codec: CodecDecoder, dtype: torch.dtype) -> Step:
    return FusedDecoder(codec, dtype).step


def state(codec: CodecDecoder, rows: int, dtype: torch.dtype) -> CodecState:
    return CodecState.allocate(codec.config, rows, DEVICE, dtype)


def forms(codec: CodecDecoder, names: Iterable[str]) -> dict[str, tuple[Step, torch.dtype]]:
    made = {}
    for name in names:
        form, kind = name.split("-")
        make = fused if form == "fused" else plain
        made[name] = make(codec, KINDS[kind]), KINDS[kind]
    return made


def check(codec: CodecDecoder, names: Iterable[str]) -> dict[str, float]:
    """Decibels between float32's audio and each form's, streamed in uneven pieces."""
    exactly(True)
    drawn = codes(codec.config, 3, 100)
    wanted = codec(drawn)
    heard = {}
    for name, (step, dtype) in forms(codec, names).items():
        exactly(name != "plain-fp32")
        kept, rows = state(codec, 5, dtype), torch.tensor([3, 0, 4], device=DEVICE)
        pieces = drawn.split([1, 2, 4, 8, 12, 12, 1, 8, 12, 12, 12, 12, 4], -1)
        made = torch.cat([step(piece, kept, rows).float() for piece in pieces], -1)
        noise = (made - wanted).square().mean()
        heard[name] = float(10 * torch.log10(wanted.square().mean() / noise))
        print(f"{name:12} {heard[name]:7.1f} dB", flush=True)
    print(f"loudest {float(wanted.abs().max()):.2f}")
    return heard


def milliseconds(
    work: Callable[[], object], repeats: int = 20, choose: Choose = statistics.median
) -> float:
    """Milliseconds of a run, by default the median of `repeats`."""
    work()
    times = []
    for _ in range(repeats):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        work()
        ended.record()
        ended.synchronize()
        times.append(begun.elapsed_time(ended))
    return choose(times)


def clock(codec: CodecDecoder, names: Iterable[str], cells: Iterable[tuple[int, int]]) -> object:
    exactly(False)
    report = {}
    for name, (step, dtype) in forms(codec, names).items():
        record = GraphCapture(DEVICE)
        kept = state(codec, 65, dtype)
        for batch, frames in cells:
            drawn, rows = codes(codec.config, batch, frames), torch.arange(batch, device=DEVICE)
            work = partial(step, drawn, kept, rows)
            begun = time.perf_counter()
            work()
            torch.cuda.synchronize()
            first = time.perf_counter() - begun
            once = milliseconds(work, 5)
            begun = time.perf_counter()
            replay = record(work)
            torch.cuda.synchronize()
            took = time.perf_counter() - begun
            graph = milliseconds(replay)
            speed = batch * frames * FRAME_SECONDS / graph * 1000
            report[f"{name} {batch}x{frames}"] = graph, speed
            print(
                f"{name:11} {batch:3} x {frames:2}: first {first:6.2f} s, plain {once:7.3f} ms, "
                f"recorded in {took:5.2f} s, replayed {graph:7.3f} ms, {speed:7.0f} audio s/s",
                flush=True,
            )
        del record
    return report


def profile(codec: CodecDecoder, name: str, batch: int, frames: int) -> None:
    step, dtype = forms(codec, [name])[name]
    kept = state(codec, 65, dtype)
    drawn, rows = codes(codec.config, batch, frames), torch.arange(batch, device=DEVICE)
    step(drawn, kept, rows)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        step(drawn, kept, rows)
        torch.cuda.synchronize()
    events = [e for e in seen.events() if e.device_type == DeviceType.CUDA]
    total = sum(e.device_time for e in events)
    print(f"{name} {batch} x {frames}: {len(events)} kernels, {total / 1000:.3f} ms")
    for number, event in enumerate(events):
        print(f"  {number:3} {event.device_time:9.1f} us  {event.name[:90]}")


def streams(codec: CodecDecoder) -> None:
    """Streams that start and end in one CodecRunner, each compared with its offline audio."""
    exactly(False)
    shape = codec.config
    # [streams, frames, 16], padded to steps of twelve frames
    drawn = codes(shape, 70, 52).transpose(1, 2)
    begun = time.perf_counter()
    codec_runner = CodecRunner(copy.deepcopy(codec), 64, LRUCache(1 << 30), torch.float16)
    torch.cuda.synchronize()
    print(f"built in {time.perf_counter() - begun:.1f} s")
    begun = time.perf_counter()
    codec_runner.warm()
    torch.cuda.synchronize()
    held = torch.cuda.memory_allocated() / 2**30, torch.cuda.memory_reserved() / 2**30
    print(f"warm in {time.perf_counter() - begun:.1f} s, {held[0]:.1f} of {held[1]:.1f} GiB")
    draw = random.Random(0)
    codec_runner.open([(slot, None) for slot in range(64)])
    places = dict.fromkeys(range(64), 0)
    heard: list[list[Any]] = [[] for _ in range(64)]
    hosts = []
    while any(place < 40 for place in places.values()):
        due = [slot for slot in range(64) if places[slot] < 40 and draw.random() < 0.6]
        if not due:
            continue
        counts = [min(draw.choice((1, 2, 3, 4, 7, 8, 12)), 40 - places[slot]) for slot in due]
        spans = torch.stack([drawn[s, places[s] :][:12] for s in due])
        began = time.perf_counter()
        made = codec_runner.decode([(due, spans, counts)])
        hosts.append((time.perf_counter() - began) * 1000)
        assert made.done is not None
        made.done.synchronize()
        for slots, lengths, batch in made.batches:
            for slot, length, samples in zip(slots, lengths, batch.clone(), strict=True):
                heard[slot].append(samples[:length])
                places[slot] += length // shape.hop
    exactly(True)
    worst = 1e9
    for slot in range(64):
        wanted = codec(drawn[slot : slot + 1, :40].transpose(1, 2))[0].cpu()
        noise = torch.cat(heard[slot]).float() / 32767 - wanted
        worst = min(worst, float(10 * torch.log10(wanted.var() / noise.square().mean())))
    print(f"64 streams in any pieces: at least {worst:.1f} dB, "
          f"host {statistics.median(hosts):.2f} ms a turn", flush=True)  # fmt: skip


@torch.inference_mode()
def main(
    parts: list[str],
    size: str = "1.7B",
    form: Annotated[list[str] | None, typer.Option()] = None,
    out: Path | None = None,
) -> None:
    torch.backends.cudnn.benchmark = False
    codec = build(size)
    report: dict[str, object] = {"torch": torch.__version__, "card": torch.cuda.get_device_name()}
    if "check" in parts:
        report["check"] = check(codec, form or ALL)
    if "time" in parts:
        report["time"] = clock(codec, form or ["plain-fp16", "fused-fp16"], CELLS)
    if "profile" in parts:
        for batch, frames in ((1, 1), (64, 4)):
            profile(codec, "fused-fp16", batch, frames)
    if "streams" in parts:
        streams(codec)
    if out:
        write_json(out, report)


if __name__ == "__main__":
    typer.run(main)
