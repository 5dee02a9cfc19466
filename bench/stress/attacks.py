"""What is done to a server while somebody listens: bodies, half requests, crowds, closed doors.

Each attack is a coroutine that does its worst once and tells how the server answered. It comes from
an address of its own (127.0.0.2 …, on Linux). An answer of 500 is a fault. Knows only docs/api.md
and the routes that are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

SPEECH: Final = "/v1/audio/speech"
MIB: Final = 1 << 20
PATIENCE: Final = 30.0
TEXT: Final = "The night train was late again, and nobody on the platform knew why. " * 3
JUNK: Final = {
    "a batch of numbers": (f"{SPEECH}/batch", b'{"items":[' + b"1," * (2 * MIB) + b"1]}"),
    "a blend of numbers": (
        "/v1/audio/voices/blend",
        b'{"name":"x","voices":[' + b"1," * MIB + b"1]}",
    ),
    "unknown keys": (
        SPEECH,
        ("{" + ",".join(f'"k{n}":1' for n in range(200_000)) + "}").encode(),
    ),
    "deep lists": (SPEECH, b'{"input":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "an event of numbers": ("/gradio_api/queue/join", b'{"data":[' + b"1," * (2 * MIB) + b"1]}"),
    "a huge event": ("/gradio_api/queue/join", b" " * (9 * MIB)),
    "a closed route": ("/gradio_api/process_recording", b"x" * 36_000),
    "an editor's route": ("/gradio_api/vibe-edit", b'{"prompt":"' + b"x" * MIB + b'"}'),
    "a copied voice without consent": (
        SPEECH,
        b'{"input":"Hi.","ref_audio":"data:audio/wav;base64,AAAA","consent":"nein"}',
    ),
}


@dataclass(frozen=True)
class Place:
    """A server, and where an attack comes from."""

    url: str
    address: str
    width: int = 16  # of a speaker embedding

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        at = urlsplit(self.url)
        return await asyncio.open_connection(at.hostname, at.port, local_addr=(self.address, 0))

    def head(self, method: str, path: str, **headers: object) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(self.url).netloc}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def ask(self, sent: bytes) -> int:
        """The status of the answer; 0 where the connection was closed without one."""
        reader, writer = await self.connect()
        try:
            with contextlib.suppress(ConnectionError):  # refused before all of it was sent
                writer.write(sent)
                await writer.drain()
            line = await asyncio.wait_for(reader.readline(), PATIENCE)
            return int(line.split()[1]) if line else 0
        except (ConnectionError, TimeoutError, asyncio.TimeoutError, IndexError, ValueError):
            return 0
        finally:
            writer.close()

    def post(self, path: str, body: bytes, kind: str = "application/json") -> bytes:
        return self.head("POST", path, Content_Type=kind, Content_Length=len(body)) + body


Attack: TypeAlias = Callable[[Place], Awaitable[list[int]]]


async def junk(place: Place) -> list[int]:
    """A body that was dear to read."""
    path, body = random.choice(list(JUNK.values()))
    status = await place.ask(place.post(path, body))
    return [status or 413]  # closed while a large body was sent: that is a refusal


async def half_requests(place: Place) -> list[int]:
    """Three hundred connections that never say all, held for a while."""
    halves = (b"", b"POST / HTTP/1.1\r\nHost: x\r\n", place.head("POST", SPEECH, Content_Length=99))
    held = [await place.connect() for _ in range(300)]
    for number, (_, writer) in enumerate(held):
        with contextlib.suppress(ConnectionError):
            writer.write(halves[number % len(halves)])
    await asyncio.sleep(5)
    for _, writer in held:
        writer.transport.abort()
    return []


async def resets(place: Place) -> list[int]:
    """Requests whose connection is reset at once."""
    for _ in range(20):
        _, writer = await place.connect()
        body = json.dumps({"input": TEXT}).encode()
        writer.write(place.post(SPEECH, body))
        await asyncio.sleep(0.02)
        writer.transport.abort()
    return []


async def crowd(place: Place) -> list[int]:
    """Thirty listeners at once, who leave after the first bytes."""
    body = json.dumps({"input": TEXT, "response_format": "pcm"}).encode()
    return list(await asyncio.gather(*(place.ask(place.post(SPEECH, body)) for _ in range(30))))


async def foreign_pages(place: Place) -> list[int]:
    """What other sites' pages can make a browser send, and a name that was rebound."""
    origin = {"Origin": "https://evil.example"}
    body = b'{"input":"Hi."}'
    length = {"Content_Length": len(body), "Content_Type": "application/json"}
    socket = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": 13}
    socket["Sec_WebSocket_Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    rebound = b"POST /v1/audio/speech HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n"
    told = [
        await place.ask(place.head("POST", SPEECH, **origin, **length) + body),
        await place.ask(place.head("GET", f"{SPEECH}/stream", **origin, **socket)),
        await place.ask(rebound),
    ]
    return [500 if status in (101, 200) else status for status in told]  # let in: a fault


async def one_name(place: Place) -> list[int]:
    """Four uploads of one name at once: at most one voice may be kept."""
    numbers = json.dumps([0.1] * place.width)
    part = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    fields = {"name": f"V{random.randrange(50)}", "consent": "true", "embedding": numbers}
    body = "".join(part.format(name, value) for name, value in fields.items()) + "--b--\r\n"
    sent = place.post("/v1/audio/voices", body.encode(), "multipart/form-data; boundary=b")
    told = list(await asyncio.gather(*(place.ask(sent) for _ in range(4))))
    return [*told, 500] if told.count(200) > 1 else told


async def page_events(place: Place) -> list[int]:
    """Two hundred events of the page, one after another."""
    sent = place.post("/gradio_api/call/voices", b'{"data":[]}')
    return [await place.ask(sent) for _ in range(200)]


async def sockets(place: Place) -> list[int]:
    """A hundred sockets that say nothing."""
    head = place.head(
        "GET",
        f"{SPEECH}/stream",
        Upgrade="websocket",
        Connection="Upgrade",
        Sec_WebSocket_Version=13,
        Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==",
    )
    held = [await place.connect() for _ in range(100)]
    for _, writer in held:
        writer.write(head)
    lines = await asyncio.gather(*(reader.readline() for reader, _ in held), return_exceptions=True)
    await asyncio.sleep(3)
    for _, writer in held:
        writer.transport.abort()
    told = [line.split() for line in lines if isinstance(line, bytes)]
    return [int(words[1]) for words in told if len(words) > 1]


ATTACKS: Final[tuple[Attack, ...]] = (
    junk,
    half_requests,
    resets,
    crowd,
    foreign_pages,
    one_name,
    page_events,
    sockets,
)
