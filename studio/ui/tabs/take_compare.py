"""One or two take cards side by side, and their buttons.

Used wherever takes are shown. Which takes are shown is session state. Knows no lists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import gradio as gr

from engine import End, Pcm, RequestError, SpeechStream
from studio.context import Studio
from studio.takes.event_transport import Payload, refusal
from studio.takes.live_take import About, Stream
from studio.takes.take_store import Take, Takes, Wave
from studio.ui import take_card
from studio.ui.gradio_compat.events import detail
from studio.ui.i18n import warn
from studio.ui.speech_form import SpeechForm, asked_for, named_now
from studio.ui.take_card import LINEAGE

Update: TypeAlias = Any  # what Gradio takes for a component
Shown: TypeAlias = tuple[str, str]  # ids of the left and the right take; "": none

NOTHING: Shown = ("", "")


class Side(NamedTuple):
    column: gr.Column
    card: gr.HTML


class TakeCompare(NamedTuple):
    """The components; `shown` returns the values of `outputs`."""

    ids: gr.State
    left: Side
    right: Side

    @property
    def outputs(self) -> list[Any]:
        return [self.ids, *self.left, *self.right]


def pair() -> TakeCompare:
    """Build the cards, hidden at first."""
    with gr.Row(elem_classes="timbre-pair"):
        return TakeCompare(gr.State(NOTHING), _side(), _side())


def _side() -> Side:
    with gr.Column(visible=False, min_width=300) as column:
        card = gr.HTML(js_on_load=take_card.PRESSES, elem_classes="timbre-plain")
    return Side(column, card)


def shown(studio: Studio, ids: Shown, *buttons: tuple[str, str]) -> tuple[Update, ...]:
    """The values of `outputs`; `buttons` are additional buttons of the left card."""
    left, right = ids
    return ids, *_filled(studio, left, buttons), *_filled(studio, right, (("close", "Close"),))


def act(takes: Takes, ids: Shown, what: str, number: str) -> Shown:
    """Apply a button's action; returns the takes to show. Raises RequestError."""
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
    """A new take, beside the one it was regenerated from."""
    return number, str(takes.find(number).settings.get(LINEAGE, ""))


async def again(studio: Studio, event: gr.EventData, owner: str = "") -> AsyncIterator[Payload]:
    """Regenerate a take, with a new seed or its own."""
    number = str(detail(event).get("take"))
    try:
        form = asked_for(studio.takes.get(number))
    except RequestError as error:
        yield refusal(error.message)
        return
    if detail(event).get("do") != "same":
        form = replace(form, seed=None)
    async for payload in speak(studio, form, owner, **{LINEAGE: number}):
        yield payload


async def speak(
    studio: Studio, form: SpeechForm, owner: str = "", **notes: str
) -> AsyncIterator[Payload]:
    """Speak and save for a browser; `notes` are saved with the settings."""

    def keep(pcm: Pcm, end: End, left: bool) -> str:
        settings = {**form.settings(), **notes}
        choices = studio.choices()
        key = choices.key(form.voice)
        about = {"owner": owner, "stopped": end.reason == "cancelled", "voice_key": key}
        about["said"] = spoken if (spoken := form.said(choices)) != form.text else ""
        voice = choices.shown(key) or form.voice
        take = studio.takes.add(pcm, form.text, voice, end.seed, settings, **about)
        if left:
            studio.takes.delete(take.id)  # its card has the button that keeps it
        return take.id

    def submit() -> Stream:
        stream = form.submit(studio.engine, studio.choices())
        if isinstance(stream, SpeechStream):
            for notice in stream.notices:  # what the model leaves out
                warn(notice)
        return stream

    async for payload in studio.live.play(
        submit,
        keep,
        about(studio, form),
        form.early_start != "off",
    ):
        yield payload


def about(studio: Studio, form: SpeechForm) -> About:
    choices = studio.choices()
    return About(choices.shown(choices.key(form.voice)) or form.voice, form.said(choices))


def _filled(
    studio: Studio, number: str, buttons: tuple[tuple[str, str], ...]
) -> tuple[Update, ...]:
    takes = studio.takes
    try:
        take = takes.find(number) if number else None
    except RequestError:
        take = None
    if take is None:
        return gr.update(visible=False), ""
    [named] = named_now([take], studio.choices())
    return gr.update(visible=True), take_card.card(named, takes.wave(take.id), *buttons)


def with_waves(takes: Takes, found: Iterable[Take]) -> list[tuple[Take, Wave]]:
    return [(take, takes.wave(take.id)) for take in found]
