"""A file that is parsed in a process of its own: its bounds, its queue, its end."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import InvalidText, RequestError
from studio.imports import import_process
from studio.imports.import_process import Imports, close_imports
from studio.scripts.text.typed import script_of_text
from tests.studio.imports.books import book_makers as makers
from tests.support.serving import wait_until

STUCK = "import time; time.sleep(600)"


@pytest.fixture
def imports() -> Iterator[Imports]:
    pool = Imports(lambda: "10.0.0.1")
    yield pool
    pool.close()


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Processes that parse for ever; the file that they are given."""
    worker = tmp_path / "worker.py"
    worker.write_text(STUCK)
    monkeypatch.setattr(import_process, "_WORKER", worker)
    path = tmp_path / "a.txt"
    path.write_text("Hello.")
    return path


def worker_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> Path:
    path = tmp_path / "worker.py"
    path.write_text(f"import os, sys, signal\nsys.stdin.buffer.read()\n{code}")
    monkeypatch.setattr(import_process, "_WORKER", path)
    book = tmp_path / "a.txt"
    book.write_text("Hello.")
    return book


def test_a_file_of_each_kind_is_read(imports: Imports, tmp_path: Path) -> None:
    files = {
        "a.epub": makers.epub({"a.xhtml": "<h1>One</h1><p>Hello there.</p>"}),
        "b.pdf": makers.pdf([["Hello there."]]),
        "Ünï.md": b"# One\n\nHello there.",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert imports.script(tmp_path / name).script.lines[-1].text == "Hello there."


def test_long_typed_text_is_the_same_script(imports: Imports) -> None:
    text = "Anna: Where have you been?\nBen: Nowhere \ud83d that I know.\n\n" * 500
    assert len(text) > import_process.SHORT
    assert imports.typed(text) == script_of_text(text)


def test_a_refusal_comes_back_with_its_values(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Hello.\n" * 100_000)
    with pytest.raises(InvalidText) as raised:
        imports.script(tmp_path / "a.txt")
    assert raised.value.message.values == {"count": 100_001, "most": 50_000}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("os.write(1, b'{\"done\": true}\\n{}')", "damaged"),
        ("os.write(1, b'[1]\\n')", "damaged"),
        ('os.write(1, b\'{"refused": {"key": "{a.real}", "values": {"a": 1}}}\\n\')', "damaged"),
        ('os.write(1, b\'{"refused": {"key": "{b}", "values": {"a": 1}}}\\n\')', "damaged"),
        ('os.write(1, b\'{"refused": {"key": "{a:c}", "values": {"a": -1}}}\\n\')', "damaged"),
        ("os.write(1, b'{\"refused\": 1}\\n')", "damaged"),
        ("os.write(1, b'x' * 10_000)", "damaged"),
        ('os.write(1, b\'{"failed": "memory"}\\n\')', "memory"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "damaged"),
        ("os.kill(os.getpid(), signal.SIGXCPU)", "too long"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "busy"),
        ("os.kill(os.getpid(), signal.SIGALRM)", "busy"),
    ],
)
def test_what_comes_back_is_checked(
    imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    book = worker_of(tmp_path, monkeypatch, code)
    with pytest.raises(RequestError, match=message):
        imports.script(book)


@pytest.mark.skipif(sys.platform == "win32", reason="the script is a shell's")
def test_it_has_the_libraries_of_the_server_wherever_those_lie(
    imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python that has no packages of its own."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    (tmp_path / "a.txt").write_text("Hello there.")
    assert imports.script(tmp_path / "a.txt").script.lines[0].text == "Hello there."


@pytest.mark.parametrize(
    ("fault", "lines"),
    [("KeyError at reader.py:12", 1), ("KeyError at reader.py:12\\nERROR", 0), ("words", 0)],
)
def test_a_readers_own_fault_stands_in_the_log(
    imports: Imports,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: str,
    lines: int,
) -> None:
    code = f"""os.write(1, b'{{"failed": "damaged", "fault": "{fault}"}}\\n')"""
    with pytest.raises(InvalidText, match="damaged"):
        imports.script(worker_of(tmp_path, monkeypatch, code))
    assert len(caplog.messages) == lines
    assert all(fault in each for each in caplog.messages)


def test_a_reader_without_its_libraries_says_so(
    imports: Imports,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = tmp_path / "here" / "there" / "worker.py"
    worker.parent.mkdir(parents=True)
    worker.write_text(Path(import_process.__file__).with_name("worker.py").read_text())
    monkeypatch.setattr(import_process, "_WORKER", worker)
    (tmp_path / "studio").mkdir()  # without any module
    (tmp_path / "studio" / "__init__.py").touch()
    (tmp_path / "a.txt").write_text("Hello there.")
    with pytest.raises(InvalidText, match="damaged"):
        imports.script(tmp_path / "a.txt")
    assert "ModuleNotFoundError at worker.py" in caplog.text


def test_too_much_that_comes_back_is_not_kept(
    imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_process, "MOST_RESULT", 1_000)
    endless = "os.write(1, b'{\"done\": true}\\n')\nwhile True: os.write(1, b'x' * 4096)"
    with pytest.raises(InvalidText, match="damaged"):
        imports.script(worker_of(tmp_path, monkeypatch, endless))


def test_who_takes_too_long_is_ended(
    imports: Imports, stuck: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_process, "SECONDS", 0.2)
    with pytest.raises(RequestError, match="too busy"):  # it had no second of CPU time
        imports.script(stuck)
    monkeypatch.setattr(import_process, "_CPU_TIME", 0)  # a system that does not bound that
    with pytest.raises(InvalidText, match="too long"):
        imports.script(stuck)


def in_threads(*imports: Imports, path: Path) -> tuple[list[threading.Thread], list[str]]:
    reports: list[str] = []

    def read(pool: Imports) -> None:
        try:
            pool.script(path)
        except RequestError as error:
            reports.append(str(error))

    threads = [threading.Thread(target=read, args=(each,)) for each in imports]
    for each in threads:
        each.start()
    return threads, reports


def test_an_address_has_one_import_and_closing_ends_it(imports: Imports, stuck: Path) -> None:
    threads, errors = in_threads(imports, path=stuck)
    wait_until(lambda: imports._running)
    (process,) = imports._running
    with pytest.raises(RequestError, match="your address"):
        imports.script(stuck)
    close_imports()
    threads[0].join(30)
    assert errors == [import_process.CLOSED]
    assert process.returncode is not None
    with pytest.raises(RequestError, match="closing"):
        imports.script(stuck)


def test_few_run_few_wait_and_others_are_refused(stuck: Path) -> None:
    addresses = iter(range(100))
    crowd = Imports(lambda: f"10.0.0.{next(addresses)}")
    most = import_process.AT_ONCE + import_process.WAITING
    threads, errors = in_threads(*[crowd] * most, path=stuck)
    wait_until(lambda: len(crowd._addresses) == most)
    wait_until(lambda: len(crowd._running) == import_process.AT_ONCE)
    with pytest.raises(RequestError, match="Many files"):
        crowd.script(stuck)
    crowd.close()
    for each in threads:
        each.join(30)
    assert errors == [import_process.CLOSED] * most
    assert not crowd._addresses


def test_on_windows_a_launcher_lies_between_it_and_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A virtual environment's python.exe starts Python: it is the parent, and no stranger."""
    worker = runpy.run_path(str(Path(import_process.__file__).with_name("worker.py")))
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr("sys.platform", "win32")
    worker["_end_with"](os.getppid() + 1)
    assert not ended


def test_memory_and_time_are_bounded_by_the_kernel(tmp_path: Path) -> None:
    worker = Path(import_process.__file__).with_name("worker.py")
    code = f"""
import runpy, sys
own = runpy.run_path({str(worker)!r})
own["_bound"](dict(parent={os.getpid()}, megabytes=64, cpu_seconds=1, seconds=100, file_bytes=99))
try:
    bytearray(200 << 20)
except MemoryError:
    print("memory", flush=True)
try:
    open({str(tmp_path / "x")!r}, "wb", 0).write(bytes(1000))
    open({str(tmp_path / "x")!r}, "ab", 0).write(bytes(1000))
except OSError:
    print("file", flush=True)
while True: pass
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["memory", "file"]
    assert done.returncode == -signal.SIGXCPU


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an alarm ends it")
def test_it_ends_with_the_server_however_that_ends(tmp_path: Path) -> None:
    worker = Path(import_process.__file__).with_name("worker.py")
    limits = dict(megabytes=500, cpu_seconds=90, seconds=90, file_bytes=99)
    code = f"""
import json, os, subprocess, sys, time
limits = dict(parent=os.getpid(), **{limits!r})
child = subprocess.Popen([sys.executable, "-I", {str(worker)!r}], stdin=subprocess.PIPE)
child.stdin.write(json.dumps(limits).encode() + b"\\n")
child.stdin.flush()
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        child = int(server.stdout.readline())
        wait_until(lambda: _is_nice(child))
        server.kill()
    wait_until(lambda: not Path(f"/proc/{child}").exists() or _state(child) == "Z")


def _is_nice(process: int) -> bool:
    return os.getpriority(os.PRIO_PROCESS, process) == 10


def _state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
