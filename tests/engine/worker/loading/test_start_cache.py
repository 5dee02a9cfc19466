"""Kept arrays are mapped as they were written, and whatever is not that is made again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.worker.loading.packed_file import ALIGN, HEAD, MAGIC, Form, form_of
from engine.worker.loading.start_cache import StartCache

KEY = "numbers"


@pytest.fixture
def cache(tmp_path: Path) -> StartCache:
    return StartCache(tmp_path / "cache")


@pytest.fixture
def arrays() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {
        "bytes": torch.randint(-127, 127, (5, 7), dtype=torch.int8),
        "halves": torch.randn(3, 3).bfloat16(),
        "none": torch.empty(0, 4),
        "whole": torch.randn(2, 8, 3),
    }


def forms(arrays: dict[str, Tensor]) -> dict[str, Form]:
    return {name: form_of(each) for name, each in arrays.items()}


def only_file(cache: StartCache) -> Path:
    (path,) = cache.folder.glob("*.packed")
    return path


def found(cache: StartCache, arrays: dict[str, Tensor]) -> dict[str, Tensor] | None:
    return cache.arrays("some", KEY, forms(arrays))


def test_arrays_come_back_as_they_were(cache: StartCache, arrays: dict[str, Tensor]) -> None:
    assert found(cache, arrays) is None
    cache.keep("some", KEY, arrays)
    for _ in range(2):
        kept = found(cache, arrays)
        assert kept is not None
        assert all(torch.equal(kept[name], each) for name, each in arrays.items())
        assert all(each.data_ptr() % ALIGN == 0 for each in kept.values() if each.numel())


def test_what_is_written_to_an_array_reaches_no_other(
    cache: StartCache, arrays: dict[str, Tensor]
) -> None:
    cache.keep("some", KEY, arrays)
    one, two = found(cache, arrays), found(cache, arrays)
    assert one is not None
    assert two is not None
    one["whole"].zero_()
    assert torch.equal(two["whole"], arrays["whole"])


def flip(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: b"",
    "cut": lambda data: data[:-1],
    "head alone": lambda data: data[:HEAD],
    "longer": lambda data: data + b"\0",
    "another program's": flip(0),
    "of other arrays": flip(len(MAGIC)),
    "another digest": flip(len(MAGIC) + 32),
    "one bit": flip(HEAD + 3),
    "pages never written": lambda data: data[:HEAD] + bytes(len(data) - HEAD),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_refused_and_made_anew(
    cache: StartCache, arrays: dict[str, Tensor], name: str
) -> None:
    cache.keep("some", KEY, arrays)
    path = only_file(cache)
    path.write_bytes(DAMAGE[name](path.read_bytes()))
    assert found(cache, arrays) is None
    cache.keep("some", KEY, arrays)
    assert found(cache, arrays) is not None


def test_other_arrays_are_not_taken_for_these(cache: StartCache, arrays: dict[str, Tensor]) -> None:
    cache.keep("some", KEY, arrays)
    turned = {**arrays, "bytes": arrays["bytes"].T.contiguous()}
    assert found(cache, turned) is None
    assert cache.arrays("some", "others", forms(arrays)) is None
    assert found(cache, dict(reversed(arrays.items()))) is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files")
def test_a_file_that_others_may_write_is_refused(
    cache: StartCache, arrays: dict[str, Tensor], tmp_path: Path
) -> None:
    cache.keep("some", KEY, arrays)
    path = only_file(cache)
    path.chmod(0o666)
    assert found(cache, arrays) is None
    path.chmod(0o600)
    assert found(cache, arrays) is not None
    moved = tmp_path / "elsewhere"
    path.rename(moved)
    path.symlink_to(moved)
    assert found(cache, arrays) is None
    path.unlink()
    os.mkfifo(path)  # would never end
    assert found(cache, arrays) is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files")
def test_what_is_kept_is_believed_whatever_the_umask(
    cache: StartCache, arrays: dict[str, Tensor]
) -> None:
    before = os.umask(0o002)  # that of many desktops, with a group for each user
    try:
        cache.keep("some", KEY, arrays)
        cache.prove(KEY, {"talk": 2})
    finally:
        os.umask(before)
    assert found(cache, arrays) is not None
    assert cache.proof(KEY) == {"talk": 2}


def test_what_was_left_unfinished_is_removed(cache: StartCache, arrays: dict[str, Tensor]) -> None:
    cache.keep("some", KEY, arrays)
    left, written = (cache.folder / f".some-{each}.0.part" for each in ("old", "new"))
    left.touch()
    written.touch()
    os.utime(left, (0, 0))
    cache.keep("some", KEY, arrays)
    assert not left.exists()
    assert written.exists()


def test_what_no_start_uses_any_more_is_removed(
    cache: StartCache, arrays: dict[str, Tensor]
) -> None:
    for key in ("gone", KEY):
        cache.keep("some", key, arrays)
    for path in cache.folder.iterdir():
        os.utime(path, (0, 0))  # their times are their identity, too
    for key in ("gone", KEY):
        assert cache.arrays("some", key, forms(arrays)) is not None
    for path in cache.folder.glob("checked-*"):
        os.utime(path, (0, 0))
    assert found(cache, arrays) is not None
    cache.keep("other", KEY, arrays)
    assert cache.arrays("some", "gone", forms(arrays)) is None
    assert found(cache, arrays) is not None


def test_a_folder_that_cannot_be_written_to_keeps_nothing(
    tmp_path: Path, arrays: dict[str, Tensor]
) -> None:
    (tmp_path / "file").touch()
    cache = StartCache(tmp_path / "file" / "cache")
    cache.keep("some", KEY, arrays)
    cache.prove(KEY, {"talk": 2})
    assert not cache.is_writable()
    assert found(cache, arrays) is None
    assert cache.proof(KEY) is None
    assert cache.digest(tmp_path / "file") == cache.digest(tmp_path / "file")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"talk": 0}', '{"talk": true}', '{"talk": "2"}', "{" * 9999]
)
def test_a_proof_that_is_none_counts_as_missing(cache: StartCache, text: str) -> None:
    cache.prove(KEY, {"talk": 2})
    assert cache.proof(KEY) == {"talk": 2}
    (path,) = cache.folder.glob("kernels-*.json")
    path.write_text(text)
    assert cache.proof(KEY) is None


def test_a_digest_is_that_of_the_content(cache: StartCache, tmp_path: Path) -> None:
    path, copy = tmp_path / "one", tmp_path / "two"
    path.write_bytes(b"weights")
    copy.write_bytes(b"weights")
    first = cache.digest(path)
    assert first == cache.digest(path) == cache.digest(copy)
    state = path.stat()
    path.write_bytes(b"WEIGHTS")  # of the same size, and then of the same time
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert cache.digest(path) != first


def test_machine_code_comes_back_as_it_was_kept(cache: StartCache) -> None:
    assert cache.binary("sm_90") is None
    cache.keep_binary("sm_90", b"code")
    assert cache.binary("sm_90") == b"code"
    assert cache.binary("sm_80") is None


@pytest.mark.parametrize("change", [flip(0), flip(-1), lambda code: code[:-1], lambda code: b""])
def test_damaged_machine_code_is_made_anew(
    cache: StartCache, change: Callable[[bytes], bytes]
) -> None:
    cache.keep_binary("sm_90", b"code")
    (file,) = cache.folder.iterdir()
    file.write_bytes(change(file.read_bytes()))
    assert cache.binary("sm_90") is None
    cache.keep_binary("sm_90", b"other")
    assert cache.binary("sm_90") == b"other"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files")
def test_machine_code_that_others_may_write_is_not_run(cache: StartCache) -> None:
    cache.keep_binary("sm_90", b"code")
    (file,) = cache.folder.iterdir()
    file.chmod(0o666)
    assert cache.binary("sm_90") is None
