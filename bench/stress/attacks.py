"""Attacks on connections, bodies, keys and the page, each a coroutine that does its worst once.

`ATTACKS` has these and those of `voice_attacks.py`. Knows only docs/api.md and closed routes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from bench.stress import voice_attacks
from bench.stress.target import Tally, Target

Attack: TypeAlias = Callable[[Target, Tally], Awaitable[None]]

SPEECH: Final = "/v1/audio/speech"
MIB: Final = 1 << 20
TEXT: Final = "The night train was late again, and nobody on the platform knew why. " * 3
BODIES: Final = {
    "a batch of numbers": (f"{SPEECH}/batch", b'{"items":[' + b"1," * (2 * MIB) + b"1]}"),
    "a blend of numbers": (
        "/v1/audio/voices/blend",
        b'{"name":"x","voices":[' + b"1," * MIB + b"1]}",
    ),
    "unknown keys": (
        SPEECH,
        ("{" + ",".join(f'"k{n}":1' for n in range(200_000)) + "}").encode(),
    ),
    "just below the limits": (
        SPEECH,
        json.dumps({"input": "x" * 15 * MIB, "speaker_embedding": [0.1] * 8000}).encode(),
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
UPGRADE: Final[dict[str, object]] = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": 13,
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


async def large_bodies(target: Target, tally: Tally) -> None:
    """A body that was dear to read."""
    path, body = random.choice(list(BODIES.values()))
    status = await target.ask(target.post(path, body))
    tally.note(status)
    if status == 200:
        tally.fault(f"{path} took a body of {len(body):,} bytes")


async def half_requests(target: Target, tally: Tally) -> None:
    """Three hundred connections that never say all, held for a while."""
    halves = (
        b"",
        b"POST / HTTP/1.1\r\nHost: x\r\n",
        target.head("POST", SPEECH, {"Content-Length": 99}),
    )
    held = [await target.connect() for _ in range(300)]
    for number, (_, writer) in enumerate(held):
        with contextlib.suppress(ConnectionError):
            writer.write(halves[number % len(halves)])
    await asyncio.sleep(5)
    for reader, writer in held:
        tally.note("dropped" if reader.at_eof() else "held")
        writer.transport.abort()


async def resets(target: Target, tally: Tally) -> None:
    """Requests whose connection is reset at once."""
    for _ in range(20):
        _, writer = await target.connect()
        writer.write(target.post(SPEECH, json.dumps({"input": TEXT}).encode()))
        await asyncio.sleep(0.02)
        writer.transport.abort()
        tally.note("reset")


async def crowds(target: Target, tally: Tally) -> None:
    """Thirty listeners at once, who leave after the first bytes."""
    sent = target.post(SPEECH, json.dumps({"input": TEXT, "response_format": "pcm"}).encode())
    for status in await asyncio.gather(*(target.ask(sent) for _ in range(30))):
        tally.note(status)


async def foreign_pages(target: Target, tally: Tally) -> None:
    """What other sites' pages can make a browser send, and a name that was rebound."""
    body = b'{"input":"Hi."}'
    origin = {"Origin": "https://evil.example"}
    length = {"Content-Type": "application/json", "Content-Length": len(body)}
    rebound = {"Host": "evil.example"}
    sent = (
        target.head("POST", SPEECH, {**origin, **length}) + body,
        target.head("POST", "/gradio_api/queue/join", {**origin, **length}) + body,
        target.head("GET", f"{SPEECH}/stream", {**origin, **UPGRADE}),
        target.head("GET", f"{SPEECH}/stream", {**rebound, **UPGRADE}),
        target.head("POST", SPEECH, {**rebound, **length}) + body,
    )
    for request in sent:
        status = await target.ask(request)
        tally.note(status)
        if status in (101, 200):
            tally.fault("let in: " + request.partition(b"\r\n")[0].decode())


async def wrong_keys(target: Target, tally: Tally) -> None:
    """Fifty guesses at the key and the password."""
    if not target.key:
        return
    for _ in range(50):
        guess = f"{random.getrandbits(64):x}"
        stranger = Target(target.url, target.address, key=guess)
        form = f"username=x&password={guess}".encode()
        requests = [stranger.post(SPEECH, b'{"input":"Hi."}')]
        if target.cookie:
            kind = "application/x-www-form-urlencoded"
            requests.append(Target(target.url, target.address).post("/login", form, kind))
        for request in requests:
            status = await target.ask(request)
            tally.note(status)
            if status == 200:
                tally.fault("a wrong key was taken")


async def page_events(target: Target, tally: Tally) -> None:
    """Two hundred events of the page, one after another."""
    sent = target.post("/gradio_api/call/voices", b'{"data":[]}')
    for _ in range(200):
        tally.note(await target.ask(sent))


async def silent_sockets(target: Target, tally: Tally) -> None:
    """A hundred sockets that say nothing."""
    head = target.head("GET", f"{SPEECH}/stream", UPGRADE)
    held = [await target.connect() for _ in range(100)]
    for _, writer in held:
        writer.write(head)
    lines = await asyncio.gather(*(reader.readline() for reader, _ in held), return_exceptions=True)
    await asyncio.sleep(3)
    for _, writer in held:
        writer.transport.abort()
    for line in lines:
        words = line.split() if isinstance(line, bytes) else []
        tally.note(int(words[1]) if len(words) > 1 else "closed")


ATTACKS: Final[dict[str, Attack]] = {
    attack.__name__: attack
    for attack in (
        large_bodies,
        half_requests,
        resets,
        crowds,
        foreign_pages,
        wrong_keys,
        page_events,
        silent_sockets,
        *voice_attacks.ATTACKS,
    )
}
