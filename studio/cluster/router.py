"""Which replica a request goes to: Serve's choice of two, among those that are worth asking.

A request of the page says which replicas have refused it. A voice with a reference goes to the same
replica each time while that has a slot free, since the state of the reference is cached there.
Serve itself passes over a replica that is full. Knows Serve's public routers' interface alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, TypeVar

from ray.serve.request_router import FIFOMixin, PendingRequest, RequestRouter, RunningReplica

from engine import Sequence

_T = TypeVar("_T")


class SpeechRouter(FIFOMixin, RequestRouter):  # type: ignore[misc]  # Ray has no types
    """Ranks of replicas: those of a rank are compared by their requests, and ranks in order."""

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        avoid, key = (), b""
        if pending_request is not None:
            avoid = pending_request.kwargs.get("avoid", ())
            key = reference_key(pending_request.args)
        worth = [each for each in candidate_replicas if _name(each) not in avoid]
        worth = worth or list(candidate_replicas)
        two = random.sample(worth, min(2, len(worth)))
        first = favourite(key, {_name(each): each for each in worth}) if key else None
        return [[first], two] if first is not None and self._has_a_slot(first) else [two]

    def _has_a_slot(self, replica: RunningReplica) -> bool:
        """Free slots, as far as known here. A replica queues as many requests as it has slots."""
        running: int = self.replica_queue_len_cache.get(replica.replica_id) or 0
        most: int = replica.max_ongoing_requests
        return running < most // 2


def reference_key(values: Iterable[Any]) -> bytes:
    """What identifies the reference of a request; empty without one."""
    for value in values:
        if isinstance(value, Sequence) and (reference := value.prompt.reference):
            return blake2b(reference.codes.tobytes(), digest_size=16).digest()
    return b""


def favourite(key: bytes, among: dict[str, _T]) -> _T | None:
    """The same one for a key while it is there; when it goes, only its own keys move."""

    def rank(name: str) -> bytes:
        return blake2b(key + name.encode(), digest_size=8).digest()

    return among[max(among, key=rank)] if among else None


def _name(replica: RunningReplica) -> str:
    name: str = replica.replica_id.unique_id
    return name
