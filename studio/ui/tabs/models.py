"""The models of the engine: what each can do, loaded and unloaded, one exchanged for another.

On a server with guests it is for looking only. Knows names, not files.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from html import escape
from typing import Any, Final, TypeAlias

import gradio as gr

from engine import Capabilities, InvalidSetting, Message, TimbreError, exchange
from studio.context import Studio
from studio.ui.i18n import both, tell, warning, word
from studio.ui.tabs.voice_form import QUIET, on_show

Update: TypeAlias = Any  # what Gradio takes for a component

TICK: Final = 0.5  # seconds between looks at something long
ABLE: Final = {
    "preset": "preset voices",
    "clone": "clones",
    "design": "designs",
    "instruct": "follows instructions",
}
FOREIGN: Final = "Only who runs this server can change its models."

# A button of a row says what it does, and with which model.
PRESSES = """
element.addEventListener('click', (event) => {
  const { dataset } = event.target.closest('button[data-model]') ?? {};
  if (dataset) trigger('switch', { do: dataset.do, model: dataset.model });
});
"""


class ModelsTab:
    """What the controls do."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def table(self) -> str:
        """A row for each model."""
        loaded = self._studio.engine.stats().talkers
        models = self._studio.engine.capabilities().items()
        rows = "".join(self._row(name, own, name in loaded) for name, own in models)
        return f'<ul class="timbre-models">{rows}</ul>'

    def places(self) -> Update:
        """Which model may be exchanged: the first, unless somebody says otherwise."""
        names = list(self._studio.engine.capabilities())
        return gr.update(choices=names, value=names[0], visible=len(names) > 1)

    async def change(self, event: gr.EventData) -> AsyncIterator[tuple[str, str]]:
        """A button of a row: the status while it goes on, and the table afterwards."""
        name, engine = str(event._data.get("model")), self._studio.engine
        loading = event._data.get("do") == "load"
        work = engine.load if loading else engine.unload
        doing, done = Message("Loading {name}", name=name), "is loaded."
        if not loading:
            doing, done = Message("Unloading {name}", name=name), "is unloaded."

        def run(note: Callable[[Message], None]) -> str:
            note(doing)
            work(name)
            return f"**{name}** {word(done)}"

        async for said in self._told(run):
            yield said, self.table()

    async def exchange(self, model: str, out: str | None) -> AsyncIterator[tuple[str, str, Update]]:
        """Another model instead of one that is here; `out` None where the page knows none yet."""

        def run(note: Callable[[Message], None]) -> str:
            if not model.strip():
                raise InvalidSetting("Type a folder or a hub id first.")
            engine = self._studio.engine
            name = exchange(engine, out or next(iter(engine.capabilities())), model, note)
            return f"**{name}** {word('is loaded.')}"

        async for said in self._told(run):
            yield said, self.table(), self.places()

    async def _told(self, run: Callable[[Callable[[Message], None]], str]) -> AsyncIterator[str]:
        """What is going on and for how long, then how it ended."""
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

    def _row(self, name: str, own: Capabilities, loaded: bool) -> str:
        able = " · ".join(both(text) for field, text in ABLE.items() if getattr(own, field))
        state = both("Loaded" if loaded else "Not loaded")
        what, text = ("unload", "Unload") if loaded else ("load", "Load")
        button = (
            f'<button type="button" data-do="{what}" data-model="{escape(name)}">'
            f"{both(text)}</button>"
        )
        return (
            f"<li><div><strong>{escape(name)}</strong><small>{able}</small></div>"
            f"<span>{state}</span>{'' if self._studio.guests else button}</li>"
        )


def build(studio: Studio) -> None:
    """The list, and for whoever runs the server the way to another model."""
    tab = ModelsTab(studio)
    gr.Markdown(word("### Models"))
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
        out = gr.Dropdown(label=word("In place of"), visible=False, scale=2, min_width=240)
        go = gr.Button(word("Add"), scale=0, min_width=110, elem_classes="timbre-end")
    status = gr.Markdown(min_height=24, elem_id="models-status")
    on_show(tab.places, [out])
    table.switch(tab.change, None, [status, table], **QUIET)
    gr.on(
        [go.click, model.submit],
        tab.exchange,
        [model, out],
        [status, table, out],
        trigger_mode="once",
        **QUIET,
    )
