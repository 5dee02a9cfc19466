"""The Library tab: takes, voices, moods and the watermark check on a page each. Knows none."""

from __future__ import annotations

import gradio as gr

from studio.context import Studio
from studio.ui.i18n import word
from studio.ui.tabs import check, moods, takes, voices


def build(
    studio: Studio, owner: gr.Textbox | None = None, favourites: gr.BrowserState | None = None
) -> None:
    """Lay out the tab. `owner`: this browser's id; `favourites`: the starred voices."""
    with gr.Tabs():
        with gr.Tab(word("Takes"), id="takes"):
            takes.build(studio, owner)
        with gr.Tab(word("Voices"), id="voices"):
            voices.build(studio, owner, favourites)
        with gr.Tab(word("Moods"), id="moods"):
            moods.build(studio)
        with gr.Tab(word("Watermark check"), id="check"):
            check.build(studio)
