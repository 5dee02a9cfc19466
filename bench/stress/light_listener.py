"""Listeners that cost little: HTTP/1.0 over asyncio streams, audio counted and thrown away.

HTTP/1.0 has no chunked bodies, so that what arrives is audio. A gap is counted when audio arrives
after all of it before has been played, if it is played from the first byte on. Times are those of a
clock that may be slower than the wall's.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from bench.stress.slow_clock import SlowClock

SECOND_BYTES = 48_000
LARGEST = 1 << 20  # bytes that are read at once


@dataclass
class Heard:
    """What one process of listeners has heard."""

    seconds: float = 0.0  # of audio
    pieces: int = 0
    gaps: int = 0
    streams: int = 0  # that were heard
    refused: int = 0
    broken: int = 0
    firsts: list[float] = field(default_factory=list)  # seconds to the first audio
    used: float = 0.0  # CPU time of the listeners

    def add(self, other: Heard) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class Load:
    """What a process of listeners does, in seconds of its clock: audio counts after `before`."""

    port: int
    text: str
    streams: int
    clock: SlowClock
    before: float
    seconds: float


async def hear(load: Load, text: str, start: float, heard: Heard) -> None:
    """One stream, from a connection of its own, until its end or that of the load."""
    body = {"input": text, "voice": "ryan", "response_format": "pcm", "stream": True}
    data = json.dumps(body).encode()
    head = (
        "POST /v1/audio/speech HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    clock, counted = load.clock, start + load.before
    began = clock.now()
    reader, writer = await asyncio.open_connection("127.0.0.1", load.port, limit=LARGEST)
    try:
        writer.write(head.encode() + data)
        if b" 200 " not in (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0]:
            heard.refused += 1
            await asyncio.sleep(0.5 * clock.factor)
            return
        played = 0.0
        while piece := await reader.read(LARGEST):
            now = clock.now()
            if not played:
                heard.firsts.append(now - began)
                heard.streams, played = heard.streams + 1, now
            heard.gaps += now > played
            played = max(played, now) + len(piece) / SECOND_BYTES
            if now > counted + load.seconds:
                break
            if now > counted:
                heard.pieces += 1
                heard.seconds += len(piece) / SECOND_BYTES
    except (OSError, asyncio.IncompleteReadError):
        heard.broken += 1
    finally:
        writer.close()


async def hear_many(load: Load) -> Heard:
    """One stream after another on each connection; the first ones end one by one."""
    heard, start = Heard(), load.clock.now()

    async def one(number: int) -> None:
        await asyncio.sleep(load.clock.factor * number * min(1.0, load.before / 2) / load.streams)
        text = load.text[: 1 + len(load.text) * (number + 1) // load.streams]
        while load.clock.now() < start + load.before + load.seconds:
            await hear(load, text, start, heard)
            text = load.text

    await asyncio.gather(*(one(number) for number in range(load.streams)))
    heard.used = time.process_time()
    return heard


def listener(pipe: Connection, load: Load) -> None:
    """The target of a process."""
    pipe.send(asyncio.run(hear_many(load)))
