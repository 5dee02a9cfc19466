"""A running server with its page, to which files are sent as a browser sends them."""

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

ANSWER = 300.0  # seconds that a busy machine may take to refuse a file


class ImportTarget:
    """Its page's import, its health, the memory of its processes."""

    def __init__(self, url: str, process: int) -> None:
        self.url, self.process = url, process
        config = httpx.get(f"{url}/config", timeout=ANSWER).json()
        buttons = {
            part["id"]
            for part in config["components"]
            if part["type"] == "uploadbutton" and ".epub" in (part["props"]["file_types"] or ())
        }
        self._event = next(
            event["id"]
            for event in config["dependencies"]
            if any(where in buttons and what == "upload" for where, what in event["targets"])
        )

    def send(self, name: str, data: bytes) -> str:
        """Import a file; the server's last word: what the page shows, or its warning."""
        with httpx.Client(base_url=self.url, timeout=ANSWER) as http:
            stored = http.post("/gradio_api/upload", files={"files": (name, data)})
            (path,) = stored.raise_for_status().json()
            file = {"path": path, "orig_name": name, "meta": {"_type": "gradio.FileData"}}
            session = secrets.token_hex(8)
            body = {"data": [file, ""], "fn_index": self._event, "session_hash": session}
            joined = http.post("/gradio_api/queue/join", json={**body, "event_data": None})
            joined.raise_for_status()
            words: list[str] = []
            with http.stream(
                "GET", "/gradio_api/queue/data", params={"session_hash": session}
            ) as told:
                for line in told.iter_lines():
                    word: dict[str, Any] = json.loads(line.removeprefix("data:") or "{}")
                    if word.get("msg") == "log":
                        words.append(str(word["log"]))
                    if word.get("msg") == "process_completed":
                        assert word["success"], word
                        return " ".join(words) or "imported"
        raise AssertionError("no answer")

    def children(self) -> list[int]:
        tasks = Path(f"/proc/{self.process}/task")
        found = [int(own) for each in tasks.iterdir() for own in _words(each / "children")]
        return [*found]

    def megabytes(self) -> int:
        """Of the server and its children, what each has alone (and its part of what is shared)."""
        return sum(_pss(each) for each in (self.process, *self.children())) >> 10


class Watch:
    """How long /health took, and the most memory, while something happens."""

    def __init__(self, target: ImportTarget) -> None:
        self._target, self._over = target, threading.Event()
        self.waits: list[float] = []
        self.megabytes = 0

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        with httpx.Client(base_url=self._target.url, timeout=ANSWER) as http:
            while not self._over.wait(0.02):
                began = time.monotonic()
                http.get("/health").raise_for_status()
                self.waits.append(time.monotonic() - began)
                self.megabytes = max(self.megabytes, self._target.megabytes())


@contextmanager
def import_target(folder: Path) -> Iterator[ImportTarget]:
    command = [sys.executable, "-m", "tests.support.page_server", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            address = server.stdout.readline().decode().strip()
            yield ImportTarget(f"http://{address}", server.pid)
        finally:
            server.stdin.close()


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _pss(process: int) -> int:
    """Kilobytes; 0 where it has ended."""
    for line in _lines(Path(f"/proc/{process}/smaps_rollup")):
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
