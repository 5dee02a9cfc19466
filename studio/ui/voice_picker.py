"""Voices as cards to choose one from: a group of radio buttons with a search, each heard when it is
pointed at or focused (static/voice_picker.js).

The chosen voice is the value of a field of the page, which no one sees: a key, or a written blend.
Knows no tab.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from html import escape
from typing import Any, Final, NamedTuple

import gradio as gr

from studio.context import Studio
from studio.ui.gradio_compat.scripts import on_event, on_load
from studio.ui.i18n import both, tell, word
from studio.ui.voice_cards import PLAY, VoiceCard, colour_of
from studio.ui.voice_list import SHOWN, counted, found_cards
from studio.voices.voice_catalog import Choice

CARDS: Final = "speak-voices"
VOICE: Final = "speak-voice"
SCRIPT: Final = "static/voice_picker.js"
ALOUD: Final = "Play voices that are pointed at"
SEARCH: Final = "Search, or type a blend:"


class VoicePicker(NamedTuple):
    voice: gr.Textbox  # a key or a blend; unseen
    search: gr.Textbox
    cards: gr.HTML


def voice_picker(studio: Studio, chosen: str) -> VoicePicker:
    """The components, with the first voices."""

    async def sample(voice: str) -> str | None:
        return await sample_of(studio, voice)

    search = gr.Textbox(
        "",
        label=word("Voice"),
        placeholder=f"{word(SEARCH)} {studio.choices().example()}",
        max_lines=1,
        elem_id="speak-find",
    )
    cards = gr.HTML(
        picker_html(studio, "", (), chosen, studio.choices().list()),
        js_on_load=on_load(SCRIPT, (), id=CARDS, field=VOICE),
        server_functions=[sample],
        elem_id=CARDS,
        elem_classes="timbre-plain",
        padding=False,
    )
    voice = gr.Textbox(chosen, elem_id=VOICE, elem_classes="timbre-unseen")
    voice.change(
        None,
        voice,
        None,
        js=on_event(SCRIPT, "markChosen", CARDS),
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    return VoicePicker(voice, search, cards)


def picker_html(
    studio: Studio,
    words: str,
    favourites: Collection[str],
    chosen: str,
    catalog: Sequence[Choice],
) -> str:
    """The cards that a search finds in the catalog: the first ones, and the chosen."""
    found = [card for card in found_cards(studio, words, favourites, catalog) if card.here]
    known = not chosen or any(voice.key == chosen for voice in catalog)
    key = chosen if known else studio.choices().key(chosen)
    shown = found[:SHOWN]
    if key not in {card.key for card in shown}:
        chosen_too = [card for card in found if card.key == key]
        shown = [*chosen_too, *shown][:SHOWN]
    aloud = both(ALOUD) if studio.samples else ""
    return radios(shown, favourites, key, tell(counted(len(found), words.strip())), aloud)


def radios(
    voices: Sequence[VoiceCard], favourites: Collection[str], chosen: str, told: str, aloud: str
) -> str:
    """Radio buttons; Tab reaches one of them. `aloud`: HTML, the label of the switch."""
    keys = [card.key for card in voices]
    reached = chosen if chosen in keys else next(iter(keys), "")
    shown = "".join(
        _radio(card, card.key in favourites, card.key == chosen, card.key == reached)
        for card in voices
    )
    switch = f'<label class="aloud"><input type="checkbox" checked>{aloud}</label>' if aloud else ""
    return (
        f'<div class="timbre-picker" role="radiogroup" aria-label="{escape(tell("Voices"))}">'
        f'{shown}</div><div class="timbre-picking">{switch}<small role="status">{escape(told)}'
        "</small></div>"
    )


def _radio(card: VoiceCard, starred: bool, checked: bool, reached: bool) -> str:
    note = both(card.note) if card.kind == "preset" else escape(card.note)
    star = f'<i title="{escape(tell("Starred"))}">★</i>' if starred else ""
    return (
        f'<button type="button" role="radio" aria-checked="{str(checked).lower()}"'
        f' tabindex="{0 if reached else -1}" data-key="{escape(card.key)}"'
        f' style="--own: {escape(card.colour or colour_of(card.key))}">'
        f"<b>{PLAY}</b><span><strong>{escape(card.name)}{star}</strong>"
        f"<small>{note}</small></span></button>"
    )


async def sample_of(studio: Studio, voice: Any) -> str | None:
    """A voice's sample in base64; None: there is none. Strangers may ask for anything."""
    if studio.samples is None or not isinstance(voice, str) or len(voice) > 200:
        return None
    sound = await studio.samples.sound(voice)
    return None if sound is None else base64.b64encode(sound).decode()
