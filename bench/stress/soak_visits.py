"""The visits of a soak test: requests to a server, and checks of its answers.

A visit ends `whole`, `refused` (with a reason, and when to retry) or `left` (by the visitor);
anything else raises Broken. Knows only the API of docs/api.md.
"""

from __future__ import annotations

import json
import random
import wave
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import httpx
from websockets.asyncio.client import connect

FRAME_BYTES = 1_920 * 2
WORDS = [
    "the",
    "morning",
    "train",
    "was",
    "late",
    "again",
    "so",
    "she",
    "read",
    "on",
    "and",
    "nobody",
    "minded",
    "at",
    "all",
]
REFUSALS = {429, 503}


class Broken(Exception):
    """An answer that is neither complete nor a clear refusal."""


class Refused(Exception):
    """A clear refusal."""


class Visitor:
    """One visitor; `leaves` is the share of visits that it leaves early."""

    def __init__(self, http: httpx.AsyncClient, url: str, chosen: random.Random, leaves: float):
        self._http, self._url, self._random, self._leaves = http, url, chosen, leaves

    @property
    def actions(self) -> dict[str, Callable[[], Awaitable[str]]]:
        every = (self.file, self.stream, self.events, self.socket, self.page, self.listing)
        return {action.__name__: action for action in every}

    async def visit(self, name: str) -> str:
        try:
            return await self.actions[name]()
        except Refused:
            return "refused"

    async def file(self) -> str:
        """A complete WAV."""
        frames = self._random.randint(4, 40)
        answer = await self._http.post(
            self._url + SPEECH, json=self._body(frames, "wav", stream=False)
        )
        check(answer.status_code, answer.content)
        with wave.open(BytesIO(answer.content)) as sound:
            expect(sound.getnframes() * 2, frames * FRAME_BYTES)
        return "whole"

    async def stream(self) -> str:
        """Raw PCM as it is generated."""
        frames, leaving, heard = self._random.randint(4, 60), self._is_leaving(), 0
        async with self._asking(self._body(frames, "pcm", stream=True)) as answer:
            async for piece in answer.aiter_raw():
                heard += len(piece)
                if leaving:
                    return "left"
        expect(heard, frames * FRAME_BYTES)
        return "whole"

    async def events(self) -> str:
        frames, leaving, last = self._random.randint(4, 60), self._is_leaving(), ""
        async with self._asking(self._body(frames, "pcm", stream_format="sse")) as answer:
            async for line in answer.aiter_lines():
                last = line or last
                if leaving and line:
                    return "left"
        expect(json.loads(last.removeprefix("data: ")).get("type"), "speech.audio.done")
        return "whole"

    async def socket(self) -> str:
        """A WebSocket session: text in pieces, audio until the session is done."""
        address = self._url.replace("http", "ws", 1) + SPEECH + "/stream"
        key = {k: v for k, v in self._http.headers.items() if k == "authorization"}
        async with connect(address, max_size=None, additional_headers=key) as socket:
            await socket.send(json.dumps({"type": "session.config", "max_new_tokens": 30}))
            for word in self._text().split():
                await socket.send(json.dumps({"type": "input.text", "text": word + " "}))
            await socket.send(json.dumps({"type": "input.done"}))
            return await self._heard(socket)

    async def page(self) -> str:
        """The page's endpoint for programs, through Gradio's queue."""
        call = f"{self._url}/gradio_api/call/stream"
        begun = await self._http.post(call, json={"data": [self._text(), "", "auto", ""]})
        check(begun.status_code, begun.content)
        leaving, event = self._is_leaving(), ""
        async with self._http.stream("GET", f"{call}/{begun.json()['event_id']}") as answer:
            async for line in answer.aiter_lines():
                event = line.removeprefix("event: ") if line.startswith("event: ") else event
                if event == "error" and line.startswith("data:"):
                    raise Refused(line)
                if leaving and event == "generating":
                    return "left"
        expect(event, "complete")
        return "whole"

    async def glance(self) -> None:
        """The page's endpoint that lists voices."""
        call = f"{self._url}/gradio_api/call/voices"
        begun = await self._http.post(call, json={"data": []})
        check(begun.status_code, begun.content)
        answer = await self._http.get(f"{call}/{begun.json()['event_id']}")
        expect(answer.text.splitlines()[:1], ["event: complete"])

    async def listing(self) -> str:
        for path in ("/v1/audio/voices", "/v1/models", "/metrics"):
            answer = await self._http.get(self._url + path)
            check(answer.status_code, answer.content)
        return "whole"

    async def _heard(self, socket: Any) -> str:
        leaving, heard, promised = self._is_leaving(), 0, 0
        async for message in socket:
            if isinstance(message, bytes):
                heard += len(message)
                if leaving:
                    return "left"
                continue
            event = json.loads(message)
            if event["type"] == "error":
                raise Refused(message) if event["error"]["code"] in CODES else Broken(message)
            promised += event.get("total_bytes", 0)
            if event["type"] == "session.done":
                expect(heard, promised)
                return "whole"
        raise Broken("the socket closed before the session was done")

    @asynccontextmanager
    async def _asking(self, body: dict[str, Any]) -> AsyncIterator[httpx.Response]:
        async with self._http.stream("POST", self._url + SPEECH, json=body) as answer:
            if answer.status_code != 200:
                check(answer.status_code, await answer.aread())
            yield answer

    def _body(self, frames: int, format: str, **more: Any) -> dict[str, Any]:
        limits = {"max_new_tokens": frames, "ignore_eos": True}
        return {"input": self._text(), "response_format": format, **limits, **more}

    def _text(self) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(3, 9))) + "."

    def _is_leaving(self) -> bool:
        return self._random.random() < self._leaves


SPEECH = "/v1/audio/speech"
CODES = {"queue_full", "engine_closed", "too_many_sockets"}


def check(status: int, content: bytes) -> None:
    """Raises Refused for a clear refusal, Broken for any other status than 200."""
    if status == 200:
        return
    try:
        refusal = json.loads(content)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        raise Broken(f"{status}: {content[:200]!r}") from None
    raise Refused(refusal) if status in REFUSALS else Broken(f"{status}: {refusal}")


def expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise Broken(f"{found!r} instead of {wanted!r}")
