"""The Speak tab: a text, a voice, its sound while it is made, and the take when it is.

The fields and their layout are here; what they do is `Speaking`. Knows no HTML of takes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gradio as gr

from studio import take_card
from studio.context import Studio
from studio.downloads import KINDS
from studio.endpoints import Endpoints
from studio.player.player import live_player, plays
from studio.tabs.speaking import ADVANCED, WELCOME, Speaking

WAVE = gr.WaveformOptions(waveform_color="#9cc4b8", waveform_progress_color="#2f8070")

# Buttons inside our own HTML: what is pressed is told as an event.
PRESSES = """
element.addEventListener('click', (event) => {
  const pressed = event.target.closest('button[data-take], button[data-do]');
  if (!pressed) return;
  if (pressed.dataset.take) trigger('pick', { take: pressed.dataset.take });
  else trigger('hello', {});
});
"""


class Fields(NamedTuple):
    """What a person fills in, in the order the handlers take it."""

    text: gr.Textbox
    voice: gr.Dropdown
    language: gr.Dropdown
    instruct: gr.Textbox
    seed: gr.Textbox
    advanced: list[gr.Number]

    def all(self) -> list[Any]:
        return [*self[:-1], *self.advanced]


class Outcome(NamedTuple):
    """Where a finished take is shown."""

    finished: gr.Column
    card: gr.HTML
    audio: gr.Audio
    list: gr.HTML
    known: gr.BrowserState  # ids of the takes this browser has made, the newest first


def build(studio: Studio) -> None:
    """The tab, inside whatever block is open."""
    speaking = Speaking(studio)
    with gr.Row(elem_classes="timbre-fields"):
        with gr.Column(scale=3, min_width=320):
            text, count = _text()
            instruct = gr.Textbox("", label="How to speak (optional)", max_lines=3)
        with gr.Column(scale=2, min_width=300):
            voice, about, listen = _voice(speaking)
            language = gr.Dropdown(speaking.languages(), value="auto", label="Language")
            seed, dice, lock = _seed()
            advanced = _advanced()
    with gr.Row(elem_classes="timbre-go-row"):
        speak = gr.Button("Speak", variant="primary", elem_classes="timbre-go", scale=0)
    player = live_player(studio.live, elem_id="speak-player")
    outcome = _outcome()
    fields = Fields(text, voice, language, instruct, seed, advanced)
    _watch(speaking, fields, count, about, lock, dice)
    _speak(speaking, fields, lock, player, speak, listen, outcome)
    _show(speaking, player, outcome, seed, lock)
    _endpoint(studio, fields)


def _text() -> tuple[gr.Textbox, gr.HTML]:
    text = gr.Textbox(
        label="Text",
        lines=7,
        max_lines=18,
        autofocus=True,
        placeholder="Type or paste what you want to hear.",
        elem_id="speak-text",
    )
    return text, gr.HTML(elem_classes="timbre-count")


def _voice(speaking: Speaking) -> tuple[gr.Dropdown, gr.HTML, gr.Button]:
    choices = speaking.voices()
    first = choices[0][1]
    voice = gr.Dropdown(
        choices,
        value=first,
        label="Voice",
        info="Pick one, or type a blend: ryan(2)+vivian(1)",
        allow_custom_value=True,
    )
    with gr.Row(elem_classes="timbre-about"):
        about = gr.HTML(speaking.about(first), elem_classes="timbre-voice")
        listen = gr.Button("Listen", size="sm", scale=0, min_width=88)
    return voice, about, listen


def _seed() -> tuple[gr.Textbox, gr.Button, gr.Checkbox]:
    with gr.Row(elem_classes="timbre-seed"):
        seed = gr.Textbox("", label="Seed", placeholder="New each time", max_lines=1, min_width=120)
        dice = gr.Button("Roll", size="sm", scale=0, min_width=72)
        lock = gr.Checkbox(label="Keep", scale=0, min_width=88, container=False)
    return seed, dice, lock


def _advanced() -> list[gr.Number]:
    with gr.Accordion("Advanced", open=False):
        gr.Markdown("Empty: as the model's makers recommend.", elem_classes="timbre-hint")
        with gr.Row():
            return [
                gr.Number(label=own.label, value=None, placeholder="–", min_width=120, **own.range)
                for own in ADVANCED
            ]


def _outcome() -> Outcome:
    known = gr.BrowserState([], storage_key="timbre-takes", secret="timbre")  # no secrets in it
    with gr.Column(visible=False) as finished:
        card = gr.HTML(elem_classes="timbre-plain")
        audio = gr.Audio(
            label="Take",
            type="numpy",
            format="wav",
            interactive=False,
            buttons=[],
            waveform_options=WAVE,
        )
    listed = gr.HTML(take_card.EMPTY, js_on_load=PRESSES, elem_classes="timbre-plain")
    return Outcome(finished, card, audio, listed, known)


def _watch(
    speaking: Speaking,
    fields: Fields,
    count: gr.HTML,
    about: gr.HTML,
    lock: gr.Checkbox,
    dice: gr.Button,
) -> None:
    """What changes while a person fills in."""
    quick: dict[str, Any] = {
        "queue": False,
        "show_progress": "hidden",
        "trigger_mode": "always_last",
        "api_visibility": "private",
    }
    fields.text.change(speaking.count, fields.text, count, **quick)
    fields.voice.change(speaking.picked, fields.voice, [about, fields.instruct], **quick)
    fields.voice.focus(speaking.offer, None, fields.voice, **quick)
    dice.click(speaking.roll, None, [fields.seed, lock], **quick)


def _speak(
    speaking: Speaking,
    fields: Fields,
    lock: gr.Checkbox,
    player: gr.HTML,
    speak: gr.Button,
    listen: gr.Button,
    outcome: Outcome,
) -> None:
    """Everything that makes the player speak."""
    plays(player, [speak.click], speaking.press, [lock, *fields.all()])
    plays(player, [listen.click], speaking.sample, [fields.voice])
    hello = outcome.list.hello
    hello(lambda: WELCOME, None, fields.text, queue=False, api_visibility="private")
    free: dict[str, Any] = {"concurrency_limit": None, "show_progress": "hidden"}
    hello(speaking.welcome, fields.voice, player, api_visibility="private", **free)


def _show(
    speaking: Speaking, player: gr.HTML, outcome: Outcome, seed: gr.Textbox, lock: gr.Checkbox
) -> None:
    """The take when it is made, one picked from the list, and the list when the page opens."""
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    shown = [outcome.finished, outcome.card, outcome.audio]
    kept = [outcome.known, outcome.list, seed, *shown]
    player.take(speaking.keep, [outcome.known, lock, seed], kept, queue=False, **quiet)
    outcome.list.pick(speaking.pick, None, shown, queue=False, **quiet)
    gr.on(None, speaking.last, outcome.known, outcome.list, queue=False, **quiet)


def _endpoint(studio: Studio, fields: Fields) -> None:
    """`/speak` for programs; its fields are the tab's, and all but the text may be left out."""
    press = gr.Button(visible=False)
    kind = gr.Dropdown(list(KINDS), value=KINDS[0], label="Format", visible=False)
    press.click(
        Endpoints(studio).speak,
        [*fields[:-1], kind, *fields.advanced],
        gr.File(label="Take", visible=False),
        api_name="speak",
        api_description="Speak a text and return the finished sound file.",
        concurrency_limit=None,
    )
