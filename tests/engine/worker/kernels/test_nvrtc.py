"""Machine code is compiled once for all that it is made of. Needs neither NVRTC nor a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from engine.worker.kernels.cuda import nvrtc
from engine.worker.kernels.cuda.nvrtc import Binary, compile_once


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
    return compile_once(architecture, text, options, compiler, kept)  # type: ignore[arg-type]


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
