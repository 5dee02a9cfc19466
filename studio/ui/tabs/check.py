"""The watermark check of the Library.

Without the optional package it says what to install. Detection is in studio/watermark.
"""

from __future__ import annotations

from html import escape
from typing import Any, Final

import gradio as gr

from engine import InvalidAudio, TimbreError
from studio.context import Studio
from studio.ui.i18n import both, errors_shown, warning, word
from studio.ui.tabs.voice_form import QUIET
from studio.watermark import MISSING, is_installed, judge

HELP: Final = (
    "Drop a sound of up to a minute to look for the inaudible mark that Timbre can leave in what "
    "it speaks. The sound stays on this server."
)
# A minute of sound takes seconds of a core: one check at a time for all visitors.
ONE: Final[dict[str, Any]] = {"concurrency_limit": 1, "concurrency_id": "check"}


def build(studio: Studio) -> None:
    """Build the page in the current Blocks context."""
    if not is_installed():
        gr.HTML(f'<div class="timbre-empty"><p>{both(MISSING)}</p></div>', padding=False)
        return
    gr.Markdown(word(HELP))
    with gr.Row():
        audio = gr.Audio(
            sources=["upload", "microphone"],
            type="filepath",
            label=word("Sound"),
            elem_id="check-sound",
            buttons=[],
        )
        with gr.Column(min_width=320):
            answer = gr.HTML(padding=False, elem_id="check-answer")
            gr.HTML(f"<p>{_own_mark(studio)}</p>", padding=False)
    looks = {**QUIET, **ONE, "show_progress": "minimal"}
    audio.change(answered, audio, answer, **looks)


def answered(path: str | None) -> str:
    """The result for an uploaded sound, as HTML; empty without one."""
    if not path:
        return ""
    try:
        verdict = judge(path)
    except TimbreError as error:
        return f"<p>{escape(warning(error))}</p>"
    advice = f"<p>{both(verdict.advice)}</p>" if verdict.advice else ""
    return f"<p><strong>{both(verdict.said)}</strong></p>{advice}"


def program(path: str | None) -> dict[str, Any]:
    """Whether a sound carries the watermark. `marked` is null if that is unknown."""
    with errors_shown(str):
        if not path:
            raise InvalidAudio("Send a sound.")
        verdict = judge(path)
    text = f"{verdict.said} {verdict.advice}".strip()
    return {"marked": verdict.marked, "score": round(verdict.score, 3), "said": text}


def _own_mark(studio: Studio) -> str:
    if studio.engine.postprocess:
        return both("What this studio speaks carries the mark.")
    return both("What this studio speaks carries no mark: its operator has not asked for one.")


def endpoint() -> None:
    """The endpoint `/check`; without the optional package it says what is missing."""
    sound = gr.Audio(type="filepath", label="Sound", visible=False)
    answer = gr.JSON(label="Answer", visible=False)
    gr.on([], program, sound, answer, api_name="check", **ONE)
