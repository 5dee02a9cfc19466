"""A take as a person sees it: its card with downloads, and the short list of the last ones.

Everything a person wrote is escaped. Knows no components and no engine.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from html import escape
from typing import Any

from studio.downloads import KINDS, link
from studio.takes import Take

SHORT = 90  # letters of a text in the list

EMPTY = """
<div class="timbre-empty">
  <strong>Nothing spoken yet</strong>
  <p>Type a text and press Speak, or Ctrl+Enter. What is spoken appears here, to hear again
  and to download.</p>
  <button type="button" data-do="hello">Hear a welcome</button>
</div>
"""


def card(take: Take) -> str:
    """Duration, voice, seed and settings of one take, and its downloads."""
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in _facts(take).items()
    )
    files = "".join(
        f'<a href="{escape(link(take.id, kind))}" download>{kind.upper()}</a>' for kind in KINDS
    )
    return (
        f'<div class="timbre-take"><p>{escape(_short(take.text))}</p><dl>{facts}</dl>'
        f'<nav aria-label="Download">{files}</nav></div>'
    )


def rows(takes: Iterable[Take]) -> str:
    """A button for each take, the newest first."""
    listed = "".join(f"<li>{_row(take)}</li>" for take in takes)
    return f'<ol class="timbre-history" aria-label="Your last takes">{listed}</ol>'


def _row(take: Take) -> str:
    told = f"{take.voice or 'default'} · {take.seconds:.1f} s · {_when(take.created)}"
    return (
        f'<button type="button" data-take="{escape(take.id)}">'
        f"<span>{escape(_short(take.text))}</span><small>{escape(told)}</small></button>"
    )


def _facts(take: Take) -> dict[str, str]:
    facts = {
        "Length": f"{take.seconds:.1f} s",
        "Voice": take.voice or "the model's own",
        "Seed": str(take.seed),
    }
    return facts | {name.capitalize(): _told(value) for name, value in _changed(take)}


def _changed(take: Take) -> list[tuple[str, Any]]:
    """Settings that were not left as they are."""
    return [(name, value) for name, value in take.settings.items() if value and value != "auto"]


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {each}" for name, each in value.items())
    return str(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"


def _when(moment: float) -> str:
    return time.strftime("%H:%M", time.localtime(moment))
