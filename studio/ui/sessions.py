"""What a new visitor costs. Gradio describes every component anew for each session, at its first
event and on the server's only loop, in which nobody's sound goes on meanwhile. The components do
not change, so one description serves all. Knows no tabs.
"""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.blocks import BlocksConfig
from gradio.utils import LRUCache


class Recent(LRUCache[Any, Any]):
    """What was used last stays: a stream that is being told is used with every message."""

    def __getitem__(self, key: Any) -> Any:
        self.move_to_end(key)
        return super().__getitem__(key)


def remember(blocks: gr.Blocks, visits: int) -> None:
    """Bound what Gradio keeps of visits that never said goodbye, and of what they did not take.

    Of its own it keeps 10,000 and the unread sound of 2,000, in the order in which they came.
    """
    blocks.state_session_capacity = visits
    blocks._queue.pending_messages_per_session = Recent(visits)


class _Description(dict[str, Any]):
    """A component for one session: shared with all others until its properties are asked for."""

    __slots__ = ("_own",)

    def __getitem__(self, key: str) -> Any:
        if key == "props" and not hasattr(self, "_own"):
            self._own = True
            self["props"] = {**super().__getitem__("props")}
        return super().__getitem__(key)


class _Described(BlocksConfig):
    """A page's components; a session's copy has the same descriptions."""

    def __copy__(self) -> BlocksConfig:
        own: Any = super().__copy__()  # type: ignore[no-untyped-call]
        own.config_for_block = self.config_for_block
        return own  # type: ignore[no-any-return]


def share_session_state(blocks: gr.Blocks) -> None:
    """To be called when the page is laid out; sessions get copies, which are theirs to change."""
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
