"""A model hub on loopback: the routes that `huggingface_hub.snapshot_download` asks for.

Serves one folder as the repository `timbre/tiny`. Faults are switched on by the test.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

REPOSITORY = "timbre/tiny"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REVISIONS = {"main", "v1", COMMIT}
PIECE = 64 * 1024


class Hub(ThreadingHTTPServer):
    """Answers until it is shut down; remembers every request as `METHOD path range`."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.seen: list[str] = []
        self.gated = False
        self.cuts = 0  # transfers of the weights that break off half way
        self.pause = 0.0  # seconds between pieces of a file

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = unquote(self.path.partition("?")[0])
        self.server.seen.append(f"{self.command} {path} {self.headers.get('Range', '')}".strip())
        api, file = f"/api/models/{REPOSITORY}", f"/{REPOSITORY}/resolve/"
        if not path.startswith((api, file)):
            return self._refuse(404, "RepoNotFound")
        if self.server.gated:
            return self._refuse(403, "GatedRepo")
        if path.startswith(file):
            revision, _, name = path.removeprefix(file).partition("/")
        else:
            kind, _, revision = path.removeprefix(api).strip("/").partition("/")
        if (revision or "main") not in REVISIONS:
            return self._refuse(404, "RevisionNotFound")
        if path.startswith(file):
            return self._file(self.server.folder / name, body)
        return self._json(self._tree() if kind == "tree" else self._info())

    def _info(self) -> object:
        names = [{"rfilename": entry["path"]} for entry in self._tree()]
        return {"id": REPOSITORY, "sha": COMMIT, "private": False, "siblings": names}

    def _tree(self) -> list[dict[str, object]]:
        folder = self.server.folder
        return [
            {
                "type": "file",
                "path": path.relative_to(folder).as_posix(),
                "size": path.stat().st_size,
                "oid": _digest(path),
            }
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        ]

    def _file(self, path: Path, body: bool) -> None:
        if not path.is_file():
            return self._refuse(404, "EntryNotFound")
        data, start = path.read_bytes(), 0
        span = self.headers.get("Range", "")
        if span.startswith("bytes="):
            start = int(span.removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("ETag", f'"{_digest(path)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        if body:
            self._send(data[start:], path.stat().st_size > 1_000_000)
        return None

    def _send(self, data: bytes, weights: bool) -> None:
        cut = weights and self.server.cuts > 0
        self.server.cuts -= cut
        for start in range(0, len(data) // 2 if cut else len(data), PIECE):
            self.wfile.write(data[start : start + PIECE])
            time.sleep(self.server.pause)
        if cut:
            self.close_connection = True

    def _json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _digest(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()


@contextmanager
def running_hub(folder: Path) -> Iterator[Hub]:
    hub = Hub(folder)
    thread = threading.Thread(target=hub.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()
