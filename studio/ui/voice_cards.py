"""Voices as cards: a colour, a name, a line, and buttons to hear, star, use and change one.

A button has its action in `data-do` and its voice in `data-voice`; PRESSES sends it as an event.
All text of users is escaped. Knows no components and no engine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from html import escape
from typing import Final, Literal, TypeAlias
from zlib import crc32

from engine import folded
from studio.ui.gradio_compat.scripts import on_load
from studio.ui.i18n import both, tell

Kind: TypeAlias = Literal["preset", "clone", "trained", "blend", "design"]
KINDS: Final[dict[Kind, str]] = {
    "preset": "Preset",
    "clone": "Cloned",
    "trained": "Trained",
    "blend": "Blended",
    "design": "Designed",
}
PLAY: Final = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M8 5v14l11-7z"/></svg>'

# `hear` speaks, `act` is any other action; the page itself handles `Use in Speak`.
PRESSES: Final = on_load(
    "static/buttons.js",
    ("hear", "act"),
    selector="button[data-do]",
    named={"hear": "hear"},
    rest="act",
    rows=True,
)
# A link to #use-voice=… picks the voice under Speak, and goes there.
USE: Final = "#use-voice="


@dataclass(frozen=True)
class VoiceCard:
    """What is shown of a voice."""

    key: str  # as scripts and takes hold it
    name: str
    kind: Kind
    note: str = ""
    colour: str = ""
    tags: tuple[str, ...] = ()
    here: bool = True  # a loaded model speaks it

    @property
    def searched(self) -> str:
        words = (self.name, self.kind, KINDS[self.kind], tell(KINDS[self.kind]), self.note)
        return folded(" ".join((*words, *self.tags)))


def cards(voices: Iterable[VoiceCard], favourites: Collection[str]) -> str:
    """A card for each voice, in the given order."""
    shown = "".join(_card(voice, voice.key in favourites) for voice in voices)
    return f'<ul class="timbre-voices">{shown}</ul>' if shown else ""


def use_link(key: str) -> str:
    return f"{USE}{key}"


def _card(card: VoiceCard, starred: bool) -> str:
    tags = "".join(f"<i>{escape(tag)}</i>" for tag in card.tags)
    note = both(card.note) if card.kind == "preset" else escape(card.note)
    line = f"<p>{note or '&nbsp;'}</p>" if card.here else f"<p>{both('Needs another model')}</p>"
    star = _button(
        card, "star", tell("Remove star" if starred else "Star"), "★" if starred else "☆"
    )
    return (
        f'<li style="--own: {escape(card.colour or colour_of(card.key))}">'
        f"{_button(card, 'hear', tell('Listen'), PLAY) if card.here else '<b></b>'}"
        f"<div><strong>{escape(card.name)}</strong><small>{both(KINDS[card.kind])}{tags}</small>"
        f"{line}<p class='uses'>{_use(card)}{_change(card)}</p></div>"
        f"{star}</li>"
    )


def _use(card: VoiceCard) -> str:
    return f'<a href="{escape(use_link(card.key))}">{both("Use in Speak")}</a>' if card.here else ""


def _change(card: VoiceCard) -> str:
    if card.kind == "preset":
        return ""
    attributes = f'data-do="edit" data-voice="{escape(card.key)}"'
    return f'<button type="button" {attributes}>{both("Edit")}</button>'


def _button(card: VoiceCard, what: str, label: str, shown: str) -> str:
    full_label = escape(f"{label}: {card.name}")
    return (
        f'<button type="button" class="{what}" data-do="{what}" data-voice="{escape(card.key)}"'
        f' title="{full_label}" aria-label="{full_label}">{shown}</button>'
    )


def colour_of(key: str) -> str:
    return f"hsl({crc32(key.encode()) % 360} 45% 38%)"
