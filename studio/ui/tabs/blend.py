"""The Blend tab: a pad with voices at its corners, a blend formula, and playback.

The formula (`robert(70)+clara(30)`) is what is spoken and saved; the pad writes it, and it can be
typed. Holds the fields and their layout; the handlers are in `BlendTab`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import gradio as gr

from studio.context import Studio
from studio.ui.blend_pad.blend_pad import blend_pad
from studio.ui.blend_pad.pad_weights import CENTRE, MOST, weights_at
from studio.ui.drafts import browser_id, keep_draft
from studio.ui.gradio_compat.events import api
from studio.ui.i18n import word
from studio.ui.live_player import live_player, plays
from studio.ui.tabs.blend_handlers import PHRASE, STEPS, BlendTab, written
from studio.ui.tabs.mood_field import MoodField, mood_field
from studio.ui.tabs.take_compare import TakeCompare, pair
from studio.ui.tabs.voice_form import QUIET, model_menu, on_show, save_form
from studio.ui.tabs.voice_search import SEARCHED, keep_listed
from studio.ui.voice_map import voice_map

STEP_LABELS: Final = ["A", *(f"{step}/{STEPS - 1}" for step in range(1, STEPS - 1)), "B"]
MAP_HELP: Final = (
    "All voices of a model; alike ones stand together. Point at one to hear it, drag the cross "
    "between them to blend, pull an arrow for a mood. The arrow keys move the cross."
)
HELP: Final = (
    "Select two to four voices and drag the handle between them. Release it to hear the blend. "
    "The arrow keys move it too."
)


class Controls(NamedTuple):
    voices: gr.Dropdown
    pad: gr.HTML
    aloud: gr.Checkbox
    map_tab: gr.Tab
    map: gr.HTML
    mood: MoodField
    recipe: gr.Textbox
    method: gr.Radio
    model: gr.Dropdown
    phrase: gr.Textbox
    speak: gr.Button
    player: gr.HTML
    step: gr.Radio
    every: gr.Button


def build(studio: Studio) -> None:
    """Build the tab in the current Blocks context."""
    tab = BlendTab(studio)
    there = tab.voices()
    with gr.Row():
        with gr.Column(scale=3, min_width=320), gr.Tabs():
            with gr.Tab(word("Pad"), id="pad"):
                gr.Markdown(word(HELP))
                voices, pad, aloud = _pad(tab, there)
            with gr.Tab(word("Map"), id="map") as map_tab:
                gr.Markdown(word(MAP_HELP))
                map_ = voice_map(elem_id="blend-map")
        with gr.Column(scale=2, min_width=320):
            recipe, method = _words([name for _, name in there[:MOST]])
            mood = mood_field(studio, "blend")
            model = model_menu(tab.speakers())
            phrase = gr.Textbox(PHRASE, label=word("What to say"), max_lines=3)
            speak = gr.Button(word("Speak the blend"), variant="primary", elem_classes="timbre-go")
            step, every = _strip()
    player = live_player(studio.live, elem_id="blend-player")
    owner, takes = browser_id(), pair()
    gr.Markdown(word("## Save this voice"))
    form = save_form()
    saved = form.button.click(tab.save, [*form.fields, recipe, method, model], form.status, **QUIET)
    saved.then(tab.mapped, model, map_, **QUIET)
    keep_draft("blend", [method, phrase, *form.fields])
    api(tab.program, api_name="blend", concurrency_limit=None)
    fields = (voices, pad, aloud, map_tab, map_, mood, recipe, method, model, phrase)
    _wire(tab, Controls(*fields, speak, player, step, every), owner)
    _compared(tab, player, takes, owner)


def _compared(tab: BlendTab, player: gr.HTML, takes: TakeCompare, owner: gr.Textbox) -> None:
    """A spoken blend is a take like all others, beside the one before."""
    player.take(tab.kept, [takes.ids], takes.outputs, **QUIET)
    for side in (takes.left, takes.right):
        side.card.act(tab.act, [takes.ids], takes.outputs, **QUIET)
        plays(player, [side.card.again], tab.again, [owner])


def _pad(tab: BlendTab, there: list[tuple[str, str]]) -> tuple[gr.Dropdown, gr.HTML, gr.Checkbox]:
    first = there[:MOST]
    voices = gr.Dropdown(
        there,
        value=[name for _, name in first],
        multiselect=True,
        max_choices=MOST,
        label=word("Voices"),
        info=tab.hint(),
        elem_id="blend-voices",
        elem_classes=SEARCHED,
    )
    pad = blend_pad([label for label, _ in first], elem_id="blend-pad")
    return voices, pad, gr.Checkbox(value=True, label=word("Play on release"))


def _words(first: list[str]) -> tuple[gr.Textbox, gr.Radio]:
    middle = weights_at(CENTRE, len(first)) if first else ()
    return (
        gr.Textbox(
            written(first, middle),
            label=word("Blend formula"),
            info=word("Change names and weights, and press Enter."),
            elem_id="blend-recipe",
        ),
        gr.Radio(
            [(word("Linear"), "linear"), (word("Spherical"), "spherical")],
            value="linear",
            label=word("Interpolation"),
        ),
    )


def _strip() -> tuple[gr.Radio, gr.Button]:
    gr.Markdown(
        word(
            "## Steps between two voices\n"
            "From the first voice (A) to the second (B), in nine steps."
        )
    )
    step = gr.Radio(list(zip(STEP_LABELS, range(STEPS), strict=True)), label=word("Step"))
    return step, gr.Button(word("Play all nine steps"))


def _wire(tab: BlendTab, on: Controls, owner: gr.Textbox) -> None:
    """Components and speech are updated by separate events, so speech is not delayed.

    Selected voices are not checked against the menu (`preprocess`): it lists few of many, and a
    session that the server has forgotten begins with another one.
    """
    shown = [on.pad, on.recipe, on.step]
    mood = [*on.mood]
    there = [on.voices, on.model]
    free: dict[str, Any] = {"preprocess": False}
    on_show(tab.refresh, [*there, on.pad, on.recipe], there, **free)
    keep_listed(on.voices, tab.offer)
    on.voices.input(tab.repick, [on.voices, *mood], shown, **free, **QUIET)
    on.pad.release(tab.moved, [on.voices, *mood], shown, **free, **QUIET)
    on.recipe.submit(tab.typed, on.recipe, [on.voices, on.pad, on.step, *mood], **QUIET)
    on.step.input(tab.take_step, [on.voices, on.step, *mood], [on.pad, on.recipe], **free, **QUIET)
    shows_map = [on.map_tab.select, on.model.input]
    on_show(tab.mapped, [on.map], [on.model], shows_map, opening=False)
    on.map.release(tab.found, None, [on.recipe, *mood], **QUIET)
    put_on = [on.mood.menu.input, on.mood.strength.release]
    gr.on(put_on, tab.remood, [on.recipe, *mood], on.recipe, **QUIET)
    way = [on.method, on.phrase, on.model]
    plays(on.player, [on.speak.click, on.recipe.submit], tab.speak, [on.recipe, *way, owner])
    released = [on.voices, *way, on.aloud, *mood, owner]
    plays(on.player, [on.pad.release], tab.speak_there, released, **free)
    plays(on.player, [on.map.release], tab.speak_found, way)
    plays(on.player, [on.map.hear], tab.speak_found, way)
    plays(on.player, put_on, tab.speak_mood, [on.recipe, *way, *mood, on.aloud])
    plays(on.player, [on.step.input], tab.speak_step, [on.voices, on.step, *way, *mood], **free)
    plays(on.player, [on.every.click], tab.speak_all, [on.voices, *way, *mood], **free)
