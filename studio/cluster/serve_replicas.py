"""The way to a cluster's replicas: Ray Serve's handle of the speech deployment."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from ray.exceptions import RayError
from ray.serve.exceptions import BackPressureError, RayServeException

from engine import Busy, Parts, Refused, ReplicaLost, Sequence

TAKING_SECONDS = 30.0  # until a replica has said whether it takes a request
ANSWER_SECONDS = 5.0  # of a call to all replicas
SLOW = ("load", "unload")  # calls that take as long as they do
AGAIN_SECONDS = 5.0  # after which a queue of Serve's may have room
TRANSPORT = (RayError, RayServeException, TimeoutError, asyncio.TimeoutError)


class ServeReplicas:
    """Calls the methods of `SpeechReplica`; Serve picks the replica (studio/cluster/router.py)."""

    def __init__(self, handle: Any, dashboard: str = "") -> None:
        self._handle, self.dashboard = handle, dashboard
        self._speak = handle.options(method_name="speak", stream=True)

    async def speak(self, key: str, sequence: Sequence, avoid: frozenset[str]) -> Parts:
        answer = self._speak.remote(key, sequence, avoid=avoid)
        try:
            yield await asyncio.wait_for(anext(answer), TAKING_SECONDS)
            async for part in answer:
                yield part
        except StopAsyncIteration:
            return
        except BackPressureError:
            yield Refused(Busy(0, AGAIN_SECONDS))
        except TRANSPORT as error:
            raise ReplicaLost from error
        finally:
            with suppress(*TRANSPORT):
                answer.cancel()

    async def ask(self, method: str, *arguments: Any, each: bool = True) -> list[Any]:
        """Text goes to all: the one that speaks may be full, and then Serve would let it wait."""
        try:
            if not each:
                return [await self._handle.ask.remote(method, *arguments)]
            answers = await self._handle.broadcast("ask", method, *arguments).results_async(
                timeout_s=None if method in SLOW else ANSWER_SECONDS, return_exceptions=True
            )
        except TRANSPORT as error:
            raise ReplicaLost from error
        given = [answer for answer in answers if not isinstance(answer, TRANSPORT)]
        if not given:
            raise ReplicaLost
        return given
