"""What is said of the speakers that checkpoints bring along: a line each, by name.

Knows no checkpoint: a speaker it has never heard of simply has no line.
"""

from __future__ import annotations

import json
from functools import cache

from studio.settings import ROOT

LINES = ROOT / "presets" / "speakers.json"


def described(name: str) -> str:
    """Who speaks, in a few English words; empty where nobody wrote any."""
    return _lines().get(name.casefold(), "")


@cache
def _lines() -> dict[str, str]:
    lines: dict[str, str] = json.loads(LINES.read_text(encoding="utf-8"))
    return lines
