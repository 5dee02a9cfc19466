"""`python -m bench.gpu.decode_steps`: decode steps of a random talker, checked and timed.

The network is created on the device with the shapes of a published checkpoint; nothing is written
to disk. Checks that replayed steps give the codes of plain ones and that other rows and padding
change nothing within a bucket; then prints ms per frame by rows, without the codec.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from bench.random_config import config
from engine.checkpoints.checkpoint import SpecialIds
from engine.checkpoints.files import Table
from engine.model.configs import TalkerConfig
from engine.model.talker import Talker
from engine.plan import Admit, Prefill, Prompt, ResolvedSampling
from engine.worker.cuda_graphs import Capture, graph_capture
from engine.worker.loading.weight_loader import empty_network
from engine.worker.model_runner import ModelRunner
from engine.worker.state.sampling import sampling_tensors, uniforms
from engine.worker.talker.decode_graphs import Decoder, EagerDecoder, GraphDecoder
from engine.worker.talker.prefill import Prefiller

DRAWN = ResolvedSampling(False, 0.9, 50, 1.0, 1.05, False, 0.9, 50, 1.0)
GREEDY = ResolvedSampling(True, 0.9, 50, 1.0, 1.05, True, 0.9, 50, 1.0)
MAX_FRAMES = 600
Result = TypeVar("Result")


@torch.no_grad()
def random_talker(raw: dict[str, Any], device: torch.device, dtype: torch.dtype) -> Talker:
    """Random weights that keep signals in range; the model never samples end of speech."""
    talker = empty_network(lambda: Talker(TalkerConfig.from_dict(raw)), dtype).to_empty(
        device=device
    )
    generator = torch.Generator(device).manual_seed(0)
    for name, value in talker.named_parameters():
        if value.dim() > 1:
            value.normal_(0, value[0].numel() ** -0.5, generator=generator)
        else:
            value.fill_(0.0 if name.endswith("bias") else 1.0)
    talker.codec_head.weight[raw["codec_eos_token_id"]] = 0
    return talker


def make_runner(
    size: str, slots: int, positions: int, dtype: torch.dtype, device: str
) -> ModelRunner:
    raw, place = config(size, "custom_voice"), torch.device(device)
    talker = random_talker(raw["talker_config"], place, dtype)
    table = Table(raw, "config")
    shape = talker.config
    ids = SpecialIds.read(
        table, table.table("talker_config"), shape.text_vocab_size, shape.vocab_size
    )
    return ModelRunner(talker, ids, slots, positions, place, dtype)


def fill(runner: ModelRunner, rows: Sequence[int], draw: ResolvedSampling, text: int = 40) -> None:
    """Admit prompts of different lengths to the rows, each with its own seed."""
    for row in rows:
        words = tuple(range(100 + row, 100 + row + text + row % 7))
        prompt = Prompt(words, "whole", role_ids=(1, 2, 3), language_id=2050, speaker_id=3061)
        runner.release(row)
        runner.admit([(row, Admit(row, "bench", prompt, draw, 1000 + row, MAX_FRAMES, True))])
        runner.prefill([(row, Prefill(row, 0, len(prompt)))])


def codes(
    runner: ModelRunner, steps: Decoder, rows: Sequence[int], draw: ResolvedSampling, frames: int
) -> Tensor:
    """[frames, R, 17]"""
    fill(runner, rows, draw)
    runner.decoder = steps
    return torch.stack([runner.frames(rows).codes.clone() for _ in range(frames)])


def check(runner: ModelRunner, record: Capture, frames: int, counts: Sequence[int]) -> None:
    """Compare replays with eager runs of the same shapes, and with plain steps."""
    replayed, padded = GraphDecoder(runner.step, record), GraphDecoder(runner.step, _as_written)
    for draw, name in ((GREEDY, "greedy"), (DRAWN, "drawn")):
        for count in counts:
            rows = list(range(count))
            graph = codes(runner, replayed, rows, draw, frames)
            written = codes(runner, padded, rows, draw, frames)
            same = torch.equal(graph, written)
            again = torch.equal(written, codes(runner, padded, rows, draw, frames))
            plain = codes(runner, EagerDecoder(runner.step), rows, draw, frames)
            agree = (graph == plain).all(-1).float().mean().item()
            print(f"{name} {count} rows, {frames} frames: graph == as written {same}, written "
                  f"twice {again}, frames as in plain steps {agree:.3f}", flush=True)  # fmt: skip
            assert same or not again, "a replay gives other codes"
    assert len({tuple(row.tolist()) for row in graph[:, 0]}) > 1, "every frame is the same"
    few = codes(runner, replayed, [2, 5, 6], DRAWN, frames)  # 3 rows in the bucket of 3
    more = codes(runner, replayed, [1, 5, 9], DRAWN, frames)
    same = torch.equal(few[:, 1], more[:, 1])
    print(f"other company in the same bucket changes nothing: {same}", flush=True)
    assert same


def drift(runner: ModelRunner, count: int, frames: int) -> None:
    """Compare fused kernels with plain ones: hidden states, and the resulting codes."""
    step, fused, rows = runner.step, runner.step.talk, list(range(count))
    replayed = runner.prefiller
    if fused is None:
        return
    runner.prefiller = Prefiller(step, runner.row_metadata)  # no graphs
    fill(runner, rows, GREEDY)
    index = torch.arange(count, device=step.device)
    x, position = runner.slots.hidden[index], runner.slots.position[index]
    made = fused(x, index, position).float()
    ours = codes(runner, EagerDecoder(step), rows, GREEDY, frames)
    fill(runner, rows, GREEDY)
    prompts = runner.slots.hidden[index].float()
    step.talk = None
    fill(runner, rows, GREEDY)
    plain = step.run(x[:, None], index, index, position[:, None], 256)[:, 0].float()
    error = ((made - plain).norm() / plain.norm()).item()
    other = runner.slots.hidden[index].float()
    begun = ((prompts - other).norm() / other.norm()).item()
    same = (codes(runner, EagerDecoder(step), rows, GREEDY, frames) == ours).all(-1).float().mean()
    step.talk, runner.prefiller = fused, replayed
    print(f"fused talker, {count} rows: hidden differs by {error:.2e}, "
          f"after prompts by {begun:.2e}, "
          f"greedy frames as without {same.item():.3f}", flush=True)  # fmt: skip


def _as_written(work: Callable[[], Result]) -> Callable[[], Result]:
    return work


def milliseconds(run: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Milliseconds of the device and of the host per call."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(repeats):
        run()
    host = time.perf_counter() - begun
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begun) / repeats, 1e3 * host / repeats


def timings(
    runner: ModelRunner, record: Capture, counts: Sequence[int], plain: bool
) -> list[dict[str, float]]:
    table = [_timed(runner, record, count, plain) for count in counts]
    for row in table:
        print(json.dumps(row), flush=True)
    return table


def _timed(runner: ModelRunner, record: Capture, count: int, plain: bool) -> dict[str, float]:
    rows = list(range(count))
    fill(runner, rows, DRAWN)
    spent: dict[str, float] = {"rows": count}
    if plain:
        runner.decoder = EagerDecoder(runner.step)
        spent["plain"], _ = milliseconds(lambda: runner.frames(rows), 5)
    runner.decoder = GraphDecoder(runner.step, record)
    runner.frames(rows)
    spent["graph"], spent["host"] = milliseconds(lambda: runner.frames(rows), 40)
    spent |= parts(runner, record, count)
    return {name: round(value, 3) for name, value in spent.items()}


def parts(runner: ModelRunner, record: Capture, count: int) -> dict[str, float]:
    """Times of the talker and of the predictor alone, replayed."""
    step, index = runner.step, torch.arange(count, device=runner.step.device)
    slots = runner.slots
    x = slots.hidden[index][:, None]
    positions = slots.position[index][:, None]
    _, rest, _ = sampling_tensors(slots.sampling[index])
    drawn = uniforms(slots.keys[index], slots.frame[index], 16)[:, :-1]
    works: dict[str, Callable[[], object]] = {
        "talker": lambda: (
            step.talk(x[:, 0], index, positions[:, 0])
            if step.talk
            else step.run(x, index, index, positions, 256)
        ),
        "predictor": lambda: step.predict(x[:, 0], x[:, 0], rest, drawn, 64),
    }
    spent = {}
    for name, work in works.items():
        work()
        spent[name], _ = milliseconds(record(work), 20)
    return spent


def profile(runner: ModelRunner, record: Capture, count: int, out: Path) -> None:
    """Kernels of an eager step by time."""
    rows = list(range(count))
    fill(runner, rows, DRAWN)
    runner.decoder = GraphDecoder(runner.step, _as_written)
    runner.frames(rows)
    with torch.profiler.profile() as seen:
        runner.frames(rows)
        torch.cuda.synchronize()
    spent = seen.key_averages().table(sort_by="cuda_time_total", row_limit=45)
    (out / f"kernels-{count}.txt").write_text(spent)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--size", default="1.7B")
    ask.add_argument("--device", default="cuda")
    ask.add_argument("--slots", type=int, default=128)
    ask.add_argument("--positions", type=int, default=1024)
    ask.add_argument("--rows", type=int, nargs="+", default=[1, 8, 32, 64, 128])
    ask.add_argument("--check", type=int, nargs="*", default=[1, 3, 17, 64])
    ask.add_argument("--frames", type=int, default=40)
    ask.add_argument("--float32", action="store_true")
    ask.add_argument("--times", type=int, default=1, help="0: only check")
    ask.add_argument("--plain", action="store_true", help="time plain steps too")
    ask.add_argument("--profile", type=int, nargs="*", default=[])
    ask.add_argument("--out", type=Path, default=Path("."))
    args = ask.parse_args()
    dtype = torch.float32 if args.float32 else torch.bfloat16
    with torch.inference_mode():
        begun = time.perf_counter()
        runner = make_runner(args.size, args.slots, args.positions, dtype, args.device)
        record = graph_capture(runner.step.device) or _as_written
        print(
            f"made in {time.perf_counter() - begun:.1f} s, {runner.bytes / 2**30:.2f} GiB",
            flush=True,
        )
        if args.check:
            for count in args.check:
                drift(runner, count, args.frames)
            check(runner, record, args.frames, args.check)
        if args.device == "cuda" and args.times:
            table = timings(runner, record, args.rows, args.plain)
            (args.out / "steps.json").write_text(json.dumps(table))
            for count in args.profile:
                profile(runner, record, count, args.out)


if __name__ == "__main__":
    main()
