"""Events of Gradio: what a press carries, whose request runs, where something is built."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import gradio as gr
from gradio.context import Context, LocalContext
from gradio.events import Dependency, api

__all__ = [
    "Dependency",
    "api",
    "detail",
    "in_turn",
    "on",
    "page_load",
    "request_language",
    "run_after",
    "tabs_around",
]

P = ParamSpec("P")
R = TypeVar("R")
Trigger: TypeAlias = Any  # an event of a component, as `gr.on` takes it


def detail(event: gr.EventData) -> Mapping[str, Any]:
    """The data that a script sent with a custom event. Strangers may send anything."""
    sent = event._data
    return sent if isinstance(sent, Mapping) else {}


def on(
    triggers: Sequence[Trigger], work: Callable[..., Any], inputs: Any, outputs: Any, **how: Any
) -> Dependency:
    """`gr.on`; a custom event of a gr.HTML comes alone, as `gr.on` takes none."""
    if isinstance(triggers[0], partial):
        return triggers[0](work, inputs, outputs, **how)  # type: ignore[no-any-return]
    return gr.on(list(triggers), work, inputs, outputs, **how)  # type: ignore[no-any-return]


def in_turn(work: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Have an event's work on one thing, its first argument, done in the order of the presses.
    Gradio gives each press a thread of its own, and the second of two quick ones may be first."""
    turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @wraps(work)
    async def ordered(*args: P.args, **kwargs: P.kwargs) -> R:
        turn = turns.setdefault(str(args[0]), asyncio.Lock())
        async with turn:  # who waits is let in by turns
            return await asyncio.to_thread(work, *args, **kwargs)

    return ordered


def run_after(event: Dependency, first: Dependency) -> None:
    """Have an event run after another one, too: `first.then` would make a second event of it."""
    page: Any = Context.root_block
    page.fns[event["id"]].trigger_after = first["id"]


def page_load() -> Trigger | None:
    """The event that the page opens; None outside of one."""
    page = Context.root_block
    return None if page is None else page.load


def tabs_around() -> Iterator[gr.Tab]:
    """The tabs around what is built now, the innermost first."""
    around = Context.block
    while around is not None:
        if isinstance(around, gr.Tab):
            yield around
        around = around.parent


def request_language() -> str:
    """`accept-language` of the browser whose event runs; empty where none does."""
    request = LocalContext.request.get(None)
    return request.headers.get("accept-language", "") if request else ""
