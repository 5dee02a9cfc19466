"""The running server with its page, for guests, to which files are sent as a browser sends them.

`Watch` looks on: how long /health takes, beside how long a process takes that nothing holds up but
the machine, how much memory all processes have, and what is written into the log.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from engine import SAMPLE_RATE

ANSWER = 300.0  # seconds that a busy machine may take to refuse a file
LOOK = 0.02  # seconds between two looks


class ImportTarget:
    """The import of a server's page, its health, the memory of its processes, its log."""

    def __init__(self, url: str, process: int, log: Path) -> None:
        self.url, self.process, self._log = url, process, log
        config = httpx.get(f"{url}/config", timeout=ANSWER).json()
        buttons = {
            part["id"]
            for part in config["components"]
            if part["type"] == "uploadbutton" and ".epub" in (part["props"]["file_types"] or ())
        }
        (event,) = (
            event for event in config["dependencies"] if buttons.intersection(event["inputs"])
        )
        first = {part["id"]: part["props"].get("value") for part in config["components"]}
        self._event, self._shown = event["id"], [first[each] for each in event["inputs"][1:]]

    def visitor(self, address: str = "127.0.0.1") -> httpx.Client:
        """A client of an address of its own."""
        transport = httpx.HTTPTransport(local_address=address)
        return httpx.Client(base_url=self.url, timeout=ANSWER, transport=transport)

    def send(self, name: str, data: bytes, address: str = "127.0.0.1") -> str:
        """Import a file; the server's last word: what the page shows, or its warning."""
        with self.visitor(address) as http:
            return self.answer(http, self.join(http, name, self.uploaded(http, name, data)))

    def uploaded(self, http: httpx.Client, name: str, data: bytes) -> str:
        stored = http.post("/gradio_api/upload", files={"files": (name, data)})
        (path,) = stored.raise_for_status().json()
        return str(path)

    def join(self, http: httpx.Client, name: str, path: str) -> str:
        """Ask for the import of what was uploaded; the session that is told of it."""
        file = {"path": path, "orig_name": name, "meta": {"_type": "gradio.FileData"}}
        session = secrets.token_hex(8)
        body = {"data": [file, *self._shown], "fn_index": self._event, "session_hash": session}
        joined = http.post("/gradio_api/queue/join", json={**body, "event_data": None})
        joined.raise_for_status()
        return session

    def answer(self, http: httpx.Client, session: str) -> str:
        words: list[str] = []
        requested = {"session_hash": session}
        with http.stream("GET", "/gradio_api/queue/data", params=requested) as response:
            for line in response.iter_lines():
                word: dict[str, Any] = json.loads(line.removeprefix("data:") or "{}")
                if word.get("msg") == "log":
                    words.append(str(word["log"]))
                if word.get("msg") == "process_completed":
                    assert word["success"], word
                    return " ".join(words) or "imported"
        raise AssertionError("no answer")

    @property
    def log_bytes(self) -> int:
        return self._log.stat().st_size

    def children(self) -> list[int]:
        tasks = Path(f"/proc/{self.process}/task")
        found = [int(one) for each in tasks.iterdir() for one in _words(each / "children")]
        return [*found]

    def is_reading(self) -> bool:
        """Whether a file is being parsed."""
        files = (Path(f"/proc/{each}/cmdline") for each in self.children())
        return any("imports/worker.py" in word for path in files for word in _words(path))

    def megabytes(self) -> int:
        """Of the server and its children, what each has alone (and its part of what is shared)."""
        return sum(_pss(each) for each in (self.process, *self.children())) >> 10


class Watch:
    """What a server did while something happened."""

    def __init__(self, target: ImportTarget) -> None:
        self._target, self._over = target, threading.Event()
        self._health: list[float] = []
        self._echo: list[float] = []
        self._before, self._most, self._log = target.megabytes(), 0, target.log_bytes
        self._looks = [threading.Thread(target=each) for each in (self._ask, self._call)]

    def __enter__(self) -> Watch:
        self._began = time.monotonic()
        for each in self._looks:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._looks:
            each.join()
        self._minutes = (time.monotonic() - self._began) / 60

    @property
    def slowest(self) -> float:
        """Seconds of the 99th of a hundred answers of /health."""
        waits = sorted(self._health)
        return waits[len(waits) * 99 // 100]

    @property
    def machine(self) -> float:
        """Seconds that this machine kept a process waiting that only repeats what it is told."""
        return max(self._echo)

    @property
    def megabytes(self) -> int:
        """Memory that all processes together took in addition."""
        return self._most - self._before

    @property
    def log_bytes(self) -> float:
        """Bytes written into the log per minute."""
        return (self._target.log_bytes - self._log) / max(1.0, self._minutes)

    def _ask(self) -> None:
        with self._target.visitor() as http:
            while not self._over.wait(LOOK):
                began = time.monotonic()
                http.get("/health").raise_for_status()
                self._health.append(time.monotonic() - began)
                self._most = max(self._most, self._target.megabytes())

    def _call(self) -> None:
        pipe = subprocess.PIPE
        with subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, bufsize=0) as echo:
            assert echo.stdin is not None
            assert echo.stdout is not None
            while not self._over.wait(LOOK):
                began = time.monotonic()
                echo.stdin.write(b"x")
                echo.stdout.read(1)
                self._echo.append(time.monotonic() - began)


class Listener:
    """Speech that is played from its first sound on, while something happens."""

    def __init__(self, target: ImportTarget, frames: int) -> None:
        self._target, self._frames = target, frames
        self._heard: list[tuple[float, float]] = []  # when it came, and seconds of sound

    def __enter__(self) -> Listener:
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    @property
    def seconds(self) -> float:
        return sum(sound for _, sound in self._heard)

    @property
    def gap(self) -> float:
        """The longest silence in the middle, in seconds."""
        silent, until = 0.0, self._heard[0][0]  # until when there is sound
        for came, sound in self._heard:
            silent = max(silent, came - until)
            until = max(until, came) + sound
        return silent

    def _listen(self) -> None:
        body = {"input": "word " * 150, "voice": "ryan", "response_format": "pcm", "stream": True}
        body |= {"ignore_eos": True, "max_new_tokens": self._frames}
        with (
            self._target.visitor() as http,
            http.stream("POST", "/v1/audio/speech", json=body) as speech,
        ):
            speech.raise_for_status()
            for piece in speech.iter_raw():
                self._heard.append((time.monotonic(), len(piece) / 2 / SAMPLE_RATE))


@contextmanager
def import_target(folder: Path) -> Iterator[ImportTarget]:
    command, pipe = [sys.executable, "-m", "tests.hostile.log_server", str(folder)], subprocess.PIPE
    path = folder / "log"
    with (
        path.open("wb") as log,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            yield ImportTarget(f"http://127.0.0.1:{port}", server.pid, path)
        finally:
            server.stdin.close()


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _pss(process: int) -> int:
    """A process's memory in kilobytes; 0 after its end."""
    for line in _lines(Path(f"/proc/{process}/smaps_rollup")):
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
