"""The event transport: payloads about a take that a Gradio event sends to a player.

A value in Gradio is state, not a message: a browser may miss any payload, so each has a sequence
number and repeats the previous piece of audio. This module knows no components.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import time
from typing import TypedDict

from engine import SAMPLE_RATE, TimbreError
from studio.takes.live_take import HEARTBEAT, UNEXPECTED, LiveTake

RAW_HEARTBEAT = 1.0  # seconds between payloads while the raw route carries the audio
WORDS = 90  # characters of a text that the player shows
PARTS = 24  # more than begin between two payloads that arrive
CALM = 0.25  # longest time between payloads once the listener has a lead, in seconds


class Ended(TypedDict):
    reason: str  # engine.types.Reason, or "refused"
    message: str  # for the user, perhaps a Message to translate; empty after a normal end
    seed: int | None
    take: str | None  # the id of the saved take


class Payload(TypedDict):
    """State, not a message: a browser may miss any of them. Audio is sent twice."""

    id: str
    seq: int
    state: str  # waiting, speaking, ended (the audio is complete), done (and saved)
    position: int | None
    wait: float | None  # seconds, estimated
    start: int  # sample at which `pcm` starts
    pcm: str  # base64 of PCM16: the previous piece and the new one
    voice: str  # what the player bar shows
    text: str
    parts: list[tuple[int, str, str]]  # the latest: who says what from a sample on
    made: int  # samples so far
    first_ms: int | None  # from the request to its first chunk
    speed: float | None  # audio seconds per second since then
    hold: float  # seconds of audio to have before it is played; 0: play what comes
    raw: str | None  # where the same audio can be fetched raw
    ended: Ended | None


class EventTransport:
    """The event transport of one take: what was sent, and what to send next."""

    def __init__(self, take: LiveTake, raw: str | None = None, start: int = 0) -> None:
        self._take = take
        self._raw = raw
        self._seq = 0
        self._previous = self._sent = start  # samples
        self._state_sent = ""  # state
        self._first_sent = 0.0

    @property
    def complete(self) -> bool:
        return self._take.ended and (self._take.readers > 0 or self._sent == self._take.made)

    async def wait(self) -> None:
        """Wait until there is news, or a heartbeat is due."""
        await asyncio.sleep(self._calm())
        until = time.perf_counter() + (RAW_HEARTBEAT if self._take.readers else HEARTBEAT)
        while not self._due() and (left := until - time.perf_counter()) > 0:
            await self._take.change(left)

    def payload(self, ended: Ended | None = None) -> Payload:
        take = self._take
        start, pcm = (self._sent, b"") if take.readers else self._sound()
        self._seq += 1
        self._state_sent = take.state
        return Payload(
            id=take.id,
            seq=self._seq,
            state=take.state,
            position=take.position,
            wait=take.estimate,
            start=start,
            pcm=base64.b64encode(pcm).decode(),
            voice=take.about.voice,
            text=beginning(take.about.text),
            parts=[
                (part.start, part.voice, beginning(part.text))
                for part in take.about.parts()[-PARTS:]
            ],
            made=take.made,
            first_ms=None if take.first is None else round(1000 * (take.first - take.opened)),
            speed=take.speed,
            hold=take.wanted_lead,
            raw=self._raw,
            ended=ended,
        )

    def _sound(self) -> tuple[int, bytes]:
        """The previous piece and the new one, contiguous."""
        start, new = self._previous, self._take.slice(self._sent)
        pcm = self._take.slice(start, self._sent - start) + new
        if not self._sent and new:
            self._first_sent = time.perf_counter()
        self._previous, self._sent = self._sent, self._sent + len(new) // 2
        return start, pcm

    def _due(self) -> bool:
        take = self._take
        if take.readers:
            self._sent = self._previous = max(self._sent, take.read_from)
            return take.ended or take.state != self._state_sent
        return take.ended or take.made > self._sent

    def _calm(self) -> float:
        """The interval of payloads, longer for a listener with a lead."""
        if not self._sent or self._take.readers:
            return 0.0
        lead = self._sent / SAMPLE_RATE - (time.perf_counter() - self._first_sent)
        return min(CALM, max(0.0, lead / 4))


def beginning(text: str) -> str:
    """How a text begins, on one line."""
    line = " ".join(text[: 4 * WORDS].split())
    return line if len(line) <= WORDS else f"{line[: WORDS - 1]}…"


def ending(take: LiveTake) -> Ended:
    """How a take has ended, with a message for the user."""
    end = take.end
    error = end.error if end else None
    message = error.message if isinstance(error, TimbreError) else UNEXPECTED if error else ""
    reason = "error" if end is None or take.failure else end.reason
    return Ended(
        reason=reason, message=take.failure or message, seed=end.seed if end else None, take=None
    )


def refusal(message: str) -> Payload:
    """The payload for a refused request."""
    return Payload(
        id=secrets.token_urlsafe(12),
        seq=1,
        state="done",
        position=None,
        wait=None,
        start=0,
        pcm="",
        voice="",
        text="",
        parts=[],
        made=0,
        first_ms=None,
        speed=None,
        hold=0.0,
        raw=None,
        ended=Ended(reason="refused", message=message, seed=None, take=None),
    )
