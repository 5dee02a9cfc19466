"""Reduces the cost of new sessions. Gradio serializes every component for each session, at its
first event and on the server's event loop, which pauses all streams. The components do not change,
so one description is shared by all sessions.
"""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.blocks import BlocksConfig
from gradio.utils import LRUCache


class Recent(LRUCache[Any, Any]):
    """An LRU cache in which reading counts as use, so active streams stay."""

    def __getitem__(self, key: Any) -> Any:
        self.move_to_end(key)
        return super().__getitem__(key)


def remember(blocks: gr.Blocks, visits: int) -> None:
    """Limit the abandoned sessions and unread streams that Gradio keeps.

    By default it keeps 10,000 sessions and 2,000 streams, the oldest dropped first.
    """
    blocks.state_session_capacity = visits
    blocks._queue.pending_messages_per_session = Recent(visits)


class _Description(dict[str, Any]):
    """A component's description, shared by all sessions until its properties are read."""

    __slots__ = ("_own",)

    def __getitem__(self, key: str) -> Any:
        if key == "props" and not hasattr(self, "_own"):
            self._own = True
            self["props"] = {**super().__getitem__("props")}
        return super().__getitem__(key)


class _Described(BlocksConfig):
    """A page's components; copies for sessions share the descriptions."""

    def __copy__(self) -> BlocksConfig:
        copied: Any = super().__copy__()  # type: ignore[no-untyped-call]
        copied.config_for_block = self.config_for_block
        return copied  # type: ignore[no-any-return]


def share_session_state(blocks: gr.Blocks) -> None:
    """Called with the last component there, before Gradio describes them all for the first time;
    each session gets its own copy."""
    config: Any = blocks.default_config
    plain = config.config_for_block
    described: dict[int, dict[str, Any]] = {}

    def describe(number: int, rendered: list[int], block: Any, renderable: Any = None) -> Any:
        if renderable is not None or config.blocks.get(number) is not block:
            return plain(number, rendered, block, renderable)
        if number not in described:
            described[number] = plain(number, rendered, block)
        return _Description(described[number])

    config.__class__ = _Described
    config.config_for_block = describe
