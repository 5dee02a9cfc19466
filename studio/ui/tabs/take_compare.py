"""One or two takes side by side, and what the buttons on their cards do.

Used wherever takes are shown. Which ones are shown is the page's state, so every visitor has
their own. Knows no lists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import gradio as gr

from engine import SAMPLE_RATE, End, Pcm, RequestError
from studio.context import Studio
from studio.takes.take_store import Take, Takes
from studio.ui import take_card
from studio.ui.i18n import tell, word
from studio.ui.player.event_transport import Payload, refusal
from studio.ui.speech_form import SpeechForm, asked_for, named_now
from studio.ui.take_card import LINEAGE

Update: TypeAlias = Any  # what Gradio takes for a component
Shown: TypeAlias = tuple[str, str]  # ids of the left and the right take; "": none

NOTHING: Shown = ("", "")
WAVE = gr.WaveformOptions(waveform_color="#9cc4b8", waveform_progress_color="#2f8070")


class Side(NamedTuple):
    column: gr.Column
    card: gr.HTML
    audio: gr.Audio


class TakeCompare(NamedTuple):
    """The components; `outputs` is what `shown` fills."""

    ids: gr.State
    left: Side
    right: Side

    @property
    def outputs(self) -> list[Any]:
        return [self.ids, *self.left, *self.right]


def pair() -> TakeCompare:
    """Nothing is shown at first."""
    with gr.Row(elem_classes="timbre-pair"):
        return TakeCompare(gr.State(NOTHING), _side("Take"), _side("Compared with"))


def _side(label: str) -> Side:
    with gr.Column(visible=False, min_width=300) as column:
        card = gr.HTML(js_on_load=take_card.PRESSES, elem_classes="timbre-plain")
        audio = gr.Audio(
            label=word(label),
            type="numpy",
            format="wav",
            interactive=False,
            buttons=[],
            waveform_options=WAVE,
        )
    return Side(column, card, audio)


def shown(studio: Studio, ids: Shown, *buttons: tuple[str, str]) -> tuple[Update, ...]:
    """What the pair's components show; `buttons` are more of them on the cards."""
    left, right = ids
    return ids, *_filled(studio, left, buttons), *_filled(studio, right, (("close", "Close"),))


def act(takes: Takes, ids: Shown, what: str, number: str) -> Shown:
    """Do what a button says, and tell which takes are shown then. Raises RequestError."""
    left = ids[0]
    if what == "close":
        return left, ""
    if what == "pick":
        return takes.find(number).id, ""
    if what == "compare":
        return (left, number) if left and left != number else (number, "")
    if what == "star":
        takes.star(number, not takes.get(number).starred)
    elif what == "delete":
        takes.delete(number)
    elif what == "restore":
        takes.restore(number)
    return ids


def newest(takes: Takes, number: str) -> Shown:
    """A take that has just been made, beside the one it was spoken again from."""
    return number, str(takes.find(number).settings.get(LINEAGE, ""))


async def again(studio: Studio, event: gr.EventData, owner: str = "") -> AsyncIterator[Payload]:
    """Speak a take once more, with a new seed or with its own."""
    number = str(event._data.get("take"))
    try:
        asked = asked_for(studio.takes.get(number))
    except RequestError as error:
        yield refusal(error.message)
        return
    if event._data.get("do") != "same":
        asked = replace(asked, seed=None)
    async for payload in speak(studio, asked, owner, **{LINEAGE: number}):
        yield payload


async def speak(
    studio: Studio, asked: SpeechForm, owner: str = "", **notes: str
) -> AsyncIterator[Payload]:
    """Speak and keep for a browser; `notes` are kept with the settings."""

    def keep(pcm: Pcm, end: End, left: bool) -> str:
        settings = {**asked.settings(), **notes}
        choices = studio.choices()
        key = choices.key(asked.voice)
        about = {"owner": owner, "stopped": end.reason == "cancelled", "voice_key": key}
        voice = choices.shown(key) or asked.voice
        take = studio.takes.add(pcm, asked.text, voice, end.seed, settings, **about)
        if left:
            studio.takes.delete(take.id)  # its card has the button that keeps it
        return take.id

    async for payload in studio.live.play(
        lambda: asked.submit(studio.engine, studio.choices()), keep
    ):
        yield payload


def _filled(
    studio: Studio, number: str, buttons: tuple[tuple[str, str], ...]
) -> tuple[Update, ...]:
    takes = studio.takes
    try:
        take = takes.find(number) if number else None
    except RequestError:
        take = None
    if take is None:
        return gr.update(visible=False), "", None
    [named] = named_now([take], studio.choices())
    return gr.update(visible=True), take_card.card(named, *buttons), _sound(takes, take)


def _sound(takes: Takes, take: Take) -> tuple[int, Pcm] | None:
    if take.deleted:
        return None
    try:
        return SAMPLE_RATE, takes.pcm(take.id)  # int16: the level stays
    except RequestError as error:
        gr.Warning(tell(error.message))
        return None
