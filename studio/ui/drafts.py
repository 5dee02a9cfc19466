"""What a browser stores: the fields that its user was filling in, and an id of the browser.

Each browser tab has separate fields; a new tab begins with those that were filled in last. Runs
in the browser alone, so that a cut connection loses nothing. Knows no tab of the studio.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import gradio as gr

from studio.ui.gradio_compat.events import Dependency, Trigger, page_load
from studio.ui.gradio_compat.scripts import on_event

SCRIPT: Final = "static/drafts.js"
QUIET: Final[dict[str, Any]] = {
    "queue": False,
    "show_progress": "hidden",
    "api_visibility": "private",
}


def browser_id() -> gr.Textbox:
    """Filled when the page opens with an id that this browser keeps; empty until then."""
    field = gr.Textbox("", elem_classes="timbre-unseen", max_length=64)
    if load := page_load():
        gr.on([load], None, None, field, js=on_event(SCRIPT, "browserId"), **QUIET)
    return field


def back() -> Trigger:
    """The event that a lost connection has been restored."""
    press = gr.Button(elem_classes=["timbre-unseen", "timbre-back"])
    return press.click


def keep_draft(name: str, fields: Sequence[Any]) -> Dependency | None:
    """Keep these fields in the browser; the event that fills them when the page opens."""
    load = page_load()
    if load is None:
        return None
    key = f"timbre-draft-{name}"
    choices = [_choices(field) for field in fields]
    changes = [field.change for field in fields]
    gr.on(changes, None, list(fields), None, js=on_event(SCRIPT, "keep", key), **QUIET)
    filled: Dependency = load(
        None, list(fields), list(fields), js=on_event(SCRIPT, "fill", key, choices), **QUIET
    )
    return filled


def _choices(field: Any) -> list[Any] | None:
    """All that a field may have, as Gradio refuses a whole event for a choice that is no more."""
    return [value for _, value in field.choices] if isinstance(field, gr.Radio) else None
