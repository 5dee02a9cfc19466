"""A conversation of OpenAI's Realtime: messages in their order, and what of them is to be spoken.

A response speaks what users and assistants wrote since the last one. Knows no socket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from engine import speaking_seconds
from studio.api.bodies.realtime_events import Item
from studio.api.errors import ApiError

MOST: Final = 256  # messages; the oldest go first
LONGEST: Final = 400_000  # characters of them all
ROOT: Final = "root"  # before the first one


@dataclass(eq=False)
class Message:
    """One message; while it is spoken its response changes it."""

    id: str
    role: Literal["user", "assistant", "system"]
    text: str
    pending: bool = False  # it was not spoken yet
    spoken: bool = False  # it is what a response said
    seconds: float = 0.0  # of its speech
    status: Literal["in_progress", "completed", "incomplete"] = "completed"

    def fields(self) -> dict[str, Any]:
        if self.spoken:
            content = [{"type": "output_audio", "transcript": self.text}]
        else:
            kind = "output_text" if self.role == "assistant" else "input_text"
            content = [{"type": kind, "text": self.text}]
        return {
            "id": self.id,
            "object": "realtime.item",
            "type": "message",
            "status": self.status,
            "role": self.role,
            "content": content,
        }


class Conversation:
    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._lost = False  # one went that was to be spoken

    def add(self, id: str, item: Item, after: str | None = None) -> str | None:
        """A message behind `after`, or behind all. Returns the id before it. Raises ApiError."""
        if any(each.id == id for each in self._messages):
            raise ApiError(400, f"There is an item '{id}' already.", "item_exists", "item.id")
        if len(item.text) > LONGEST // 4:
            raise ApiError(413, "This text is too long. Send it in parts.", "too_large", "item")
        if after is not None and after != ROOT:
            self._place(after, "previous_item_id")  # before others go for it
        self._make_room(len(item.text))
        place = len(self._messages)
        if after == ROOT:
            place = 0
        elif after is not None:
            place = self._place(after, "previous_item_id") + 1
        pending = item.role != "system"
        self._messages.insert(place, Message(id, item.role, item.text, pending=pending))
        return self._messages[place - 1].id if place else None

    def last(self) -> str | None:
        return self._messages[-1].id if self._messages else None

    def append(self, message: Message) -> None:
        self._make_room(len(message.text))
        self._messages.append(message)

    def get(self, id: str) -> Message:
        """Raises ApiError."""
        return self._messages[self._place(id, "item_id")]

    def delete(self, id: str) -> None:
        del self._messages[self._place(id, "item_id")]

    def truncate(self, id: str, seconds: float) -> None:
        """Keep what was heard of a message until then. Raises ApiError."""
        message = self.get(id)
        if not message.spoken:
            raise ApiError(400, "Only speech is truncated.", "invalid_value", "item_id")
        if seconds > message.seconds + 0.001:
            problem = f"This item has {message.seconds * 1000:.0f} ms of audio."
            raise ApiError(400, problem, "invalid_value", "audio_end_ms")
        whole = message.seconds
        if message.status != "completed":  # the rest of it was not spoken
            whole = max(whole, speaking_seconds(message.text))
        share = min(1.0, seconds / whole) if whole else 0.0
        message.text = message.text[: round(len(message.text) * share)]
        message.seconds = min(seconds, message.seconds)

    def waiting(self) -> str:
        """What is to be spoken next. Raises ApiError, once, where some of it is gone: no half of a
        text is spoken alone."""
        if self._lost:
            self.take()
            problem = (
                f"Before a response at most {MOST} messages and {LONGEST:,} characters are kept, "
                "and more were written. Write them again in parts."
            )
            raise ApiError(413, problem, "too_large", "item")
        return "\n".join(each.text for each in self._messages if each.pending and each.text)

    def take(self) -> None:
        """Take the waiting messages, which are spoken now."""
        self._lost = False
        for each in self._messages:
            each.pending = False

    def _place(self, id: str, param: str) -> int:
        for place, each in enumerate(self._messages):
            if each.id == id:
                return place
        raise ApiError(404, f"There is no item '{id[:128]}'.", "item_not_found", param)

    def _make_room(self, letters: int) -> None:
        """Make room for one more message of this length; the oldest go."""
        taken = sum(len(message.text) for message in self._messages)
        while self._messages and (len(self._messages) >= MOST or taken + letters > LONGEST):
            oldest = self._messages.pop(0)
            self._lost |= oldest.pending
            taken -= len(oldest.text)
