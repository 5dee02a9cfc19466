"""The card: what was asked beside what was reached, as a Markdown table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.quality.voice_card import plan
from bench.quality.voice_card.figures import KINDS, whole

# Asked: a figure, how it is called, whether at least or at most, and which source has to reach it.
ASKED: tuple[tuple[str, str, str, float | None], ...] = (
    ("natural", "DistillMOS, named voices", "≥", 4.0),
    ("natural_least", "the least voice", "≥", 3.7),
    ("clean", "DNSMOS", "≥", 3.1),
    ("errors", "word errors, %", "≤", 3.0),
    *((f"errors_{kind}", f"of them: {kind}", "", None) for kind in KINDS),
    ("own", "like itself (Resemblyzer)", "", None),
    ("next", "like the next voice", "", None),
    ("vector_nearest", "clones by vector: nearest to their own, %", "≥", 90.0),
    ("vector_natural", "DistillMOS", "≥", 3.7),
    ("vector_errors", "word errors, %", "≤", 5.0),
    ("context_nearest", "clones in context: nearest to their own, %", "≥", 90.0),
    ("context_natural", "DistillMOS", "≥", 3.7),
    ("context_errors", "word errors, %", "≤", 5.0),
    ("vector_sex", "never-taught voices by vector: right sex, %", "≥", 100.0),
    ("vector_near_pitch", "within two semitones, %", "≥", 100.0),
    ("vector_like", "similarity", "", None),
    ("context_sex", "never-taught voices in context: right sex, %", "≥", 100.0),
    ("context_near_pitch", "within two semitones, %", "≥", 100.0),
    ("context_like", "similarity", "", None),
    ("blends_pitch", "blends in order by pitch, the worst pair, of 9", "≥", 8),
    ("blends_who", "by similarity, the worst pair, of 9", "≥", 8),
    ("blends_natural", "DistillMOS, the worst step", "≥", 3.7),
    ("designs", "designs that go the right way, %", "≥", 95.0),
    *((f"designs_{axis}", f"of them: {axis}", "", None) for axis in plan.AXES),
    ("ends_early", "ends too early, %", "<", 0.5),
    ("ends_missing", "ends missing, %", "<", 0.5),
    ("ends_errors", "word errors there, %", "", None),
    ("long_least", "long texts: least likeness of 5 s to the voice", "", None),
    ("long_drift", "pitch of the last third against the first, semitones", "≤", 1.0),
    ("long_natural", "DistillMOS", "", None),
    ("long_errors", "word errors, %", "", None),
)


def reached(value: float, sign: str, limit: float | None) -> bool:
    if limit is None:
        return True
    return value >= limit if sign == "≥" else value <= limit if sign == "≤" else value < limit


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def targets_table(judged: Mapping[str, Any]) -> str:
    """The first table: a line for each figure, bold where what is asked is missed."""
    sources = list(judged)
    rows = []
    for name, label, sign, limit in ASKED:
        values = [judged[source]["figures"].get(name) for source in sources]
        if any(value is not None for value in values):
            cells = [number(value) for value in values]
            for at, (source, value) in enumerate(zip(sources, values, strict=True)):
                if source == "model" and value is not None and not reached(value, sign, limit):
                    cells[at] = f"**{cells[at]}**"
            rows.append([label, f"{sign} {limit:g}" if limit is not None else "", *cells])
    return table(["", "asked", *sources], rows)


VOICE_COLUMNS = {
    "natural": "DistillMOS",
    "natural_worst": "worst sentence",
    "clean": "DNSMOS",
    "errors": "word errors, %",
    "pitch": "Hz",
    "own": "like itself",
    "next": "like the next",
}


def voices_table(judged: Mapping[str, Any]) -> str:
    """A line for each voice; sources with / between them."""
    sources = [source for source in judged if "voices" in judged[source]]
    names = dict.fromkeys(name for source in sources for name in judged[source]["voices"])
    rows = [
        [
            name,
            *(
                " / ".join(
                    number(judged[source]["voices"].get(name, {}).get(key)) for source in sources
                )
                for key in VOICE_COLUMNS
            ),
        ]
        for name in names
    ]
    return table([" / ".join(sources), *VOICE_COLUMNS.values()], rows)


def rows_table(first: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    heads = list(next(iter(rows.values())))
    cells = (
        [
            name,
            *(
                " ".join(map(str, row[key])) if isinstance(row[key], list) else number(row[key])
                for key in heads
            ),
        ]
        for name, row in rows.items()
    )
    return table([first, *heads], cells)


def markdown(judged: Mapping[str, Any]) -> str:
    parts = ["# Card", targets_table(judged)]
    if any("voices" in figures for figures in judged.values()):
        parts += ["## Named voices", voices_table(judged)]
    titles = {
        "strangers_vector": "Voices never taught, by vector",
        "strangers_context": "Voices never taught, in context",
        "blends": "Blends",
        "styles": "Instructions, against none",
    }
    for key, title in titles.items():
        rows = judged.get("model", {}).get(key)
        if rows:
            parts += [f"## {title}", rows_table("", rows)]
    return "\n\n".join(parts) + "\n"


def write_card(folder: Path, judged: Mapping[str, Any], beside: Path | None) -> None:
    """card.json and card.md of what was judged, by source; another card's model beside it."""
    report = whole(judged)
    if beside:
        report["before"] = json.loads(beside.read_text())["model"]
    (folder / "card.json").write_text(json.dumps(report, indent=1))
    text = markdown(report)
    (folder / "card.md").write_text(text)
    print(text)
