"""The server under attack as one hostile client sees it, and what the client got back.

Requests are written to the connection byte by byte, since no client library sends what is wrong.
Each client has an address of its own (127.0.0.2 …, on Linux). Knows no attacks.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

PATIENCE: Final = 45.0  # seconds: an answer may wait for its turn (TIMBRE_ENGINE_MAX_WAIT)
PLAIN: Final = (503, 507)  # statuses above 500 that are clear refusals


@dataclass
class Tally:
    """What one attack got back: statuses, and answers that no attack may get."""

    name: str
    rounds: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def note(self, status: int | str) -> None:
        self.answers[str(status)] += 1
        if isinstance(status, int) and status >= 500 and status not in PLAIN:
            self.fault(f"answered {status}")

    def fault(self, what: str) -> None:
        self.answers["fault"] += 1
        if len(self.faults) < 5:
            self.faults.append(f"{self.name}, round {self.rounds}: {what}"[:300])


@dataclass(frozen=True)
class Target:
    """A server, the client's address, and what the client knows: a key, a login, voices' width."""

    url: str
    address: str = "127.0.0.1"
    key: str = ""
    width: int = 16  # of a speaker embedding
    cookie: str = ""  # of the page, if it is served
    imports: int | None = None  # Gradio's number of the event that imports a voice

    def from_address(self, address: str) -> Target:
        return replace(self, address=address)

    def http(self) -> httpx.AsyncClient:
        """A client for requests that are well formed."""
        return httpx.AsyncClient(
            base_url=self.url,
            timeout=PATIENCE,
            headers=self.credentials,
            transport=httpx.AsyncHTTPTransport(local_address=self.address),
        )

    @property
    def credentials(self) -> dict[str, str]:
        key = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return key | ({"Cookie": self.cookie} if self.cookie else {})

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        at = urlsplit(self.url)
        return await asyncio.open_connection(at.hostname, at.port, local_addr=(self.address, 0))

    def head(self, method: str, path: str, headers: dict[str, object] | None = None) -> bytes:
        fields = {"Host": urlsplit(self.url).netloc, **self.credentials, **(headers or {})}
        lines = [
            f"{method} {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in fields.items()),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def post(self, path: str, body: bytes, kind: str = "application/json") -> bytes:
        return self.head("POST", path, {"Content-Type": kind, "Content-Length": len(body)}) + body

    async def ask(self, sent: bytes) -> int | str:
        """The status of the answer, `closed` or `timeout`."""
        reader, writer = await self.connect()
        try:
            with contextlib.suppress(ConnectionError):  # refused before all of it was sent
                writer.write(sent)
                await writer.drain()
            line = await asyncio.wait_for(reader.readline(), PATIENCE)
            return int(line.split()[1]) if line else "closed"
        except (TimeoutError, asyncio.TimeoutError):
            return "timeout"
        except (ConnectionError, IndexError, ValueError):
            return "closed"
        finally:
            writer.transport.abort()


def look_at(url: str, key: str = "") -> Target:
    """What a client with this key can learn of a server."""
    target = Target(url, key=key)
    with httpx.Client(base_url=url, headers=target.credentials, timeout=PATIENCE) as http:
        width = http.get("/v1/models").raise_for_status().json()["data"][0]["embedding_dim"]
        if http.get("/config").status_code == 404:
            return replace(target, width=width)
        if key:
            http.post("/login", data={"username": "attacker", "password": key}).raise_for_status()
        cookie = "; ".join(f"{name}={value}" for name, value in http.cookies.items())
        imports = _import_event(http.get("/config").raise_for_status().json())
    return replace(target, width=width, cookie=cookie, imports=imports)


def _import_event(config: dict[str, Any]) -> int | None:
    """The event of the upload button that takes voice files."""
    buttons = {
        part["id"]
        for part in config["components"]
        if part["type"] == "uploadbutton" and part["props"].get("file_types") == [".safetensors"]
    }
    for event in config["dependencies"]:
        if any(where in buttons and what == "upload" for where, what in event["targets"]):
            return int(event["id"])
    return None
