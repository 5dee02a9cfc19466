"""Sounds in memory as cards with a waveform; the page's player bar plays the pressed one.

A card's event `hear` has the number of the sound. Knows no engine and no saved take.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import NamedTuple

import gradio as gr
import numpy as np

from engine import CODEBOOKS, FRAME_SAMPLES, Chunk, End, Pcm
from studio.context import Studio
from studio.takes.event_transport import Payload
from studio.takes.live_take import About
from studio.takes.take_store import wave_of
from studio.ui.gradio_compat.events import detail
from studio.ui.gradio_compat.scripts import on_load
from studio.ui.i18n import both, labelled
from studio.ui.take_card import ICONS, picture

PRESSES = on_load(
    "static/buttons.js", ("hear",), selector="button[data-sound]", named={}, rest="hear"
)


class Card(NamedTuple):
    """`name` in English; `told`: HTML below it; `pcm` None: there is no sound yet."""

    name: str
    told: str
    pcm: Pcm | None = None


def sound_cards(cards: Sequence[Card]) -> gr.HTML:
    places = [
        "timbre-plain",
        "timbre-sounding",
        f"of-{len(cards)}",
    ]  # reserves the height of its cards
    return gr.HTML(html_of(cards), js_on_load=PRESSES, elem_classes=places, padding=False)


def html_of(cards: Sequence[Card]) -> str:
    listed = "".join(_item(number, card) for number, card in enumerate(cards))
    return f'<ul class="timbre-sounds">{listed}</ul>'


def pressed(event: gr.EventData) -> int:
    """The number of the sound whose button was pressed; -1 if it is none."""
    number = str(detail(event).get("sound"))[:9]
    return int(number) if number.isdecimal() else -1


async def hear(studio: Studio, pcm: Pcm, about: About) -> AsyncGenerator[Payload, None]:
    """Payloads for a player."""
    async for payload in studio.live.play(lambda: FinishedStream(pcm), about=about):
        yield payload


class FinishedStream:
    """Finished sound as a stream."""

    position = estimate = None

    def __init__(self, pcm: Pcm) -> None:
        self._pcm = pcm
        self.end: End | None = None

    def cancel(self) -> None:
        """There is nothing to stop."""

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        yield Chunk(0, self._pcm, np.zeros((0, CODEBOOKS), np.int64))
        self.end = End("finished", len(self._pcm) // FRAME_SAMPLES, seed=0)


def _item(number: int, card: Card) -> str:
    wave = wave_of(card.pcm) if card.pcm is not None and len(card.pcm) else ()
    label = f'data-sound="{number}" {labelled("Play", card.name)}'
    button = f'<button type="button" {label} {"" if wave else "disabled"}>{ICONS}</button>'
    header = f"<div><strong>{both(card.name)}</strong><small>{card.told}</small></div>"
    return f"<li>{button}{header}{picture(wave)}</li>"
