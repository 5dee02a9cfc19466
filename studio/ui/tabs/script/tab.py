"""The Script tab: dialogue or long text, rendered as one batch of lines and played in order.

Holds the layout and the events; the handlers are in `ScriptTab`. All changes of a press return in
one response, so that text, voices and lines never disagree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import gradio as gr

from engine import SOUND_FORMATS
from studio.context import Studio
from studio.imports.archives import DAMAGED
from studio.imports.formats import SUFFIXES
from studio.imports.projects.project_uploads import (
    BROKEN,
    BUSY,
    LENGTHLESS,
    NO_SPACE,
    PATH,
    TOO_LARGE,
    TOO_SLOW,
    ProjectUploads,
)
from studio.scripts.music.cue import PLAIN
from studio.scripts.store import PROJECT_SUFFIX, ScriptStore
from studio.ui.gradio_compat.events import Trigger
from studio.ui.gradio_compat.scripts import on_event, on_load
from studio.ui.i18n import both, word
from studio.ui.live_player import live_player, plays, translated
from studio.ui.tabs.script.endpoint import ScriptEndpoint
from studio.ui.tabs.script.exports import export_section
from studio.ui.tabs.script.handlers import BARE, LATEST, TICK, UPLOAD, ScriptTab
from studio.ui.tabs.script.music import music_section
from studio.ui.tabs.script.options import AsRead, ReadingFields, moments_of, reading_fields
from studio.ui.tabs.script.view import View
from studio.ui.tabs.script.view import board as empty_board
from studio.ui.tabs.script.words import words_shown
from studio.ui.tabs.voice_form import ORDERED, QUIET, on_show

HINT = (
    "Speaker: line. An empty line between paragraphs, # before a chapter's title, "
    "[pause 1s] for a silence, [whispers] for how to say it."
)
IMPORT = f"""
<div class="timbre-import">
  <label>
    <input type="file" accept="{PROJECT_SUFFIX}"><span>{both("Import project (.zip)")}</span>
  </label>
  <progress max="1" value="0" hidden></progress>
  <em role="alert"></em>
</div>
"""
BOARD_EVENTS = ("act", "play", "arrive", "back", "changed", "late")
REFUSALS = (BROKEN, DAMAGED, LENGTHLESS, TOO_LARGE, BUSY, NO_SPACE, TOO_SLOW)  # of an upload


class ScriptForm(NamedTuple):
    """Selection and text of a script."""

    picked: gr.Dropdown
    title: gr.Textbox
    new: gr.Button
    delete: gr.Button
    back: gr.Button
    text: gr.Textbox
    upload: gr.UploadButton
    read: gr.Button
    project: gr.HTML


class SpeechArea(NamedTuple):
    """Cast, player and lines."""

    cast: gr.HTML
    speak: gr.Button
    aloud: gr.Checkbox
    player: gr.HTML
    lines: gr.HTML


class Hidden(NamedTuple):
    """Hidden state of the page."""

    opened: gr.Textbox  # the number of the script
    mine: gr.Textbox  # of all that this browser has had
    view: gr.State
    seen: gr.Textbox
    deleted: gr.State
    reading: gr.State  # AsRead
    here: gr.State  # the number again, as the presses before have left it
    timer: gr.Timer


def build(studio: Studio) -> None:
    """Build the tab in the current block."""
    tab = ScriptTab(studio)
    hidden = _hidden()
    page = _script_form(tab, studio.uploads)
    reading = reading_fields(tab.store.languages())
    area = _speech_area(studio)
    shown = [
        hidden.opened, hidden.mine, hidden.view, page.picked, page.title, page.text, hidden.seen,
        area.cast, area.lines, hidden.timer, hidden.reading, hidden.here,
    ]  # fmt: skip
    _scripts(tab, hidden, page, area, reading, [*shown, *reading])
    _changes(tab, hidden, page, area, reading, shown)
    _sound(tab, hidden, page, area, reading, shown)
    typed = [*_typed(hidden, page), *reading]

    def read(moment: Trigger) -> Any:
        return moment(tab.read_typed, typed, shown, trigger_mode="multiple", **ORDERED)

    for changed in music_section(studio, hidden.opened, area.player, area.lines.changed, read):
        changed.then(tab.look, [hidden.opened, hidden.view], [area.lines, hidden.timer], **QUIET)
    export_section(studio, hidden.opened)
    _endpoint(studio)


def _hidden() -> Hidden:
    return Hidden(
        _unseen("script-opened"),
        _unseen("script-mine"),
        gr.State(View()),
        _unseen("script-seen"),
        gr.State(""),
        gr.State(AsRead()),
        gr.State(""),
        gr.Timer(TICK, active=False),
    )


def _unseen(name: str) -> gr.Textbox:
    """An invisible field that stays in the page: Gradio would show a hidden one again with its
    tab."""
    return gr.Textbox("", elem_id=name, elem_classes="timbre-unseen")


def _script_form(tab: ScriptTab, uploads: ProjectUploads | None) -> ScriptForm:
    with gr.Row(elem_classes="timbre-scripts"):
        picked = gr.Dropdown(tab.listed(), value=None, label=word("Script"), scale=3, min_width=200)
        title = gr.Textbox("", label=word("Name"), max_lines=1, scale=3, min_width=160)
        new = gr.Button(word("New"), size="sm", scale=0, min_width=80)
        delete = gr.Button(word("Delete"), size="sm", scale=0, min_width=80)
        copy = gr.Button(word("Copy link"), size="sm", scale=0, min_width=80)
    copy.click(None, js=on_event("static/addresses.js", "copyHere"), **BARE)
    back = gr.Button(word("Restore"), visible=False, size="sm")
    with gr.Group():
        text = gr.Textbox(
            "", label=word("Text"), info=word(HINT), lines=6, max_lines=14,
            elem_id="script-text", autoscroll=False,
            placeholder=word("Write or paste a dialogue or a long text."),
        )  # fmt: skip
    with gr.Row():
        upload = gr.UploadButton(
            str(word(UPLOAD)),
            file_types=[*SUFFIXES, PROJECT_SUFFIX],
            size="sm",
            scale=0,
            min_width=150,
        )
        read = gr.Button(word("Split into lines"), size="sm", scale=0, min_width=150)
        project = gr.HTML(
            IMPORT,
            js_on_load=_imports(uploads.most if uploads else 0),
            elem_classes="timbre-plain",
            padding=False,
            visible=uploads is not None,
        )
    return ScriptForm(picked, title, new, delete, back, text, upload, read, project)


def _imports(most: int) -> str:
    """The script of the import button; the server's English refusals are shown in all languages."""
    value = {"most": most >> 20}
    refusals = {text.format(**value): both(text, **value) for text in REFUSALS}
    return on_load(
        "static/script/project_upload.js", ("received",), path=PATH, broken=BROKEN, words=refusals
    )


def _speech_area(studio: Studio) -> SpeechArea:
    with gr.Row(elem_classes="timbre-stage"):
        with gr.Row(elem_classes="timbre-go-row"):
            speak = gr.Button(word("Speak"), variant="primary", elem_classes="timbre-go", scale=0)
            aloud = gr.Checkbox(
                True,
                label=word("Play while rendering"),
                container=False,
                scale=0,
                min_width=180,
                elem_classes="timbre-aloud",
            )
        cast = _board("cast", elem_id="script-cast")
    player = live_player(studio.live, elem_id="script-player")
    lines = _board("lines", elem_id="script-lines", server_functions=[_words(studio.scripts)])
    return SpeechArea(cast, speak, aloud, player, lines)


def _words(store: ScriptStore) -> Callable[[dict[str, Any]], Any]:
    """When the words of a line are heard; asked by the page for the line that plays."""

    async def words(event: dict[str, Any]) -> list[tuple[int, int, int, int]]:
        number = str(event.get("number"))
        return await asyncio.to_thread(words_shown, store, number, event.get("line"))

    return words


def _board(kind: str, **kwargs: Any) -> gr.HTML:
    return gr.HTML(
        value=empty_board("", []),
        html_template=f'<div class="timbre-board {kind}"></div>',
        apply_default_css=False,
        js_on_load=on_load("static/script/board.js", BOARD_EVENTS, lines=kind == "lines"),
        **kwargs,
    )


def _typed(hidden: Hidden, page: ScriptForm) -> list[Any]:
    """What tells the script of a page, and the text that was typed there."""
    return [hidden.opened, hidden.mine, hidden.view, page.text, hidden.seen]


def _scripts(
    tab: ScriptTab,
    hidden: Hidden,
    page: ScriptForm,
    area: SpeechArea,
    reading: ReadingFields,
    everything: list[Any],
) -> None:
    """Events that open another script."""
    opened, mine = hidden.opened, hidden.mine
    typed = [opened, page.text, hidden.seen, *reading]
    area.lines.arrive(tab.arrive, [*reading], [*everything, area.aloud], **BARE)
    page.picked.input(tab.turn, [page.picked, mine, *typed], everything, **ORDERED)
    page.new.click(tab.new, [mine, *typed], everything, **ORDERED)
    begun = page.upload.upload(tab.begin_reading, None, page.upload, **BARE)
    read = begun.then(tab.receive, [page.upload, mine, *typed], everything, **QUIET)
    read.then(tab.end_reading, None, page.upload, **BARE)
    page.project.received(tab.receive_project, [mine, *typed], everything, **QUIET)
    named = [opened, page.title, mine, hidden.here]
    for left in (page.title.submit, page.title.blur):
        left(tab.rename, named, [page.picked, page.title], **ORDERED)
    gone = [*everything, hidden.deleted, page.back]
    page.delete.click(tab.delete, [opened, mine], gone, **ORDERED)
    restored = [hidden.deleted, mine, *typed]
    page.back.click(tab.restore, restored, [*everything, page.back], **ORDERED)


def _changes(
    tab: ScriptTab,
    hidden: Hidden,
    page: ScriptForm,
    area: SpeechArea,
    reading: ReadingFields,
    shown: list[Any],
) -> None:
    """Events that change a script."""
    typed = _typed(hidden, page)
    there = [page.picked, area.cast, reading.language]
    on_show(tab.offer, there, [hidden.opened, hidden.mine, hidden.view])
    page.read.click(tab.read, [*typed, hidden.reading, *reading], shown, **ORDERED)
    for pressed in (area.lines.act, area.cast.act):
        pressed(tab.act, [*typed, *reading], shown, trigger_mode="multiple", **ORDERED)
    looks = [hidden.opened, hidden.view]
    hidden.timer.tick(tab.look, looks, [area.lines, hidden.timer], **BARE)
    area.lines.late(tab.watch, None, hidden.timer, **BARE)
    moments = [moment for each in reading for moment in moments_of(each)]
    read = [*looks, hidden.reading, *reading]
    saved = [area.lines, hidden.reading]
    gr.on(moments, tab.read_settings, read, saved, **LATEST)  # no change is lost
    area.lines.back(tab.back, typed, shown, **QUIET)


def _sound(
    tab: ScriptTab,
    hidden: Hidden,
    page: ScriptForm,
    area: SpeechArea,
    reading: ReadingFields,
    shown: list[Any],
) -> None:
    """Events that play audio. Typed text and settings are read first."""
    typed = [*_typed(hidden, page), hidden.reading, *reading]
    looks, seen = [hidden.opened, hidden.view], [area.lines, hidden.timer]
    ready = area.speak.click(tab.read, typed, shown, **ORDERED)
    spoken = ready.success(
        translated(tab.speak),
        [hidden.opened, area.aloud],
        area.player,
        trigger_mode="multiple",
        **QUIET,
    )
    spoken.then(tab.look, looks, seen, **QUIET)
    for pressed in (area.lines.play, area.cast.play):
        heard = plays(area.player, [pressed], tab.play, [hidden.opened])
        heard.then(tab.look, looks, seen, **QUIET)
        pressed(tab.watch, None, hidden.timer, **BARE)
    area.player.stop(tab.stopped, None, None, **BARE)


def _endpoint(studio: Studio) -> None:
    """The `/script` endpoint; all inputs but the text are optional."""
    press = gr.Button(visible=False)
    fields = [
        gr.Textbox(label="Text", visible=False),
        gr.Textbox("", label="Voice", visible=False),
        gr.Textbox("", label="Cast", info="Anna = clara, Ben = robert", visible=False),
        gr.Textbox("auto", label="Language", visible=False),
        gr.Number(0, label="Seed", precision=0, visible=False),
        gr.Dropdown(list(SOUND_FORMATS), value="wav", label="Format", visible=False),
        gr.File(label="Music", type="filepath", visible=False),
        gr.Number(PLAIN.level, label="Level of the music in dB", visible=False),
        gr.Number(PLAIN.ducking, label="Music lower under speech by dB", visible=False),
    ]
    press.click(
        ScriptEndpoint(studio).script,
        fields,
        [gr.File(label="Sound", visible=False), gr.File(label="Subtitles", visible=False)],
        api_name="script",
        api_description="Speak a dialogue or a long text, with music under it if there is a file; "
        "returns its sound and its subtitles.",
        concurrency_limit=None,
    )
