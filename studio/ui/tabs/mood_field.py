"""The menu of moods and the slider of their strength, beside a menu of voices."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from studio.context import Studio
from studio.ui.i18n import word
from studio.ui.tabs.voice_form import on_show
from studio.voices.moods import MAX_STRENGTH
from studio.voices.voice_catalog import Choices

NONE = "As the voice is"


class MoodField(NamedTuple):
    menu: gr.Dropdown
    strength: gr.Slider


def mood_field(studio: Studio, tab: str = "speak") -> MoodField:
    """Hidden while there is no mood for the models that are here.

    Filled anew when its tab is shown, but not by the page's opening (`on_show`): what fills the tab
    then calls `listed_anew`.
    """
    listed = mood_choices(studio.choices())
    there = len(listed) > 1
    menu = gr.Dropdown(listed, value="", label=word("Mood"), visible=there, elem_id=f"{tab}-mood")
    strength = gr.Slider(
        0, MAX_STRENGTH, value=1, step=0.05, label=word("Strength of the mood"), visible=False,
        elem_id=f"{tab}-mood-strength",
    )  # fmt: skip
    on_show(partial(listed_anew, studio), [menu], [menu], opening=False)
    menu.change(
        lambda mood: gr.update(visible=bool(mood)),
        menu,
        strength,
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    return MoodField(menu, strength)


def listed_anew(studio: Studio, now: str | None) -> Any:
    """The menu with the moods that are there now; one that is gone is no longer chosen.

    A mood that is there is not chosen again: by now another may be.
    """
    choices = mood_choices(studio.choices())
    menu = gr.update(choices=choices, visible=len(choices) > 1)
    if now not in {value for _, value in choices}:
        menu["value"] = ""
    return menu


def mood_choices(choices: Choices) -> list[tuple[Any, str]]:
    """Labels and names."""
    names = [each.name for each in choices.moods.list()]
    return [(word(NONE), ""), *((name, name) for name in names)]
