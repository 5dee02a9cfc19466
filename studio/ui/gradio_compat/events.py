"""Events of Gradio: what a press carries, whose request runs, where something is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import gradio as gr
from gradio.context import Context, LocalContext
from gradio.events import Dependency, api

__all__ = [
    "Dependency",
    "api",
    "detail",
    "on",
    "page_load",
    "request_language",
    "run_after",
    "tabs_around",
]

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
