"""The Speak tab: text, voice and settings; live playback; the finished take and the list of takes.

Holds the fields and their layout; the handlers are in `SpeakHandlers`. Knows no HTML of takes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import gradio as gr

from engine import SOUND_FORMATS
from studio.context import Studio
from studio.takes.event_transport import Payload
from studio.ui import take_card
from studio.ui.drafts import back, browser_id, keep_draft
from studio.ui.endpoints import Endpoints
from studio.ui.gradio_compat.events import Dependency, run_after
from studio.ui.i18n import word
from studio.ui.live_player import live_player, plays
from studio.ui.speech_form import SPEEDS
from studio.ui.tabs.mood_field import MoodField, mood_field
from studio.ui.tabs.script.options import SPELLINGS
from studio.ui.tabs.speak_handlers import (
    ADVANCED,
    STARTS,
    WELCOME,
    SpeakHandlers,
)
from studio.ui.tabs.take_compare import TakeCompare, again, pair
from studio.ui.tabs.voice_form import QUIET, model_menu, on_show
from studio.ui.voice_list import favourite_voices
from studio.ui.voice_picker import VoicePicker, voice_picker

# What fails in these is told to nobody: Gradio shows the errors of queued events alone.
QUICK: dict[str, Any] = {
    "queue": False,
    "show_progress": "hidden",
    "api_visibility": "private",
}


class Fields(NamedTuple):
    """The input fields, in the order of the handlers' arguments."""

    text: gr.Textbox
    voice: gr.Textbox  # a key or a blend
    language: gr.Dropdown
    instruct: gr.Textbox
    seed: gr.Textbox
    advanced: list[gr.Textbox]
    speed: gr.Slider
    spellings: gr.Textbox
    start: gr.Radio
    mood: MoodField
    model: gr.Dropdown

    def all(self) -> list[Any]:
        last = [self.speed, self.spellings, self.start, *self.mood, self.model]
        return [*self[:5], *self.advanced, *last]


class About(NamedTuple):
    """What is told of the chosen voice, and what can be done with it."""

    told: gr.HTML
    star: gr.Button
    listen: gr.Button


class Outcome(NamedTuple):
    """The components that show finished takes."""

    pair: TakeCompare
    list: gr.HTML
    owner: gr.Textbox  # the browser's id


def build(
    studio: Studio, owner: gr.Textbox | None = None, favourites: gr.BrowserState | None = None
) -> None:
    """Build the tab in the current Blocks context. `owner`: this browser's id; `favourites`: the
    starred voices."""
    speaking = SpeakHandlers(studio)
    with gr.Row(elem_classes="timbre-fields"):
        with gr.Column(elem_classes="timbre-words"):
            text, count = _text()
        with gr.Row(elem_classes="timbre-go-row"):
            speak = gr.Button(word("Speak"), variant="primary", elem_classes="timbre-go", scale=0)
        with gr.Column(elem_classes="timbre-manner"):
            instruct = gr.Textbox("", label=word("Style instructions (optional)"), max_lines=3)
        with gr.Column(elem_classes="timbre-spoken"):
            compared, listed = pair(), _list()
        with gr.Column(elem_classes="timbre-speaker"):
            with gr.Column(elem_classes="timbre-picked"):
                picker = voice_picker(studio, speaking.first())
                about = _about(speaking, picker.voice.value)
            with gr.Column(elem_classes="timbre-settings"):
                model = model_menu(speaking.models(picker.voice.value))
                mood = mood_field(studio)
                language = gr.Dropdown(speaking.languages(), value="auto", label=word("Language"))
                speed = gr.Slider(*SPEEDS, value=1, step=0.05, label=word("Speaking speed"))
                seed, dice, lock = _seed()
                advanced, spellings = _advanced()
                start = _start(studio)
    player = live_player(studio.live, elem_id="speak-player")
    outcome = Outcome(compared, listed, owner or browser_id())
    fields = Fields(
        text, picker.voice, language, instruct, seed, advanced, speed, spellings, start, mood, model
    )
    starred = favourites or favourite_voices()
    _watch(speaking, fields, count, about, starred, lock, dice)
    listing = _pick(speaking, picker, about, starred)
    on_show(speaking.starts, [start], also=[back()], opening=False, queue=False)
    wanted = gr.Textbox("", elem_id="speak-wanted", elem_classes="timbre-unseen")
    wanted.change(speaking.use, wanted, [picker.voice, wanted], **QUICK)
    _draft(speaking, fields, lock, about.told, listing)
    _speak(speaking, fields, player, speak, about.listen, outcome)
    _again(studio, speaking, player, outcome, fields, lock)
    _show(speaking, player, outcome, seed, lock)
    _endpoint(studio)


def _text() -> tuple[gr.Textbox, gr.HTML]:
    text = gr.Textbox(
        label=word("Text"),
        lines=9,
        max_lines=18,
        autofocus=True,
        placeholder=word("Type or paste what you want to hear."),
        elem_id="speak-text",
    )
    return text, gr.HTML(elem_classes="timbre-count")


def _about(speaking: SpeakHandlers, voice: str) -> About:
    with gr.Row(elem_classes="timbre-about"):
        about = gr.HTML(speaking.told(voice), elem_id="speak-about", elem_classes="timbre-voice")
        star = gr.Button(word("Star"), size="sm", scale=0, min_width=72)
        listen = gr.Button(word("Listen"), size="sm", scale=0, min_width=72)
    return About(about, star, listen)


def _seed() -> tuple[gr.Textbox, gr.Button, gr.Checkbox]:
    with gr.Row(elem_classes="timbre-seed"):
        seed = gr.Textbox(
            "", label=word("Seed"), placeholder=word("New each time"), max_lines=1, min_width=120
        )
        dice = gr.Button(word("Randomise"), size="sm", scale=0, min_width=72)
        lock = gr.Checkbox(label=word("Lock seed"), scale=0, min_width=88, container=False)
    return seed, dice, lock


def _advanced() -> tuple[list[gr.Textbox], gr.Textbox]:
    """Textboxes, because an empty gr.Number becomes 0 when it is shown."""
    with gr.Accordion(word("Advanced"), open=False):
        gr.Markdown(word("Leave empty for defaults."), elem_classes="timbre-hint")
        with gr.Row(elem_classes="timbre-even"):
            numbers = [
                gr.Textbox(
                    "", label=word(setting.label), placeholder="–", max_lines=1, min_width=120
                )
                for setting in ADVANCED
            ]
        return numbers, gr.Textbox(
            "", label=word("Pronunciation"), placeholder=word(SPELLINGS), lines=2, max_lines=12
        )


def _start(studio: Studio) -> gr.Radio:
    """For machines slower than real time: whether playback waits or starts with gaps."""
    return gr.Radio(
        [(word(label), name) for label, name in STARTS],
        value=studio.engine.settings.early_start,
        label=word("This computer speaks slower than you listen"),
        visible=False,
        elem_id="speak-start",
    )


def _list() -> gr.HTML:
    return gr.HTML(
        take_card.EMPTY, js_on_load=take_card.PRESSES, elem_classes="timbre-plain", padding=False
    )


def _watch(
    speaking: SpeakHandlers,
    fields: Fields,
    count: gr.HTML,
    about: About,
    favourites: gr.BrowserState,
    lock: gr.Checkbox,
    dice: gr.Button,
) -> None:
    """Events of the input fields."""
    quick = {**QUICK, "trigger_mode": "always_last"}
    fields.text.change(speaking.count, fields.text, count, **quick)
    now = [fields.voice, fields.language]
    looks = [about.told, fields.instruct, fields.model, about.star]
    given = [fields.voice, fields.model, favourites]
    on_show(speaking.arrive, now, now, opening=False)  # when it opens: `_draft`
    change = fields.voice.change
    on_show(speaking.chosen, looks, given, [change], opening=False, queue=False)
    dice.click(speaking.roll, None, [fields.seed, lock], **quick)


def _pick(
    speaking: SpeakHandlers, picker: VoicePicker, about: About, favourites: gr.BrowserState
) -> Dependency:
    """Events of the cards' list, the search and the star; the one that lists the cards."""
    listed = [picker.search, favourites, picker.voice]
    shown = [picker.cards, about.star]
    also = [picker.search.change, favourites.change]
    listing = on_show(speaking.listed, shown, listed, also, opening=False, queue=False)
    picked = [picker.voice, picker.search]
    picker.search.submit(speaking.find, listed, picked, **QUIET)
    about.star.click(speaking.star, [favourites, picker.voice], favourites, **QUICK)
    return listing


def _draft(
    speaking: SpeakHandlers, fields: Fields, lock: gr.Checkbox, about: gr.HTML, listing: Dependency
) -> None:
    """Restore the draft; voices and languages that no longer exist are replaced. What the tab asks
    for when it is shown, it asks for then, at once."""
    filled = keep_draft("speak", [*fields.all(), lock])
    if filled is not None:
        given = [fields.voice, fields.language, fields.model, fields.mood.menu]
        looks = [about, fields.instruct, fields.model, fields.mood.menu, fields.start]
        filled.then(speaking.opened, given, [fields.voice, fields.language, *looks], **QUICK)
        run_after(listing, filled)


def _speak(
    speaking: SpeakHandlers,
    fields: Fields,
    player: gr.HTML,
    speak: gr.Button,
    listen: gr.Button,
    outcome: Outcome,
) -> None:
    """Events that play speech."""
    plays(player, [speak.click], speaking.press, [outcome.owner, *fields.all()])
    plays(player, [listen.click], speaking.sample, [fields.voice])
    hello = outcome.list.hello
    hello(lambda: WELCOME, None, fields.text, **QUICK)
    plays(player, [hello], speaking.welcome, [outcome.owner, fields.voice])


def _again(
    studio: Studio,
    speaking: SpeakHandlers,
    player: gr.HTML,
    outcome: Outcome,
    fields: Fields,
    lock: gr.Checkbox,
) -> None:
    """Events of the buttons on cards and in the list."""

    async def anew(owner: str, event: gr.EventData) -> AsyncIterator[Payload]:
        async for payload in again(studio, event, owner):
            yield payload

    cards = [outcome.pair.left.card, outcome.pair.right.card]
    shown = [outcome.list, *outcome.pair.outputs]
    for card in cards:
        plays(player, [card.again], anew, [outcome.owner])
    for card in (*cards, outcome.list):
        card.act(speaking.act, [outcome.owner, outcome.pair.ids], shown, **QUIET)
    cards[0].act(speaking.fill, None, [*fields.all(), lock], **QUIET)


def _show(
    speaking: SpeakHandlers, player: gr.HTML, outcome: Outcome, seed: gr.Textbox, lock: gr.Checkbox
) -> None:
    """Show a take when it is finished, and the list when the page opens."""
    kept = [outcome.list, seed, *outcome.pair.outputs]
    player.take(speaking.keep, [outcome.owner, lock, seed], kept, **QUICK)
    lock.input(speaking.lock, [lock, seed, outcome.owner], seed, **QUICK)
    before = gr.BrowserState([], storage_key="timbre-takes", secret="timbre")  # ids of its takes
    outcome.owner.change(speaking.arrived, [outcome.owner, before], outcome.list, **QUICK)
    back()(speaking.last, [outcome.owner], [outcome.list], **QUICK)


def _endpoint(studio: Studio) -> None:
    """The endpoint `/speak`; only the text is required."""
    press = gr.Button(visible=False)
    inputs = [
        gr.Textbox(label="Text", visible=False),
        gr.Textbox("", label="Voice", visible=False),
        gr.Textbox("auto", label="Language", visible=False),
        gr.Textbox("", label="Style instructions", visible=False),
        gr.Textbox("", label="Seed", visible=False),
        gr.Dropdown(list(SOUND_FORMATS), value="wav", label="Format", visible=False),
    ]
    numbers = [
        gr.Number(label=setting.label, visible=False, **setting.range) for setting in ADVANCED
    ]
    press.click(
        Endpoints(studio).speak,
        [*inputs, *numbers],
        gr.File(label="Sound", visible=False),
        api_name="speak",
        api_description="Speak a text and return the finished sound file.",
        concurrency_limit=None,
    )
