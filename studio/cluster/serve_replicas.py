"""The transport of a cluster's engine: Ray Serve's handle of the speech deployment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ray.exceptions import RayError
from ray.serve.exceptions import BackPressureError, RayServeException

from engine import (
    Busy,
    Clone,
    Parts,
    Refused,
    ReplicaLost,
    SpeechRequest,
    Stats,
    TimbreError,
    Waveform,
)

TAKING_SECONDS = 30.0  # until a replica has said whether it takes a request
ANSWER_SECONDS = 5.0  # of a call to all replicas
AGAIN_SECONDS = 5.0  # after which a queue of Serve's may have room
NOBODY = ""  # no replica has been asked
TRANSPORT = (RayError, RayServeException, TimeoutError, asyncio.TimeoutError)


class ServeReplicas:
    """Calls the methods of `SpeechReplica`; Serve picks the replica (studio/cluster/router.py)."""

    def __init__(self, handle: Any, dashboard: str = "") -> None:
        self._handle, self.dashboard = handle, dashboard
        self._speak = handle.options(method_name="speak", stream=True)

    async def speak(self, key: str, request: SpeechRequest, avoid: frozenset[str]) -> Parts:
        answer = self._speak.remote(key, request, avoid=avoid)
        try:
            yield await asyncio.wait_for(anext(answer), TAKING_SECONDS)
            async for part in answer:
                yield part
        except StopAsyncIteration:
            return
        except BackPressureError:
            yield Refused(NOBODY, Busy(0, AGAIN_SECONDS))
        except TRANSPORT as error:
            raise ReplicaLost from error
        finally:
            with suppress(*TRANSPORT):
                answer.cancel()

    async def append(self, key: str, text: str | None) -> None:
        """All are told: the one that speaks may be full, and then Serve would let this wait."""
        await self._call_all("append", key, text)

    async def clone(
        self, audio: Waveform, transcript: str, model: str | None
    ) -> Clone | TimbreError:
        try:
            clone: Clone | TimbreError = await self._handle.clone.remote(audio, transcript, model)
        except TRANSPORT as error:
            raise ReplicaLost from error
        return clone

    async def load(self, model: str, wanted: bool) -> TimbreError | None:
        errors = await self._call_all("load", model, wanted, timeout=None)
        return next((error for error in errors if error), None)

    async def look(self) -> Mapping[str, Stats]:
        return dict(await self._call_all("look"))

    async def _call_all(
        self, method: str, *values: Any, timeout: float | None = ANSWER_SECONDS
    ) -> list[Any]:
        """The answers of those that gave one. Raises ReplicaLost if nobody did."""
        try:
            answers = await self._handle.broadcast(method, *values).results_async(
                timeout_s=timeout, return_exceptions=True
            )
        except TRANSPORT as error:
            raise ReplicaLost from error
        told = [answer for answer in answers if not isinstance(answer, TRANSPORT)]
        if not told:
            raise ReplicaLost
        return told
