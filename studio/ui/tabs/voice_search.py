"""Finds voices of a large library by what is typed into a menu, which lists only some of them.

Gradio searches only in what a menu lists. So voice_search.js also sends the typed words to the
server, through an invisible field. It is no `key_up` event: a paste presses no key, and an
event that had to wait for another one loses its letters. Knows no tab.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import gradio as gr

from studio.ui.gradio_compat.scripts import on_event
from studio.ui.tabs.voice_form import on_show

SEARCHED: Final = "timbre-voice-menu"  # the class of such a menu
FOUND: Final = on_event("gradio_compat/voice_search.js", "showFound")


def keep_listed(menu: gr.Dropdown, offer: Callable[..., Any]) -> None:
    """Let `offer(words, selected)` refresh what a menu lists.

    It is refreshed when its tab is shown, when it is opened, while a user types into it, and when
    another voice is selected. All of these are one event, so that an older answer, of another
    selected voice, never replaces a newer one. The selected voice is not checked against the
    current list.
    """
    words = gr.Textbox("", elem_id=f"{menu.elem_id}-words", elem_classes="timbre-unseen")
    moments = [menu.focus, menu.change, words.change]
    offered = on_show(offer, [menu], [words, menu], moments, preprocess=False, queue=False)
    offered.then(None, None, None, js=FOUND, show_progress="hidden")
