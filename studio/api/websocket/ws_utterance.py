"""The utterances of a WebSocket session: text in pieces in, streams of audio out.

    Flowing    one request; text is appended while it speaks
    Split      one request per sentence, all with one seed: sentence times are exact

`ws_session` feeds them, `ws_sender` plays them, on one event loop. Cancelling ends all streams.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from engine import InvalidText, SentenceBuffer, SpeechRequest, SpeechStream
from studio.api.api_context import by_length

Submit = Callable[[SpeechRequest], SpeechStream]
LONGEST = 100_000  # characters that may wait


@dataclass(frozen=True)
class Part:
    """One stream of an utterance; `text` is empty while it is still being written."""

    text: str
    stream: SpeechStream


class Utterance(Protocol):
    async def feed(self, text: str) -> None: ...
    def close(self) -> None: ...
    def cancel(self) -> None: ...
    def text_of(self, part: Part) -> str:
        """The text of a part, once it has been spoken."""

    def parts(self) -> AsyncIterator[Part]: ...
    def timestamps(self, spoken: list[tuple[str, float]]) -> list[dict[str, Any]]:
        """The times of the sentences, from the parts' texts and seconds."""


class Flowing:
    """Speaks from the first words on; sentence times are estimated by length."""

    def __init__(self, stream: SpeechStream, text: str) -> None:
        """`stream`: of a request with an open text, which is `text` so far."""
        self._stream, self._said = stream, text

    async def feed(self, text: str) -> None:
        if self._stream.end is None:  # after an early end the rest is dropped
            await by_length(text, self._stream.append, text)
            self._said += text

    def close(self) -> None:
        if self._stream.end is None:
            self._stream.close_text()

    def cancel(self) -> None:
        self._stream.cancel()

    def text_of(self, part: Part) -> str:
        return self._said

    async def parts(self) -> AsyncIterator[Part]:
        yield Part("", self._stream)

    def timestamps(self, spoken: list[tuple[str, float]]) -> list[dict[str, Any]]:
        seconds = sum(part[1] for part in spoken)
        reader = SentenceBuffer()
        texts = reader.feed(self._said) + reader.finish()
        total = sum(map(len, texts)) or 1
        shares = [(text, seconds * len(text) / total) for text in texts]
        return _times(shares, estimated=True)


class Split:
    """Speaks sentence by sentence, each after the previous one was sent."""

    def __init__(self, request: SpeechRequest, submit: Submit, text: str, most: int) -> None:
        """`most`: characters of all its text together, as of any request."""
        self._request, self._submit, self._left = request, submit, most
        self._reader = SentenceBuffer()
        self._waiting: deque[str] = deque()
        self._more = asyncio.Event()
        self._closed = self._cancelled = False
        self._stream: SpeechStream | None = None
        self._take(text)

    async def feed(self, text: str) -> None:
        if not self._closed:
            self._take(text)

    def _take(self, text: str) -> None:
        if self._reader.length + len(text) + sum(map(len, self._waiting)) > LONGEST:
            raise InvalidText(f"More than {LONGEST} characters wait to be spoken. Send them later.")
        if len(text) > self._left:
            raise InvalidText("This utterance is too long. Begin another one for more text.")
        self._left -= len(text)
        self._waiting += self._reader.feed(text)
        self._more.set()

    def close(self) -> None:
        self._waiting += self._reader.finish()
        self._closed = True
        self._more.set()

    def cancel(self) -> None:
        self._reader, self._closed, self._cancelled = SentenceBuffer(), True, True
        self._waiting.clear()
        self._more.set()
        if self._stream:
            self._stream.cancel()

    def text_of(self, part: Part) -> str:
        return part.text

    async def parts(self) -> AsyncIterator[Part]:
        while await self._has_more():
            text = self._waiting.popleft()
            request = replace(self._request, text=text)
            self._stream = await by_length(text, self._submit, request)
            if self._cancelled:  # meanwhile
                self._stream.cancel()
            self._request = replace(self._request, seed=self._stream.seed)
            yield Part(text, self._stream)

    def timestamps(self, spoken: list[tuple[str, float]]) -> list[dict[str, Any]]:
        return _times(spoken, estimated=False)

    async def _has_more(self) -> bool:
        while not self._waiting and not self._closed:
            self._more.clear()
            await self._more.wait()
        return bool(self._waiting)


def _times(spoken: list[tuple[str, float]], estimated: bool) -> list[dict[str, Any]]:
    times, at = [], 0.0
    for text, seconds in spoken:
        span = {"start": round(at, 3), "end": round(at + seconds, 3)}
        times.append({"text": text, **span, "estimated": estimated})
        at += seconds
    return times
