"""Presses of a page that are carried out one after the other, in their order.

Gradio begins each at once, with threads for its fields, its work and its answer: of two quick ones
the second may be read, done or answered first, and neither finds what the other left in a gr.State.
One that waits for its turn stays in the queue, where others pass it by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gradio.queueing import Queue

TURN: Final = "in turn"
IN_TURN: Final = {"concurrency_id": TURN}  # arguments of such an event
MOST_WAITING: Final = 64  # events of one page: a quarter of what may wait


class OrderedQueue(Queue):
    refused: Callable[[str], str]  # what a page with more is told, in its browser's languages

    async def push(self, body: Any, request: Any, *who: Any, **named: Any) -> Any:
        waiting = (
            each for own in self.event_queue_per_concurrency_id.values() for each in own.queue
        )
        if sum(each.session_hash == body.session_hash for each in waiting) >= MOST_WAITING:
            return False, self.refused(request.headers.get("accept-language", "")), "error"
        return await super().push(body, request, *who, **named)

    def get_events(self) -> Any:
        """The next to run: of a page whose press runs in its turn, none that waits for one."""
        turns = self.event_queue_per_concurrency_id.get(TURN)
        if turns is None:
            return super().get_events()
        running = (event for job in self.active_jobs for event in job or ())
        busy = {event.session_hash for event in running if event.concurrency_id == TURN}
        waiting = turns.queue
        turns.queue = [event for event in waiting if event.session_hash not in busy]
        found = super().get_events()
        turns.queue = [event for event in waiting if not found or event not in found[0]]
        return found
