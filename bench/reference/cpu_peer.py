"""One engine in a process of its own, for `cpu_peers`: loads a model, speaks, prints one JSON line.

It runs under the Python that has the engine, so it imports that engine and otherwise what every
Python has. Seconds of loading begin before the engine is imported.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

TEXT = "The night train was late again, and nobody on the platform knew why."
RATE = 24_000
# (seed, frames) -> pieces of sound, each as soon as it is there
Speak: TypeAlias = Callable[[int, int], Iterable[Sized]]
# version, how it speaks, and other ways to begin, by name
Loaded: TypeAlias = tuple[str, Speak, Mapping[str, Speak]]


@dataclass(frozen=True)
class Report:
    """What one start of an engine measured; the seconds and the factor are medians of requests."""

    version: str
    load: float
    first: float  # seconds to the first piece
    factor: float  # seconds of work for a second of sound
    resident: float  # MB at the end
    anonymous: float  # of these, what no file holds
    early: Mapping[str, float] = field(default_factory=dict)  # first pieces of other ways to begin


@dataclass(frozen=True)
class Spoken:
    first: float
    whole: float
    audio: float


def listen(speak: Speak, seed: int, frames: int) -> Spoken:
    """Time one request."""
    start, first, samples = time.perf_counter(), 0.0, 0
    for piece in speak(seed, frames):
        first = first or time.perf_counter() - start
        samples += len(piece)
    if not samples:
        raise RuntimeError("The engine said nothing.")
    return Spoken(first, time.perf_counter() - start, samples / RATE)


def memory() -> tuple[float, float]:
    """MB of this process that are resident, and those of them that no file holds."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {name: size for name, _, size in (line.partition(":") for line in lines)}
    resident, anonymous = (int(sizes[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))
    return resident, anonymous


def timbre(model: str, threads: int, weights: str) -> Loaded:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as app.py does, before torch is imported
    gc.disable()  # this and the next as in an engine's own process
    importlib.import_module("engine.worker.early_imports")
    from engine import EarlyStart, Preset, SpeechRequest, open_engine

    kept = Path(tempfile.gettempdir(), "timbre-peers", "kept")
    engine = open_engine([model], "cpu", weights=weights, cache=kept)
    gc.enable()
    gc.collect()
    gc.freeze()
    voice = Preset(next(iter(engine.capabilities().values())).speakers[0])

    def speak(early_start: EarlyStart, seed: int, frames: int) -> Iterable[Sized]:
        request = SpeechRequest(
            TEXT, voice, language="English", seed=seed, max_frames=frames, ignore_end=True,
            early_start=early_start,
        )  # fmt: skip
        for chunk in engine.submit(request):
            yield chunk.pcm

    early: tuple[EarlyStart, ...] = ("pauses", "pieces")
    return "checkout", partial(speak, "off"), {each: partial(speak, each) for each in early}


def vox(model: str, threads: int, weights: str) -> Loaded:
    """`model` is a file that `python -m vox build` made."""
    engine = importlib.import_module("vox").Engine(model, device="cpu", threads=threads)
    voice = engine.speaker_voice(engine.speakers[0])

    def speak(seed: int, frames: int) -> Iterable[Sized]:
        pieces: Iterable[Sized] = engine.stream(TEXT, voice, seed=seed, max_frames=frames)
        return pieces

    return version("vox-tts"), speak, {}


def qwen_native(model: str, threads: int, weights: str) -> Loaded:
    """`model` is a folder with talker.gguf and codec.gguf."""
    folder = Path(model)
    package: Any = importlib.import_module("qwentts_cpp_cpu")
    engine = package.QwenTTS(folder / "talker.gguf", folder / "codec.gguf", cpu_threads=threads)
    name = engine.speaker_names()[0]

    def speak(seed: int, frames: int) -> Iterable[Sized]:
        request = {"text": TEXT, "speaker": name, "seed": seed, "max_new_tokens": frames}
        for piece, _ in engine.stream(**request):
            yield piece

    return version("realtimetts-qwen-native-cpu"), speak, {}


ENGINES = {"timbre": timbre, "vox": vox, "qwen-native": qwen_native}


def measured(load: Callable[[], Loaded], requests: int, frames: int) -> Report:
    """Load, speak once unmeasured, then measure."""
    start = time.perf_counter()
    name, speak, early = load()
    loaded = time.perf_counter() - start
    listen(speak, 0, min(frames, 12))
    seeds = range(1, requests + 1)
    every = [listen(speak, seed, frames) for seed in seeds]
    soon = {
        way: median(listen(other, seed, frames).first for seed in seeds)
        for way, other in early.items()
    }
    return Report(
        name,
        loaded,
        median(each.first for each in every),
        median(each.whole / each.audio for each in every),
        *memory(),
        soon,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--weights", default="auto")
    parser.add_argument("--requests", type=int, default=3)
    parser.add_argument("--frames", type=int, default=40)
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    load = partial(ENGINES[given.engine], given.model, given.threads, given.weights)
    print(json.dumps(asdict(measured(load, given.requests, given.frames))), flush=True)
    os._exit(0)  # some of these packages take long to let go of their threads


if __name__ == "__main__":
    main()
