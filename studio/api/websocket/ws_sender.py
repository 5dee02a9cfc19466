"""The sending half of a WebSocket session: utterances are sent one after the other.

A cancelled utterance still ends with its messages, so that the client can always assign the audio.
Incoming messages are handled in `ws_session`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect

from engine import SAMPLE_RATE, End, TimbreError
from studio.api.bodies.schemas import Configuration
from studio.api.errors import UNFORESEEN, ApiError, explain
from studio.api.json_text import to_json
from studio.api.metrics import Metrics
from studio.api.request_labels import take_warnings
from studio.api.responses.audio_output import KeptRender, Render
from studio.api.responses.streaming_response import pieces
from studio.api.responses.word_timestamps import timestamps
from studio.api.websocket.ws_utterance import Part, Utterance

log = logging.getLogger(__name__)
STALLED, BROKEN = 1008, 1006
NEVER = 2**62  # frames
LEAVING = 8  # cancelled turns whose last messages may wait, for each live one


@dataclass(eq=False)
class Turn:
    """An utterance with its format and state."""

    index: int
    utterance: Utterance
    how: Configuration
    cancelled: bool = False
    heard: bool = False  # some of it was sent
    reason: str = "finished"
    warnings: list[str] = field(default_factory=list)  # what its model leaves out

    def cancel(self) -> None:
        self.cancelled = True
        self.utterance.cancel()


class WsOutlet:
    """Sends messages with a timeout. Raises TimeoutError, and WebSocketDisconnect once closed."""

    def __init__(self, socket: WebSocket, stall_timeout: float) -> None:
        self._socket, self._stall_timeout = socket, stall_timeout
        self.active = time.monotonic()
        self.played = 0.0  # when what was sent will have been played

    async def tell(self, type: str, **fields: Any) -> None:
        await self.json({"type": type, **fields})

    async def json(self, message: dict[str, Any]) -> None:
        await self._send({"type": "websocket.send", "text": to_json(message)})

    def plays(self, seconds: float) -> None:
        """Count audio that was sent, which takes so many seconds to play."""
        self.played = max(self.played, self.active) + seconds

    async def error(self, error: ApiError, **place: int) -> None:
        await self.tell("error", message=error.message, **place, **error.body())

    async def audio(self, data: bytes, seconds: float) -> None:
        await self._send({"type": "websocket.send", "bytes": data})
        self.plays(seconds)

    async def close(self, code: int, reason: str) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError), anyio.move_on_after(5):
            await self._socket.close(code, reason)

    async def _send(self, message: dict[str, Any]) -> None:
        with anyio.fail_after(self._stall_timeout):
            try:
                await self._socket.send(message)
            except RuntimeError as error:  # starlette's, for a socket that was closed here
                raise WebSocketDisconnect(BROKEN) from error
        self.active = time.monotonic()


class TimedOutlet:
    """Sends a part as vllm-omni does with the times of words: audio in JSON, and last the times."""

    def __init__(self, outlet: WsOutlet, place: dict[str, int], sample_rate: int) -> None:
        self._outlet, self._place = outlet, {**place, "sample_rate": sample_rate}
        self._count, self._at = 0, 0.0

    async def audio(self, data: bytes, seconds: float) -> None:
        start, self._at = self._at, self._at + seconds
        await self._tell(start, audio_b64=b64encode(data).decode(), timestamps=None)
        self._outlet.plays(seconds)

    async def times(self, words: list[dict[str, Any]]) -> None:
        await self._tell(0.0, audio_b64="", timestamps=words)

    async def _tell(self, start: float, **fields: Any) -> None:
        span = {"chunk_start_ms": round(1000 * start), "chunk_end_ms": round(1000 * self._at)}
        place = {**self._place, "chunk_id": self._count}
        await self._outlet.tell("audio.chunk", **place, **span, **fields)
        self._count += 1


class WsSender:
    """Sends turns in order. `turns` holds the current one and those that wait."""

    def __init__(self, outlet: WsOutlet, metrics: Metrics) -> None:
        self.turns: list[Turn] = []
        self._outlet, self._metrics = outlet, metrics
        self._work = asyncio.Event()

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)
        self._work.set()

    def crowded(self, most: int) -> bool:
        """Whether no more turns are accepted. Cancelled ones only have their last messages left."""
        live = sum(not turn.cancelled for turn in self.turns)
        return live >= most or len(self.turns) >= LEAVING * most

    def cancel(self) -> None:
        for turn in self.turns:
            turn.cancel()

    async def run(self) -> None:
        """Send until the client is gone, or has read nothing for too long."""
        try:
            while await self._work.wait():
                self._work.clear()
                while self.turns:
                    await self._say(self.turns[0])
                    self.turns.pop(0)
        except TimeoutError:
            self.cancel()
            await self._outlet.close(STALLED, "nothing was taken for too long")
        except WebSocketDisconnect:
            pass  # the reader notices it too

    async def _say(self, turn: Turn) -> None:
        spoken: list[tuple[str, float]] = []
        try:
            async for part in turn.utterance.parts():
                end = await self._say_part(turn, part, spoken)
                turn.reason = end.reason if turn.reason == "finished" else turn.reason
        except TimbreError as error:
            await self._failed(turn, explain(error))
        except (TimeoutError, WebSocketDisconnect):
            raise
        except Exception:
            log.exception("an utterance failed")
            await self._failed(turn, UNFORESEEN)
        await self._tell_done(turn, spoken)

    async def _say_part(self, turn: Turn, part: Part, spoken: list[tuple[str, float]]) -> End:
        timed = turn.how.word_timestamps
        render = KeptRender(turn.how.output) if timed else Render(turn.how.output)
        watch = self._metrics.watch("socket", turn.how.response_format)
        place = {"utterance_index": turn.index, "sentence_index": len(spoken)}
        outlet = (
            TimedOutlet(self._outlet, place, turn.how.output.sample_rate) if timed else self._outlet
        )
        sent = measured = 0
        async with part.stream:
            try:
                await self._tell_start(turn, part, place)
                hold = 0 if spoken else turn.how.initial_codec_chunk_frames
                if not turn.how.stream_audio:
                    hold = NEVER
                async for piece in pieces(part.stream, render, hold):
                    watch.first()
                    turn.heard = True
                    await outlet.audio(piece, (render.samples - measured) / SAMPLE_RATE)
                    sent, measured = sent + len(piece), render.samples
            finally:
                watch.end(part.stream.end)
        end = part.stream.end
        assert end is not None  # it has been read to its end
        if isinstance(outlet, TimedOutlet) and isinstance(render, KeptRender):
            words = (turn.utterance.text_of(part), render.heard(), turn.how.speed)
            await outlet.times(await anyio.to_thread.run_sync(timestamps, *words))
        turn.warnings += [text for text in part.stream.notices if text not in turn.warnings]
        before = sum(seconds for _, seconds in spoken)
        spoken.append((part.text, render.samples / SAMPLE_RATE))
        span = {"start": round(before, 3), "end": round(before + spoken[-1][1], 3)}
        result = {"total_bytes": sent, "finish_reason": end.reason, "error": False}
        await self._outlet.tell("audio.done", **place, **span, **result)
        return end

    async def _failed(self, turn: Turn, error: ApiError) -> None:
        turn.utterance.cancel()
        turn.reason = "error"
        await self._outlet.error(error, utterance_index=turn.index)

    async def _tell_start(self, turn: Turn, part: Part, place: dict[str, int]) -> None:
        kind = {"format": turn.how.response_format, "sample_rate": turn.how.output.sample_rate}
        about = {"sentence_text": part.text, "seed": part.stream.seed}
        await self._outlet.tell("audio.start", **place, **about, **kind)

    async def _tell_done(self, turn: Turn, spoken: list[tuple[str, float]]) -> None:
        warned = [*take_warnings(), *turn.warnings]
        warnings = {"warnings": warned} if warned else {}
        await self._outlet.tell(
            "session.done",
            utterance_index=turn.index,
            total_sentences=len(spoken),
            finish_reason="cancelled" if turn.cancelled else turn.reason,
            sentences=turn.utterance.timestamps(spoken),
            **warnings,
        )
