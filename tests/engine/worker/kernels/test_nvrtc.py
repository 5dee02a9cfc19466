"""Machine code is compiled once for all that it is made of. Needs neither NVRTC nor a GPU."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.worker.kernels.cuda import nvrtc
from engine.worker.kernels.cuda.nvrtc import Binary, KernelError, Source, compile_once

ROOT = Path(__file__).parents[4]


class Memory:
    def __init__(self) -> None:
        self.found: dict[str, bytes] = {}

    def binary(self, key: str) -> bytes | None:
        return self.found.get(key)

    def keep_binary(self, key: str, code: bytes) -> None:
        self.found[key] = code


class Compiler:
    """Answers as NVRTC does for its version."""

    version = 13, 0

    def nvrtcVersion(self, major: Any, minor: Any) -> None:  # noqa: N802
        major._obj.value, minor._obj.value = self.version


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What was asked of the compiler."""
    calls: list[tuple[object, ...]] = []

    def compile_for(*arguments: Any) -> Binary:
        calls.append(arguments)
        return Binary(f"code {len(calls)}".encode(), "")

    monkeypatch.setattr(nvrtc, "compile_for", compile_for)
    return calls


def once(
    architecture: str, text: str, options: list[str], compiler: Compiler, kept: Memory | None
) -> bytes:
    source = Source(text, tuple(options))
    return compile_once(architecture, source, compiler, kept)  # type: ignore[arg-type]


def test_the_same_source_is_compiled_once(compiled: list[tuple[object, ...]]) -> None:
    kept = Memory()
    codes = {once("sm_90", "text", ["-DA=1"], Compiler(), kept) for _ in range(3)}
    assert codes == {b"code 1"}
    assert len(compiled) == 1


def test_whatever_differs_is_compiled_anew(compiled: list[tuple[object, ...]]) -> None:
    kept, newer = Memory(), Compiler()
    newer.version = 13, 1
    once("sm_90", "text", ["-DA=1"], Compiler(), kept)
    once("sm_80", "text", ["-DA=1"], Compiler(), kept)
    once("sm_90", "other", ["-DA=1"], Compiler(), kept)
    once("sm_90", "text", ["-DA=2"], Compiler(), kept)
    once("sm_90", "text", ["-DA=1"], newer, kept)
    assert len(compiled) == 5


def test_nothing_is_kept_where_nothing_shall_be(compiled: list[tuple[object, ...]]) -> None:
    for _ in range(2):
        once("sm_90", "text", [], Compiler(), None)
    assert len(compiled) == 2


class Device:
    """A GPU of sm_90 that takes whatever is loaded, and a compiler whose work can be held up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.compiled, self.loaded = threading.Event(), [], []  # type: ignore[var-annotated]
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
        monkeypatch.setattr(nvrtc, "load_compiler", Compiler)
        monkeypatch.setattr(nvrtc, "_driver", lambda: self)
        monkeypatch.setattr(nvrtc, "compile_for", self.compile_for)

    def compile_for(self, architecture: str, source: Source, compiler: Compiler) -> Binary:
        assert self.go.wait(60)
        self.compiled.append(source.text)
        if source.text == "wrong":
            raise KernelError("no such name")
        return Binary(source.text.encode(), "")

    def cuModuleLoadData(self, module: object, binary: bytes) -> int:  # noqa: N802
        self.loaded.append(binary)
        return 0


def test_modules_take_what_was_begun_before_they_were_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device, sources = Device(monkeypatch), [Source("one", ()), Source("two", ("-DA=1",))]
    nvrtc.compile_ahead(sources)  # returns while none is compiled
    assert device.compiled == []
    nvrtc.compile_ahead(sources[:1])  # is under way
    device.go.set()
    for source in (*sources, Source("three", ())):
        nvrtc.Module(source)
    assert sorted(device.compiled) == ["one", "three", "two"]
    assert device.loaded == [b"one", b"two", b"three"]
    nvrtc.Module(sources[0])  # once more: what was begun is gone
    assert device.compiled.count("one") == 2


def test_what_could_not_be_compiled_fails_where_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Device(monkeypatch)
    device.go.set()
    nvrtc.compile_ahead([Source("wrong", ())])
    with pytest.raises(KernelError, match="no such name"):
        nvrtc.Module(Source("wrong", ()))


def test_what_failed_and_was_never_wanted_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A load that failed for lack of memory may have failed here, too: the next one may not."""
    device, source = Device(monkeypatch), Source("one", ())
    device.go.set()
    working = device.compile_for

    def failing(*_: object) -> Binary:
        raise KernelError("out of memory")

    monkeypatch.setattr(nvrtc, "compile_for", failing)
    nvrtc.compile_ahead([source])
    wait(nvrtc._begun.values())
    monkeypatch.setattr(nvrtc, "compile_for", working)
    nvrtc.compile_ahead([source])
    nvrtc.Module(source)
    assert device.loaded == [b"one"]


HELD_UP = """
import threading
from engine.worker.kernels.cuda import nvrtc

begun = threading.Event()
nvrtc._architecture, nvrtc.load_compiler = lambda: "sm_90", lambda: None
nvrtc.compile_once = lambda *_: begun.set() or threading.Event().wait()
nvrtc.compile_ahead([nvrtc.Source("one", ())])
begun.wait()
"""


def test_a_program_ends_while_a_source_is_compiled() -> None:
    ran = subprocess.run([sys.executable, "-c", HELD_UP], cwd=ROOT, timeout=60, check=False)
    assert ran.returncode == 0
