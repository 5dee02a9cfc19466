"""HTML of a take: its card with downloads and buttons, and its row in a list.

A button has its action in `data-do` and its take in `data-take`; PRESSES sends it as an event, and
plays the take in the page's player. All user text is escaped. Knows no components and no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any, Final

from engine import SAMPLE_RATE, SOUND_FORMATS
from studio.takes.downloads import LONGEST, MOST, link
from studio.takes.event_transport import beginning
from studio.takes.take_store import WAVE_PARTS, Take, Wave
from studio.ui.gradio_compat.scripts import on_load
from studio.ui.i18n import both, tell
from studio.ui.take_code import codes_of

STOPPED: Final = "Stopped early"
DROPPED: Final = "Not kept, as it was stopped."
KEEP: Final = "Keep this part"
TOO_MUCH: Final = "Too many for one file. Choose fewer to download them."
NAMED: Final = {"instruct": "Style instructions", "longest": "Max. length"}
ICONS: Final = (
    '<svg class="is-play" viewBox="0 0 24 24" aria-hidden="true"><path d="M8 5v14l11-7z"/></svg>'
    '<svg class="is-pause" viewBox="0 0 24 24" aria-hidden="true">'
    '<path d="M6 5h4v14H6zM14 5h4v14h-4z"/></svg>'
)
LINEAGE: Final = "again"  # a setting: the take from which this one was regenerated

EMPTY = f"""
<div class="timbre-empty">
  <strong>{both("Nothing spoken yet")}</strong>
  <p>{both("Type a text and press Speak, or Ctrl+Enter. It appears here, to hear and to keep.")}</p>
  <button type="button" data-do="hello">{both("Hear a welcome")}</button>
</div>
"""

PRESSES: Final = on_load("static/takes.js", ("hello", "again", "all", "act"))


def card(take: Take, wave: Wave, *buttons: tuple[str, str]) -> str:
    """Text, sound, facts, downloads and buttons of one take; `buttons` are additional ones."""
    facts = "".join(
        f"<div><dt>{both(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in _facts(take).items()
    )
    heard = "" if take.deleted else _hear(take) + picture(wave)
    header = f"<header>{heard}<p>{escape(beginning(take.text))}</p></header>"
    below = _gone(take) if take.deleted else _downloads(take) + _buttons(take, buttons)
    return f'<div class="timbre-take">{header}<dl>{facts}</dl>{below}</div>'


def rows(takes: Iterable[tuple[Take, Wave]], chosen: bool = False) -> str:
    """A row for each take with its wave; with `chosen` each can be selected."""
    listed = "".join(
        f"<li>{_box(take) if chosen else ''}{_row(take, wave)}</li>" for take, wave in takes
    )
    return f'<ol class="timbre-history">{listed}</ol>'


def chooser(takes: Sequence[tuple[Take, Wave]], deleted: bool) -> str:
    """Rows that can be selected, and what can be done with all that are."""
    actions = [("restore", "Restore")] if deleted else [("star", "Star"), ("delete", "Delete")]
    pressed = "".join(
        f'<button type="button" data-do="all" data-all="{what}" disabled>{both(text)}</button>'
        for what, text in actions
    )
    bounds = f'data-most="{MOST}" data-samples="{round(LONGEST * SAMPLE_RATE)}"'
    pack = f'<a class="pack" download aria-disabled="true" {bounds}>{both("Download (.zip)")}</a>'
    return (
        '<div class="timbre-chosen"><label><input type="checkbox" class="every"> '
        f"{both('Select all')}</label><output>0</output>{'' if deleted else pack}{pressed}"
        f'<small role="status" hidden>{both(TOO_MUCH)}</small></div>' + rows(takes, chosen=True)
    )


def _row(take: Take, wave: Wave) -> str:
    voice = f"<bdi>{escape(take.voice or 'default')}</bdi>"
    facts = f"{voice} · {take.seconds:.1f} s · {_when(take.created)}"
    star = '<b class="star">★</b> ' if take.starred else ""
    star += f"<em>{both(STOPPED)}</em> " if take.stopped else ""
    shown = f"<span>{star}{escape(beginning(take.text))}</span><small>{facts}</small>"
    heard = "" if take.deleted else _hear(take)
    others = "" if take.deleted else _button(take, "compare", both("Compare"))
    return heard + picture(wave) + _button(take, "pick", shown) + others


def _box(take: Take) -> str:
    label = escape(f"{tell('Select')}: {beginning(take.text)}")
    return f'<input type="checkbox" aria-label="{label}">'


def _hear(take: Take) -> str:
    text = beginning(take.text)
    about = {
        "do": "hear",
        "take": take.id,
        "voice": take.voice,
        "text": text,
        "samples": str(round(take.seconds * SAMPLE_RATE)),
    }
    data = "".join(f' data-{name}="{escape(value)}"' for name, value in about.items())
    label = escape(f"{tell('Play')}: {text}")
    return f'<button type="button"{data} aria-label="{label}">{ICONS}</button>'


def picture(wave: Wave) -> str:
    """The waveform as bars; their heights follow perceived loudness."""
    tall = [max(1.0, 11 * (part / 255) ** 0.5) for part in wave]
    bars = "".join(f"M{3 * at + 1} {12 - each:.0f}v{2 * each:.0f}" for at, each in enumerate(tall))
    return (
        f'<svg class="wave" viewBox="0 0 {3 * WAVE_PARTS} 24" preserveAspectRatio="none" '
        f'aria-hidden="true"><path d="{bars}"/></svg>'
    )


def _downloads(take: Take) -> str:
    files = "".join(
        f'<a href="{escape(link(take.id, kind))}" download>{kind.upper()}</a>'
        for kind in SOUND_FORMATS
    )
    return f'<p class="files">{files}</p>'


def _buttons(take: Take, more: Iterable[tuple[str, str]]) -> str:
    star = "Remove star" if take.starred else "Star"
    named = [("again", "Regenerate"), ("same", "Regenerate, same seed"), *more, ("star", star)]
    pressed = "".join(_button(take, what, both(text)) for what, text in named)
    copied = "".join(_copy(text, both(name)) for name, text in codes_of(take).items())
    return f'<div class="does">{pressed}{copied}{_button(take, "delete", both("Delete"))}</div>'


def _copy(text: str, shown: str) -> str:
    data = f'data-do="copy" data-text="{escape(text)}"'
    return f'<button type="button" {data}>{shown}<i aria-hidden="true"> ✓</i></button>'


def _gone(take: Take) -> str:
    note, way_back = (DROPPED, KEEP) if take.stopped else ("Deleted.", "Restore")
    back = _button(take, "restore", both(way_back))
    return f'<div class="does"><em>{both(note)}</em>{back}</div>'


def _button(take: Take, what: str, shown: str) -> str:
    return f'<button type="button" data-do="{what}" data-take="{escape(take.id)}">{shown}</button>'


def _facts(take: Take) -> dict[str, str]:
    facts = {
        "Length": f"{take.seconds:.1f} s",
        **({"State": STOPPED} if take.stopped else {}),
        "Voice": take.voice or tell("The model's own"),
        "Seed": str(take.seed),
    }
    return facts | {
        NAMED.get(name, name.capitalize()): _as_words(value) for name, value in _changed(take)
    }


def _changed(take: Take) -> list[tuple[str, Any]]:
    """Settings that differ from the defaults."""
    return [
        (name, value)
        for name, value in take.settings.items()
        if value and value != "auto" and name != LINEAGE
    ]


def _as_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {each}" for name, each in value.items())
    return str(value)


def _when(moment: float) -> str:
    """The date; static/takes.js writes it as the clock of the browser's place has it."""
    then = datetime.fromtimestamp(moment, timezone.utc)
    return f'<time datetime="{then:%Y-%m-%dT%H:%M:%SZ}">{then:%Y-%m-%d}</time>'
