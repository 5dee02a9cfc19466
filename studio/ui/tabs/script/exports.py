"""The Export section of the Script tab: what is exported, how far it is, and the files.

The server exports (studio/scripts/export/export_jobs.py); the section shows the open script's
export, also after a reload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import gradio as gr

from engine import Message, RequestError
from studio.context import LARGEST_UPLOAD, Studio
from studio.scripts.books import Book
from studio.scripts.export.audio_files import BITRATES, KINDS, RATES
from studio.scripts.export.export_jobs import ExportState
from studio.scripts.export.loudness import WANTED
from studio.scripts.export.script_files import ExportOptions, Step, save_project
from studio.ui.gradio_compat.pages import outbox
from studio.ui.i18n import both, tell, warn, word
from studio.ui.tabs.script.handlers import BARE, warned
from studio.ui.tabs.voice_form import QUIET, Update

TARGETS = (-16.0, WANTED, -23.0)  # LUFS: podcasts, spoken word in mono, broadcast in Europe
KIND, BOOK = "mp3", "m4b"  # of a script, and of a book
LOOK = 0.5  # seconds between looks at a running export
LARGE = (
    "The file is whole, but larger than the {most} MB that can be uploaded here. To upload it "
    "again, split the script into parts and save each."
)
STEPS: Mapping[Step, str] = {
    "loudness": "Measuring loudness",
    "subtitles": "Timing subtitles",
    "audio": "Writing audio",
}
STALE = "The script has changed since this export."
LOST = "The server was restarted, which ended the export. Press Export again."


class ExportView(NamedTuple):
    """The components that show an export."""

    press: Update
    cancel: Update
    progress: Update
    files: Update
    timer: Update


class Saved(NamedTuple):
    """The project file that a page has saved last, and of which script."""

    number: str = ""
    path: str = ""


class ExportSection:
    """The event handlers. `folder`: from which files are served."""

    def __init__(self, studio: Studio, folder: Path) -> None:
        self._store, self._jobs = studio.scripts, studio.exports
        self._uploads, self._folder = studio.uploads, folder

    # A press is answered by `see`, which shows the script that is open then.

    def start(self, number: str, *values: Any) -> tuple[str, Saved]:
        options = ExportOptions(*values)
        options = replace(
            options, loudness=options.loudness or None, bitrate=options.bitrate or None
        )
        with warned():
            self._jobs.start(number, options, self._folder)
        return token_hex(4), Saved()

    def cancel(self, number: str) -> str:
        self._jobs.cancel(number)
        return token_hex(4)

    def save_project(self, number: str) -> tuple[str, Update]:
        """Make the project file for download."""
        saved = gr.skip()
        with warned():
            path = save_project(self._store, number, self._folder)
            most = self._uploads.most if self._uploads else LARGEST_UPLOAD
            if path.stat().st_size > most:
                warn(Message(LARGE, most=most >> 20))
            saved = Saved(number, str(path))
        return token_hex(4), saved

    def _view(self, number: str, state: ExportState | None) -> ExportView:
        running = state is not None and state.running
        files = [str(path) for path in state.files] if state else []
        return ExportView(
            gr.update(interactive=not running),
            gr.update(visible=running),
            gr.update(value=self._text(number, state), visible=state is not None),
            gr.update(value=files, visible=bool(files)),
            gr.Timer(active=running),
        )

    def see(self, number: str, before: str, asked: str, saved: Saved) -> tuple[Update, ...]:
        """The open script's export. Where it is another script than the one before: the section
        opened where there are lines, and the format of a book for a book.

        `asked`: the last press; `before`: the script and the press that were shown.
        """
        now, state = f"{number} {asked}", self._jobs.state(number)
        if now == before:
            return *self._look(number, state), gr.skip(), gr.skip(), now
        view = self._view(number, state)
        if saved.number == number and saved.path and not before.endswith(f" {asked}"):
            view = view._replace(files=gr.update(value=[saved.path], visible=True))
        if before.startswith(f"{number} "):
            return *view, gr.skip(), gr.skip(), now
        section = gr.update(open=True) if number else gr.skip()
        kind = gr.update(value=BOOK if self._is_book(number) else KIND) if number else gr.skip()
        return *view, section, kind, now

    def _is_book(self, number: str) -> bool:
        """Whether it was read from one, with its title or its author."""
        try:
            return self._store.look(number).project.book != Book()
        except RequestError:  # deleted meanwhile
            return False

    def _look(self, number: str, state: ExportState | None) -> ExportView:
        """While it runs: nothing that lasts is sent again. An unknown one ended with its server."""
        shown = self._view(number, state)
        if state is None:
            return shown._replace(progress=gr.update(value=f"<p>{both(LOST)}</p>", visible=True))
        if not state.running:
            return shown
        skip = gr.skip()
        return ExportView(skip, skip, shown.progress, skip, skip)

    def _text(self, number: str, state: ExportState | None) -> str:
        if state is None:
            return ""
        if state.running:
            return _running(state)
        if state.phase == "failed":
            return f'<p role="alert">⚠️ {escape(tell(state.error))}</p>'
        if state.phase == "cancelled":
            return f"<p>{both('The export was cancelled.')}</p>"
        try:
            stale = self._jobs.is_stale(number, state)
        except RequestError:  # deleted meanwhile
            stale = False
        return f"<p>{both(STALE if stale else 'The export is done.')}</p>"


def export_section(studio: Studio, opened: gr.Textbox) -> None:
    """Build the section; `opened` holds the number of the script."""
    with gr.Accordion(word("Export"), open=False, elem_id="script-export") as section:
        fields = _export_fields()
        with gr.Row():
            press = gr.Button(word("Export"))
            cancel = gr.Button(word("Cancel the export"), visible=False)
            project = gr.Button(word("Save project (.zip)"))
        progress = gr.HTML("", visible=False, elem_classes="timbre-export", padding=False)
        files = gr.File(
            label=word("Files"), file_count="multiple", interactive=False, visible=False
        )
        timer = gr.Timer(LOOK, active=False)
        asked, seen = (gr.Textbox("", elem_classes="timbre-unseen") for _ in range(2))
        saved = gr.State(Saved())
    handlers = ExportSection(studio, outbox(files))
    press.click(handlers.start, [opened, *fields], [asked, saved], **QUIET)
    cancel.click(handlers.cancel, opened, asked, **BARE)
    making = {**QUIET, "show_progress": "full", "show_progress_on": files}
    project.click(handlers.save_project, opened, [asked, saved], **making)
    # One event: no look of an earlier script is the last one.
    looks, looked = [timer.tick, opened.change, asked.change], [opened, seen, asked, saved]
    outputs = [press, cancel, progress, files, timer, section, fields[0], seen]
    gr.on(looks, handlers.see, looked, outputs, trigger_mode="always_last", **BARE)


def _running(state: ExportState) -> str:
    if state.phase == "waiting":
        return f'<p role="status">{both("Waiting for another export …")}</p>'
    number, count = state.steps.index(state.step) + 1, len(state.steps)
    place = both("Step {number} of {count}", number=number, count=count)
    label = escape(tell("Exported"))
    return (
        f"<p>{place} · {both(STEPS[state.step])} · {int(100 * state.share)} %</p>"
        f'<progress max="1" value="{state.done:.3f}" aria-label="{label}"></progress>'
    )


def _export_fields() -> list[Any]:
    """In the order of `ExportOptions`."""
    with gr.Row():
        kind = gr.Radio(list(KINDS), value=KIND, label=word("Format"), min_width=240)
        by_line = gr.Radio(
            [(word("One file"), False), (word("One file per line (.zip)"), True)],
            value=False,
            label=word("Files"),
            min_width=240,
        )
    with gr.Row():
        texts = gr.Checkbox(True, label=word("Subtitles and chapters"), min_width=180)
        loudness = gr.Dropdown(
            [*((f"{each:.0f} LUFS", each) for each in TARGETS), (word("As spoken"), 0.0)],
            value=WANTED,
            label=word("Loudness target"),
            min_width=180,
        )
        partial = gr.Checkbox(False, label=word("Skip unrendered lines"), min_width=180)
    with gr.Row():
        rates: list[Any] = [(f"{each / 1000:g} kHz", each) for each in RATES]
        rate = gr.Dropdown(rates, value=RATES[0], label=word("Sample rate"), min_width=140)
        kbits: list[Any] = [
            (word("Default"), 0),
            *((f"{each} kbit/s", each) for each in BITRATES),
        ]
        bitrate = gr.Dropdown(kbits, value=0, label=word("Bit rate of MP3, M4B"), min_width=140)
        artist = gr.Textbox("", label=word("Artist"), max_lines=1, min_width=180)
    return [kind, by_line, texts, loudness, partial, rate, bitrate, artist]
