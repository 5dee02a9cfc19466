"""The voices of the studio as cards: all of them, those that a search finds, the starred first.

Knows the catalog and the library, no components.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import gradio as gr

from engine import Message, SavedVoice, folded
from studio.context import Studio
from studio.ui.voice_cards import VoiceCard
from studio.voices.voice_catalog import Choice

FAVOURITES: Final = 500  # that a browser remembers
SHOWN: Final = 60  # cards in a list at once


def favourite_voices() -> gr.BrowserState:
    """The keys of the starred voices; one for a page, as two would not hear of each other."""
    return gr.BrowserState([], storage_key="timbre-favourites", secret="timbre")


def toggled(favourites: Sequence[str], key: str) -> list[str]:
    """The favourites with this voice, or without it where it was one."""
    others = [each for each in favourites if each != key]
    return others if len(others) < len(favourites) else [*others, key][-FAVOURITES:]


def every_card(studio: Studio, catalog: Iterable[Choice] | None = None) -> list[VoiceCard]:
    """All voices, presets first. `catalog`: those that can be spoken, where it is known."""
    there = {voice.key: voice for voice in catalog or studio.choices().list()}
    presets = [
        VoiceCard(voice.key, voice.label, "preset", voice.note)
        for voice in there.values()
        if voice.kind == "preset"
    ]
    saved = (_card_of(voice, f"#{voice.id}" in there) for voice in studio.library.list())
    return [*presets, *saved]


def found_cards(
    studio: Studio,
    words: str,
    favourites: Collection[str],
    catalog: Iterable[Choice] | None = None,
) -> list[VoiceCard]:
    """Cards with every word in name, kind, tags or note; starred ones come first."""
    wanted, every = folded(words).split(), every_card(studio, catalog)
    found = [card for card in every if all(word in card.searched for word in wanted)]
    return sorted(found, key=lambda card: card.key not in favourites)


def counted(found: int, words: str) -> Message:
    """How many a search has found."""
    if not found and words:
        return Message("No results for “{words}”.", words=words)
    if found > SHOWN:
        return Message("{count} voices, the first {most} are shown.", count=found, most=SHOWN)
    return Message("1 voice.") if found == 1 else Message("{count} voices.", count=found)


def _card_of(voice: SavedVoice, here: bool) -> VoiceCard:
    card = voice.card
    kind = "clone" if card.kind == "mood" else card.kind  # the library lists no moods
    return VoiceCard(f"#{voice.id}", voice.name, kind, card.note, card.colour, card.tags, here)
