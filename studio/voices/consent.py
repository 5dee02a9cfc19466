"""What counts as the consent of a voice's owner: one rule for every way in.

A recording is cloned only with its owner's consent, and a blend has the least of its parts'.
A designed voice is nobody's.
Knows no routes and no pages.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine import Library

AGREED = ("true", "yes", "1", "on")


def is_consent(value: object) -> bool:
    """Only a clear yes counts; anything else, also what cannot be understood, is a no."""
    return value is True or (isinstance(value, str) and value.strip().casefold() in AGREED)


def blend_consent(names: Iterable[str], library: Library) -> bool:
    """Presets belong to their model; saved voices have the consent that was given for them."""
    saved = (library.find(name) for name in names)
    cards = [voice.card for voice in saved if voice is not None]
    return all(card.consent or card.kind == "design" for card in cards)
