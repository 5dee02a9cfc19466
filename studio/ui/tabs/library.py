"""The Library tab: takes, voices, and the check of a sound, each on a page; knows none of them."""

from __future__ import annotations

import gradio as gr

from studio.context import Studio
from studio.ui.i18n import word
from studio.ui.tabs import check, takes, voices


def build(studio: Studio, known: gr.BrowserState | None = None) -> None:
    """Lay out the tab. `known`: the takes that this browser has made."""
    with gr.Tabs():
        with gr.Tab(word("Takes")):
            takes.build(studio, known)
        with gr.Tab(word("Voices")):
            voices.build(studio)
        with gr.Tab(word("Watermark check")):
            check.build(studio)
