"""The studio's shell: the header, the tabs in order, and the endpoints for programs.

A tab is a module of studio/ui/tabs with `build(studio)`. A tab whose kind of checkpoint is missing
shows what to load instead.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import gradio as gr

from engine import Capabilities, Message
from studio.context import Studio
from studio.ui.drafts import browser_id
from studio.ui.endpoints import Endpoints
from studio.ui.gradio_compat.events import api
from studio.ui.gradio_compat.pages import run_loads_at_once, without_application
from studio.ui.gradio_compat.queue_pace import pace
from studio.ui.gradio_compat.sessions import share_session_state
from studio.ui.i18n import both, told_in, word
from studio.ui.shortcuts import HEAD
from studio.ui.tabs import check, engine_page, library, speak
from studio.ui.tabs.models import ModelsTab
from studio.ui.tabs.voice_form import QUIET, on_show
from studio.ui.voice_list import favourite_voices

QUEUE = 256
NOT_YET = Message("What was pressed in this page before is not done yet. Try again in a moment.")
KEEP = 3600  # seconds for which files stay in Gradio's cache

Able: TypeAlias = Callable[[Capabilities], bool]


@dataclass(frozen=True)
class Entry:
    """A tab. `missing`: shown if no checkpoint has the ability."""

    name: str
    label: str
    able: Able
    missing: str = ""
    get: str = ""  # the smallest published model with the ability


def _any(capabilities: Capabilities) -> bool:
    return True


_PUBLISHED = "Qwen/Qwen3-TTS-12Hz-"
ENTRIES = (
    Entry(
        "clone",
        "Clone",
        lambda capabilities: capabilities.clone,
        "Cloning needs a Base model.",
        f"{_PUBLISHED}0.6B-Base",
    ),
    Entry(
        "design",
        "Design",
        lambda capabilities: capabilities.design,
        "Designing a voice needs a VoiceDesign model.",
        f"{_PUBLISHED}1.7B-VoiceDesign",
    ),
    Entry(
        "blend",
        "Blend",
        lambda capabilities: capabilities.preset or capabilities.clone,
        "Blending needs a model with preset voices, or one that clones.",
        f"{_PUBLISHED}0.6B-CustomVoice",
    ),
    Entry("script", "Script", _any),
)


def build_shell(studio: Studio) -> Any:
    """Build the page."""
    with (
        without_application(),
        gr.Blocks(title="Timbre", analytics_enabled=False, delete_cache=(KEEP, KEEP)) as blocks,
    ):
        _endpoints(studio)  # first, so that they get their names
        gr.HTML(HEAD, js_on_load="", elem_classes="timbre-plain")
        owner, favourites = browser_id(), favourite_voices()
        with gr.Tabs() as tabs:
            with gr.Tab(word("Speak"), id="speak"):
                speak.build(studio, owner, favourites)
            for entry in present():
                with gr.Tab(word(entry.label), id=entry.name):
                    _fill(entry, studio)
            with gr.Tab(word("Library"), id="library"):
                library.build(studio, owner, favourites)
            with gr.Tab(word("Engine"), id="engine"):
                timer = engine_page.build(studio)
        looking = _looking(len(tabs.children) - 1)
        quick: dict[str, Any] = {"queue": False, "show_progress": "hidden"}
        tabs.select(looking, None, timer, api_visibility="private", **quick)
        share_session_state(blocks)
    run_loads_at_once(blocks)
    blocks.max_threads = QUEUE
    blocks.queue(max_size=QUEUE, default_concurrency_limit=None)
    pace(blocks, lambda languages: told_in(languages, NOT_YET))
    return blocks


def present() -> Iterable[Entry]:
    """The tabs whose modules exist."""
    return (
        entry for entry in ENTRIES if importlib.util.find_spec(f"{__package__}.tabs.{entry.name}")
    )


def reason(entry: Entry, capabilities: Iterable[Capabilities]) -> str:
    """Why a tab cannot be used; empty if it can."""
    return "" if any(map(entry.able, capabilities)) else entry.missing


def _fill(entry: Entry, studio: Studio) -> None:
    """The tab, or a note about the missing model; models can be exchanged at run time."""

    def shown() -> tuple[Any, Any]:
        refused = bool(reason(entry, studio.engine.capabilities().values()))
        return gr.update(visible=refused), gr.update(visible=not refused)

    note, tab = shown()
    with gr.Column(visible=note["visible"]) as instead:
        gr.HTML(_note(entry), padding=False)
        got = _offer(entry, studio)
    with gr.Column(visible=tab["visible"]) as filled:
        importlib.import_module(f"{__package__}.tabs.{entry.name}").build(studio)
    on_show(shown, [instead, filled])
    for event in got:
        event.then(shown, None, [instead, filled], **QUIET)


def _offer(entry: Entry, studio: Studio) -> Sequence[Any]:
    """A button that adds the model a tab needs, if models may be changed; its events."""
    if not entry.get or studio.guests:
        return ()
    models = ModelsTab(studio)
    with gr.Row():
        get = gr.Button(f"{word('Get this model')}: {entry.get}", variant="primary")
        instead = gr.Button(word("Replace"), scale=0, min_width=110, visible=False)
        stop = gr.Button(word("Stop"), scale=0, min_width=90)
    status = gr.Markdown(min_height=24)
    stop.click(models.stop, None, None, **QUIET)

    async def add(page: gr.Request) -> AsyncIterator[tuple[str, Any]]:
        async for status, _, offered in models.add(entry.get, page):
            yield status, offered

    async def replace(page: gr.Request) -> AsyncIterator[tuple[str, Any]]:
        async for status, _, offered in models.replace(entry.get, page):
            yield status, offered

    return [
        button.click(bring, None, [status, instead], trigger_mode="once", **QUIET)
        for button, bring in ((get, add), (instead, replace))
    ]


def _note(entry: Entry) -> str:
    header = f"<strong>{both('Needs another model')}</strong><p>{both(entry.missing)}</p>"
    return f'<div class="timbre-empty">{header}</div>'


def _looking(last: int) -> Callable[[gr.SelectData], gr.Timer]:
    """Run the timer only while the last tab, the Engine page, is open."""

    def looking(event: gr.SelectData) -> gr.Timer:
        return gr.Timer(active=event.index == last)

    return looking


def _endpoints(studio: Studio) -> None:
    """Add `/stream`, `/voices` and `/check`; `/speak` is with the fields that it shares."""
    endpoints = Endpoints(studio)
    api(endpoints.stream, api_name="stream", concurrency_limit=None)
    api(endpoints.voices, api_name="voices", concurrency_limit=None)
    check.endpoint()
