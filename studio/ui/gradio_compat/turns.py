"""Presses of a page that are carried out one after the other, in their order.

Gradio begins each at once, with threads for its fields, its work and its answer: of two quick ones
the second may be read, done or answered first, and neither finds what the other left in a gr.State.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final
from weakref import WeakValueDictionary

from gradio.queueing import Queue

IN_TURN: Final = {"concurrency_id": "in turn"}  # arguments of such an event

_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by session


class OrderedQueue(Queue):
    async def process_events(self, events: Any, *how: Any) -> None:
        async with _turn(events[0]):
            await super().process_events(events, *how)


def _turn(event: Any) -> AbstractAsyncContextManager[None]:
    """Who waits is let in by turns."""
    if event.concurrency_id != IN_TURN["concurrency_id"]:
        return nullcontext()
    return _turns.setdefault(event.session_hash, asyncio.Lock())
