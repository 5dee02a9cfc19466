"""Descriptions of preset speakers by name; unknown speakers have none."""

from __future__ import annotations

import json
from functools import cache

from studio.layout import ROOT

LINES = ROOT / "presets" / "speakers.json"


def described(name: str) -> str:
    """A short English description; empty if there is none."""
    return _lines().get(name.casefold(), "")


@cache
def _lines() -> dict[str, str]:
    lines: dict[str, str] = json.loads(LINES.read_text(encoding="utf-8"))
    return lines
