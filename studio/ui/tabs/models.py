"""The models of the engine: capabilities, loading, unloading, adding.

Read-only on a server with guests. Knows names, not files.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from html import escape
from typing import Any, Final, TypeAlias

import gradio as gr

from engine import (
    Capabilities,
    InvalidSetting,
    Message,
    OtherCodec,
    SpeechEngine,
    TimbreError,
    add_model,
    exchange,
)
from studio.context import Studio
from studio.ui.drafts import keep_draft
from studio.ui.gradio_compat.events import detail
from studio.ui.gradio_compat.scripts import on_load
from studio.ui.i18n import both, tell, warning, word
from studio.ui.tabs.voice_form import QUIET, on_show

Update: TypeAlias = Any  # what Gradio takes for a component

TICK: Final = 0.5  # seconds between progress updates
ABLE: Final = {
    "preset": "preset voices",
    "clone": "clones",
    "design": "designs",
    "instruct": "follows instructions",
}
OFFER: Final = "Press Replace to use it in place of the one that is here."
FOREIGN: Final = "Only who runs this server can change its models."

# A button's data attributes have its action and its model.
PRESSES = on_load(
    "static/buttons.js", ("switch",), selector="button[data-model]", named={}, rest="switch"
)


class ModelsTab:
    """Event handlers."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._stopped: set[str] = set()  # sessions that have pressed Stop

    def table(self) -> str:
        """A row for each model."""
        loaded = self._studio.engine.stats().talkers
        models = self._studio.engine.capabilities().items()
        rows = "".join(self._row(name, model, name in loaded) for name, model in models)
        return f'<ul class="timbre-models">{rows}</ul>'

    async def change(self, event: gr.EventData) -> AsyncIterator[tuple[str, str]]:
        """Handle a button of a row: progress, then the updated table."""
        name, engine = str(detail(event).get("model")), self._studio.engine
        loading = detail(event).get("do") == "load"
        work = engine.load if loading else engine.unload
        doing, done = Message("Loading {name}", name=name), "is loaded."
        if not loading:
            doing, done = Message("Unloading {name}", name=name), "is unloaded."

        def run(note: Callable[[Message], None]) -> str:
            note(doing)
            work(name)
            return f"**{name}** {word(done)}"

        async for status in self._progress(run):
            yield status, await asyncio.to_thread(self.table)

    async def add(
        self, model: str, page: gr.Request | None = None
    ) -> AsyncIterator[tuple[str, str, Update]]:
        """Add a model beside the loaded ones, or offer to replace the only one."""
        other: list[OtherCodec] = []

        def run(engine: SpeechEngine, note: Callable[[Message], None]) -> str:
            try:
                return add_model(engine, model, note)
            except OtherCodec as error:
                other.append(error)
                raise

        async for status in self._bring(model, page, run):
            offered = bool(other) and len(self._studio.engine.capabilities()) == 1
            status = f"{status} {word(OFFER)}" if offered else status
            yield status, await asyncio.to_thread(self.table), gr.update(visible=offered)

    async def replace(
        self, model: str, page: gr.Request | None = None
    ) -> AsyncIterator[tuple[str, str, Update]]:
        """Replace the only loaded model."""

        def run(engine: SpeechEngine, note: Callable[[Message], None]) -> str:
            return exchange(engine, next(iter(engine.capabilities())), model, note)

        async for status in self._bring(model, page, run):
            yield status, await asyncio.to_thread(self.table), gr.update(visible=False)

    async def _bring(
        self,
        model: str,
        page: gr.Request | None,
        bring: Callable[[SpeechEngine, Callable[[Message], None]], str],
    ) -> AsyncIterator[str]:
        """Progress while a model is downloaded and loaded, until stopped."""
        mark = _mark(page)
        self._stopped.discard(mark)

        def run(note: Callable[[Message], None]) -> str:
            if not model.strip():
                raise InvalidSetting("Type a folder or a hub id first.")

            def report(message: Message) -> None:
                if mark in self._stopped:
                    raise InvalidSetting("Stopped. Nothing was added.")
                note(message)

            return f"**{bring(self._studio.engine, report)}** {word('is loaded.')}"

        async for status in self._progress(run):
            yield status

    def stop(self, page: gr.Request | None = None) -> None:
        """Cancel a download."""
        self._stopped.add(_mark(page))

    async def _progress(
        self, run: Callable[[Callable[[Message], None]], str]
    ) -> AsyncIterator[str]:
        """Progress with elapsed time, then the result."""
        if self._studio.guests:
            yield f"⚠️ {word(FOREIGN)}"
            return
        began, notes = time.monotonic(), [Message("Waiting")]
        work = asyncio.ensure_future(asyncio.to_thread(run, notes.append))
        while not work.done():
            seconds = time.monotonic() - began
            yield tell(Message("{doing} … {seconds:.0f} s", doing=notes[-1], seconds=seconds))
            await asyncio.wait([work], timeout=TICK)
        try:
            yield work.result()
        except TimbreError as error:
            yield warning(error)

    def _row(self, name: str, capabilities: Capabilities, loaded: bool) -> str:
        able = " · ".join(
            both(text) for field, text in ABLE.items() if getattr(capabilities, field)
        )
        state = both("Loaded" if loaded else "Not loaded")
        # Each has a place of its own: a second press of one never meets the other.
        buttons = _button("load", "Load", name, not loaded) + _button(
            "unload", "Unload", name, loaded
        )
        return (
            f"<li><div><strong>{escape(name)}</strong><small>{able}</small></div>"
            f"<span>{state}</span>{'' if self._studio.guests else buttons}</li>"
        )


def _button(what: str, text: str, model: str, shown: bool) -> str:
    return (
        f'<button type="button" data-do="{what}" data-model="{escape(model)}"'
        f"{'' if shown else ' disabled'}>{both(text)}</button>"
    )


def build(studio: Studio) -> None:
    """Build the list and, for the operator, the form that adds a model."""
    tab = ModelsTab(studio)
    gr.Markdown(word("## Models"))
    table = gr.HTML(tab.table(), js_on_load=PRESSES, elem_classes="timbre-plain", padding=False)
    on_show(tab.table, [table])
    if studio.guests:
        return
    with gr.Row():
        model = gr.Textbox(
            "",
            label=word("Add model"),
            placeholder=word("A folder, or a hub id like Qwen/Qwen3-TTS-12Hz-0.6B-Base"),
            max_lines=1,
            scale=3,
            min_width=280,
        )
        go = gr.Button(word("Add"), scale=0, min_width=110, elem_classes="timbre-end")
        instead = gr.Button(
            word("Replace"), scale=0, min_width=110, elem_classes="timbre-end", visible=False
        )
        stop = gr.Button(word("Stop"), scale=0, min_width=90, elem_classes="timbre-end")
    status = gr.Markdown(min_height=24, elem_id="models-status")
    keep_draft("engine", [model])
    table.switch(tab.change, None, [status, table], **QUIET)
    gr.on(
        [go.click, model.submit],
        tab.add,
        model,
        [status, table, instead],
        trigger_mode="once",
        **QUIET,
    )
    instead.click(tab.replace, model, [status, table, instead], trigger_mode="once", **QUIET)
    stop.click(tab.stop, None, None, **QUIET)


def _mark(page: gr.Request | None) -> str:
    return (page.session_hash or "") if page else ""
