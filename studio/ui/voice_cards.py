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
        return " ".join((*words, *self.tags)).casefold()


def cards(voices: Iterable[VoiceCard], favourites: Collection[str]) -> str:
    """A card for each voice, in the given order."""
    shown = "".join(_card(own, own.key in favourites) for own in voices)
    return f'<ul class="timbre-voices">{shown}</ul>' if shown else ""


def use_link(key: str) -> str:
    return f"{USE}{key}"


def _card(own: VoiceCard, starred: bool) -> str:
    told = "".join(f"<i>{escape(tag)}</i>" for tag in own.tags)
    note = both(own.note) if own.kind == "preset" else escape(own.note)
    line = f"<p>{note or '&nbsp;'}</p>" if own.here else f"<p>{both('Needs another model')}</p>"
    star = _button(own, "star", tell("Remove star" if starred else "Star"), "★" if starred else "☆")
    return (
        f'<li style="--own: {escape(own.colour or _colour(own.key))}">'
        f"{_button(own, 'hear', tell('Listen'), PLAY) if own.here else '<b></b>'}"
        f"<div><strong>{escape(own.name)}</strong><small>{both(KINDS[own.kind])}{told}</small>"
        f"{line}<p class='uses'>{_use(own)}{_change(own)}</p></div>"
        f"{star}</li>"
    )


def _use(own: VoiceCard) -> str:
    return f'<a href="{escape(use_link(own.key))}">{both("Use in Speak")}</a>' if own.here else ""


def _change(own: VoiceCard) -> str:
    if own.kind == "preset":
        return ""
    told = f'data-do="edit" data-voice="{escape(own.key)}"'
    return f'<button type="button" {told}>{both("Edit")}</button>'


def _button(own: VoiceCard, what: str, label: str, shown: str) -> str:
    said = escape(f"{label}: {own.name}")
    return (
        f'<button type="button" class="{what}" data-do="{what}" data-voice="{escape(own.key)}"'
        f' title="{said}" aria-label="{said}">{shown}</button>'
    )


def _colour(key: str) -> str:
    return f"hsl({crc32(key.encode()) % 360} 45% 38%)"
