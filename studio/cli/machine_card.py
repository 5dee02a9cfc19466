"""`bench`: what this machine makes of a model, as a table, and as a card to send in.

A card can be compared with others because everybody speaks the same sentences with the same seeds.
Every figure is measured here and now: what was not measured is left out, and said. Knows no kind
of device.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from engine import (
    SAMPLE_RATE,
    InvalidSetting,
    Pcm,
    SpeechEngine,
    SpeechRequest,
    Voice,
    write_atomic,
)
from studio import VERSION
from studio.cli.app_context import AppContext
from studio.cli.console import Reporter
from studio.cli.own_process import process_ahead
from studio.cli.reference import compared, reference_voice
from studio.voices.transcription import Transcribe
from studio.voices.voice_catalog import Choices
from training.voice.words import word_errors, words_of

SENTENCES = (
    "The train leaves at a quarter to eight, and nobody is on the platform yet.",
    "She put the letter back into the drawer and looked out of the window.",
    "Most of the bridge was built by hand, stone by stone, before the winter came.",
    "You can leave the keys with my neighbour, who is at home in the afternoon.",
    "After the storm the garden was full of leaves, and the gate stood open.",
)
WARM = "Good morning, and welcome."
GAP = 0.005  # seconds of silence that are heard
PROC = Path("/proc")
PACKAGES = ("torch", "numba", "numpy")
EXACT = {"device": "cpu", "dtype": "float32", "weights": "full"}
ADVICE = (
    "To send it in, paste what follows into an issue (docs/results-from-users.md). It holds "
    "nothing about you, no path and no name of this machine."
)


@dataclass(frozen=True)
class Spoken:
    """One sentence as it arrived, in seconds since its request."""

    first: float
    total: float
    gap: float  # the longest silence for who listens from the first piece on
    pcm: Pcm
    codes: bytes

    @property
    def seconds(self) -> float:
        return len(self.pcm) / SAMPLE_RATE


@dataclass(frozen=True)
class Bench:
    """An engine, a voice, and how they are timed."""

    engine: SpeechEngine
    voice: Voice
    tell: Reporter
    clock: Callable[[], float] = time.perf_counter

    def speak(self, number: int, live: bool = True, text: str = "") -> Spoken:
        """A sentence, counted around; the same number is the same request."""
        words = text or SENTENCES[number % len(SENTENCES)]
        request = SpeechRequest(words, self.voice, seed=number, live=live)
        begun, first, heard, gap = self.clock(), 0.0, 0.0, 0.0
        pieces, codes = list[Pcm](), list[bytes]()
        with self.engine.submit(request) as stream:
            for chunk in stream:
                now = self.clock() - begun
                first = first or now
                gap = max(gap, now - first - heard)
                heard += chunk.seconds
                pieces.append(chunk.pcm)
                codes.append(np.ascontiguousarray(chunk.codes).tobytes())
        pcm = np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
        return Spoken(first, self.clock() - begun, gap, pcm, b"".join(codes))

    def alone(self) -> list[Spoken]:
        """Each sentence by itself, after one that is not counted."""
        self.speak(0, text=WARM)
        spoken = []
        for number in range(len(SENTENCES)):
            self.tell.progress(f"sentence {number + 1} of {len(SENTENCES)}")
            spoken.append(self.speak(number))
        return spoken

    def streams(self, most: int) -> tuple[int, list[Spoken]]:
        """How many at a time were heard without a gap, doubled until some are not; the last that
        were."""
        count, kept = 0, list[Spoken]()
        tried = 1
        while tried <= most:
            self.tell.progress(f"{tried} at a time")
            with ThreadPoolExecutor(tried) as threads:
                spoken = list(threads.map(self.speak, range(tried)))
            if any(each.gap > GAP for each in spoken):
                break
            count, kept = tried, spoken
            tried *= 2
        return count, kept


def measure(bench: Bench, slots: int, transcribe: Transcribe | None = None) -> dict[str, Any]:
    """The figures of a card."""
    alone = bench.alone()
    count, together = bench.streams(slots)
    offline = bench.speak(0, live=False)
    found: dict[str, Any] = {
        "first_audio_ms": round(1e3 * median(each.first for each in alone), 1),
        "rtf": round(sum(each.total for each in alone) / sum(each.seconds for each in alone), 3),
        "audio_seconds": round(sum(each.seconds for each in alone), 2),
        "streams_without_gap": count,
        "streams_tried": min(slots, max(1, 2 * count)),
        "streamed_equals_whole": np.array_equal(offline.pcm, alone[0].pcm),
        "alone_equals_together": _same(alone, together) if count > 1 else None,
    }
    if transcribe:
        wrong = words_spoken = 0
        for text, each in zip(SENTENCES, alone, strict=True):
            words = words_of(text)
            heard = transcribe(each.pcm.astype(np.float32) / np.float32(32768))
            wrong, words_spoken = (
                wrong + word_errors(words, words_of(heard)),
                words_spoken + len(words),
            )
        found["word_errors"] = f"{wrong} of {words_spoken}"
    return found


def _same(alone: Sequence[Spoken], together: Sequence[Spoken]) -> bool:
    """Whether sentences had the same codes in company."""
    pairs = zip(alone, together, strict=False)
    return all(one.codes == other.codes for one, other in pairs)


def machine() -> dict[str, Any]:
    """What the figures depend on, without anything that identifies the machine's owner."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": cores,
        "memory_gb": _memory(),
        "gpu": _gpu(),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "timbre": VERSION,
        "date": date.today().isoformat(),
    }


def _processor() -> str:
    with suppress(OSError):
        for line in (PROC / "cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    """Gigabytes of this machine."""
    with suppress(OSError, ValueError, AttributeError):
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    return None


def _gpu() -> str:
    """NVIDIA's name of the first GPU; empty where its tool is not there."""
    line = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=10)
        return done.stdout.partition("\n")[0].strip()
    return ""


def _version(package: str) -> str:
    with suppress(PackageNotFoundError):
        return version(package)
    return ""


def resident() -> dict[str, int]:
    """Megabytes of this process and of those that it started; empty where the system has no
    /proc."""
    whole: dict[str, int] = {}
    for process in (os.getpid(), *_children(os.getpid())):
        with suppress(OSError, ValueError):
            for line in (PROC / str(process) / "status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in ("VmRSS", "RssAnon"):
                    whole[name] = whole.get(name, 0) + int(value.split()[0])
    return {
        field: round(whole[name] / 1000)
        for name, field in (("VmRSS", "resident_mb"), ("RssAnon", "anonymous_mb"))
        if name in whole
    }


def _children(parent: int) -> Iterator[int]:
    with suppress(OSError, ValueError):
        for task in (PROC / str(parent) / "task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)


def not_measured(transcribe: Transcribe | None, reference: Path | None = None) -> str:
    """What the card does not measure."""
    left = []
    if reference is None:
        left.append("whether the codes are the reference package's (--reference PYTHON)")
    if transcribe is None:
        left.append("words, for which TIMBRE_TRANSCRIBER names a whisper model")
    return f"Not measured: {'; '.join(left)}." if left else "All of it was measured here."


def show(card: Mapping[str, Any]) -> Iterator[str]:
    """A table of two columns, in Markdown."""
    yield "| | |"
    yield "|---|---|"
    for name, value in card.items():
        if value not in ("", None):
            yield f"| {name.replace('_', ' ')} | {_cell(value)} |"


def _cell(value: object) -> str:
    """Text for a table's cell, on one line, whatever a processor is called."""
    text = str(value) if not isinstance(value, bool) else "yes" if value else "no"
    return re.sub(r"[|\s]+", " ", text).strip()


def as_json(card: Mapping[str, Any]) -> str:
    return json.dumps(card, ensure_ascii=False)


def check_place(path: Path) -> None:
    """Before minutes are spent. Raises InvalidSetting."""
    if path.is_dir():
        raise InvalidSetting("{path} is a folder. Name a file in it.", path=path)
    if not path.absolute().parent.is_dir():
        raise InvalidSetting("There is no folder {parent}. Make it first.", parent=path.parent)
    if not os.access(path.absolute().parent, os.W_OK):
        raise InvalidSetting("{target} cannot be written. Choose another place.", target=path)


def save(path: Path, card: Mapping[str, Any]) -> None:
    write_atomic(path, f"{as_json(card)}\n".encode())


def run(
    open_engine: Callable[[], SpeechEngine],
    model: str,
    voice: Voice,
    transcribe: Transcribe | None,
    tell: Reporter,
) -> dict[str, Any]:
    """A card of this machine."""
    begun = time.perf_counter()
    with open_engine() as engine:
        opened = round(time.perf_counter() - begun, 2)
        bench = Bench(engine, voice, tell)
        found = measure(bench, engine.stats().slots, transcribe)
        memory, stats = resident(), engine.stats()
    named = Path(model).name if Path(model).is_dir() else model
    return {
        "model": named,
        **machine(),
        "seconds_to_open": opened,
        **found,
        **memory,
        "device_mb": round(stats.memory / 1e6),
    }


def bench_machine(
    context: AppContext, voice: str, reference: Path | None, out: Path | None, whole: bool
) -> Iterator[str]:
    """Measure, keep the card in the file `out`, and return lines for the user.

    `whole`: as a card to send in. `reference`: a Python that has the reference package.
    """
    if out:
        check_place(out)
    with process_ahead(context.settings) as booted:
        heard = context.transcribe()
        choices = Choices(context.capabilities(), context.library())
        speaker = choices.read(voice, "") if voice else choices.default("")
        if reference:
            reference_voice(reference, speaker)
        card = run(
            partial(context.engine, booted), context.models()[0], speaker, heard, context.tell
        )
    if reference:
        exact = replace(context, settings=context.settings.model_copy(update=EXACT))
        card |= compared(reference, context.models()[0], speaker, exact.engine)
    if out:
        save(out, card)
    return main_lines(card, not_measured(heard, reference), whole)


def main_lines(card: Mapping[str, Any], left: str, whole: bool) -> Iterator[str]:
    """What is printed; `whole`: as a card to send in."""
    yield from show(card)
    yield ""
    yield left
    if whole:
        yield ""
        yield f"```json\n{as_json(card)}\n```"
