"""HTML of a take: its card with downloads and buttons, and its row in the list.

A button has its action in `data-do` and its take in `data-take`; PRESSES sends it as an event. All
user text is escaped. Knows no components and no engine.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from html import escape
from typing import Any, Final

from studio.takes.downloads import KINDS, link
from studio.takes.take_store import Take
from studio.ui.i18n import both, tell

SHORT = 90  # letters of a text in the list
STOPPED: Final = "Stopped early"
DROPPED: Final = "Not kept, as it was stopped."
KEEP: Final = "Keep this part"
NAMED: Final = {"instruct": "Style instructions", "longest": "Max. length"}
LINEAGE: Final = "again"  # a setting: the take from which this one was regenerated

EMPTY = f"""
<div class="timbre-empty">
  <strong>{both("Nothing spoken yet")}</strong>
  <p>{both("Type a text and press Speak, or Ctrl+Enter. It appears here, to hear and to keep.")}</p>
  <button type="button" data-do="hello">{both("Hear a welcome")}</button>
</div>
"""

# `again` regenerates, `hello` plays the welcome, `act` is everything else.
PRESSES = """
element.addEventListener('click', (event) => {
  const pressed = event.target.closest('button[data-do]');
  if (!pressed) return;
  const told = { do: pressed.dataset.do, take: pressed.dataset.take ?? '' };
  if (told.do === 'hello') trigger('hello', {});
  else if (told.do === 'again' || told.do === 'same') trigger('again', told);
  else trigger('act', told);
});
"""


def card(take: Take, *buttons: tuple[str, str]) -> str:
    """Text, facts, downloads and buttons of one take; `buttons` are additional ones."""
    facts = "".join(
        f"<div><dt>{both(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in _facts(take).items()
    )
    below = _gone(take) if take.deleted else _downloads(take) + _buttons(take, buttons)
    return (
        f'<div class="timbre-take"><p>{escape(_short(take.text))}</p><dl>{facts}</dl>{below}</div>'
    )


def rows(takes: Iterable[Take]) -> str:
    """A row for each take."""
    listed = "".join(f"<li>{_row(take)}</li>" for take in takes)
    return f'<ol class="timbre-history">{listed}</ol>'


def _row(take: Take) -> str:
    told = f"{take.voice or 'default'} · {take.seconds:.1f} s · {_when(take.created)}"
    star = '<b class="star">★</b> ' if take.starred else ""
    star += f"<em>{both(STOPPED)}</em> " if take.stopped else ""
    shown = f"<span>{star}{escape(_short(take.text))}</span><small>{escape(told)}</small>"
    return _button(take, "pick", shown) + _button(take, "compare", both("Compare"))


def _downloads(take: Take) -> str:
    files = "".join(
        f'<a href="{escape(link(take.id, kind))}" download>{kind.upper()}</a>' for kind in KINDS
    )
    return f'<nav aria-label="{escape(tell("Download"))}">{files}</nav>'


def _buttons(take: Take, more: Iterable[tuple[str, str]]) -> str:
    star = "Remove star" if take.starred else "Star"
    named = [("again", "Regenerate"), ("same", "Regenerate, same seed"), *more, ("star", star)]
    pressed = "".join(_button(take, what, both(text)) for what, text in named)
    return f'<div class="does">{pressed}{_button(take, "delete", both("Delete"))}</div>'


def _gone(take: Take) -> str:
    told, way_back = (DROPPED, KEEP) if take.stopped else ("Deleted.", "Restore")
    back = _button(take, "restore", both(way_back))
    return f'<div class="does"><em>{both(told)}</em>{back}</div>'


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
        NAMED.get(name, name.capitalize()): _told(value) for name, value in _changed(take)
    }


def _changed(take: Take) -> list[tuple[str, Any]]:
    """Settings that differ from the defaults."""
    return [
        (name, value)
        for name, value in take.settings.items()
        if value and value != "auto" and name != LINEAGE
    ]


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {each}" for name, each in value.items())
    return str(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"


def _when(moment: float) -> str:
    """The time of today's takes, the date of older ones."""
    then = time.localtime(moment)
    today = then[:3] == time.localtime()[:3]
    return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", then)
