"""The figures of a card out of judged takes: arithmetic alone, no sound and no tables.

Figures are numbers by name, of one source (a model, its teacher, a codec); a figure that was not
measured is not there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.quality.acoustic_features import semitones

Row: TypeAlias = dict[str, Any]  # a take as `judge.Judged` has it
Figures: TypeAlias = dict[str, float]
Vector: TypeAlias = NDArray[np.float64]

WOMAN = 150.0  # Hz: a voice from here on is taken for a woman's
TOO_SHORT, TOO_LONG = 0.9, 1.6  # times what a voice takes for so many letters
KINDS = ("number", "time", "money", "name", "question", "dialogue")


def mean(values: Iterable[float | None]) -> float:
    return float(np.mean([value for value in values if value is not None]))


def errors(rows: Sequence[Row]) -> float:
    """Percent of the words."""
    return 100 * sum(row["wrong"] for row in rows) / max(1, sum(row["said"] for row in rows))


def by(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return dict(found)


def voice_of(row: Row) -> str:
    return str(row["take"]["voice"])


def part_of(row: Row) -> str:
    return str(row["take"]["group"].split(".")[0])


def centre(rows: Sequence[Row]) -> Vector:
    """The mean direction of their embeddings."""
    total = np.sum([vector for row in rows for vector in row["who"]], axis=0)
    return np.asarray(total / max(1e-9, np.linalg.norm(total)))


def likeness(row: Row, other: Vector) -> float:
    return float(centre([row]) @ other)


# Parts.


def voice_figures(rows: Sequence[Row], others: Sequence[Vector]) -> Figures:
    """One named voice."""
    embedded = [row for row in rows if row["who"]]
    found = {
        "sentences": len(rows),
        "natural": mean(row["natural"] for row in rows),
        "natural_worst": min(row["natural"] for row in rows),
        "errors": errors(rows),
        "pitch": float(np.median([row["pitch"] for row in rows])),
    }
    if any(row["clean"] is not None for row in rows):
        found["clean"] = mean(row["clean"] for row in rows)
    if len(embedded) > 1:
        rest = [embedded[:n] + embedded[n + 1 :] for n in range(len(embedded))]
        found["own"] = mean(likeness(row, centre(r)) for row, r in zip(embedded, rest, strict=True))
    if others and embedded:
        found["next"] = max(float(centre(embedded) @ other) for other in others)
    return found


def voices_figures(rows: Sequence[Row]) -> dict[str, Figures]:
    """Each named voice."""
    spoken = by(rows, voice_of)
    centres = {
        voice: centre(takes) for voice, takes in spoken.items() if any(r["who"] for r in takes)
    }
    return {
        voice: voice_figures(takes, [c for name, c in centres.items() if name != voice])
        for voice, takes in spoken.items()
    }


def named_figures(rows: Sequence[Row]) -> Figures:
    each = voices_figures(rows)
    found = {
        "natural": mean(row["natural"] for row in rows),
        "natural_least": min(voice["natural"] for voice in each.values()),
        "errors": errors(rows),
    }
    for name in ("clean", "own", "next"):
        values = [voice[name] for voice in each.values() if name in voice]
        if values:
            found[name] = mean(values)
    for kind, some in by(rows, lambda row: row["take"]["kind"]).items():
        if kind in KINDS:
            found[f"errors_{kind}"] = errors(some)
    return found


def clone_figures(way: str, rows: Sequence[Row], references: Sequence[Row]) -> Figures:
    """Clones of held-out voices: is each nearest to its own of all."""
    centres = {voice: centre(takes) for voice, takes in by(references, voice_of).items()}
    return {
        f"{way}_nearest": 100 * mean(nearest(row, centres) == voice_of(row) for row in rows),
        f"{way}_natural": mean(row["natural"] for row in rows),
        f"{way}_errors": errors(rows),
    }


def nearest(row: Row, centres: Mapping[str, Vector]) -> str:
    if not row["who"]:
        return ""
    return max(centres, key=lambda voice: likeness(row, centres[voice]))


def stranger_rows(rows: Sequence[Row], references: Sequence[Row]) -> dict[str, Figures]:
    """Clones of voices from elsewhere: pitch, sex and similarity, a line each."""
    recorded, found = by(references, voice_of), {}
    for voice, takes in by(rows, voice_of).items():
        wanted, got = (
            float(np.median([row["pitch"] for row in some])) for some in (recorded[voice], takes)
        )
        home = centre(recorded[voice])
        found[voice] = {
            "asked": wanted,
            "pitch": got,
            "off": semitones(wanted, got),
            "like": mean(likeness(row, home) for row in takes if row["who"]),
            "natural": mean(row["natural"] for row in takes),
            "errors": errors(takes),
        }
    return found


def stranger_figures(way: str, rows: Sequence[Row], references: Sequence[Row]) -> Figures:
    each = stranger_rows(rows, references).values()
    return {
        f"{way}_sex": 100 * mean((v["asked"] < WOMAN) == (v["pitch"] < WOMAN) for v in each),
        f"{way}_near_pitch": 100 * mean(abs(v["off"]) <= 2 for v in each),
        f"{way}_like": mean(v["like"] for v in each),
    }


def blend_rows(rows: Sequence[Row], voices: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Each pair: pitch and whose it is, step by step."""
    homes = {voice: centre(takes) for voice, takes in by(voices, voice_of).items()}
    found = {}
    for pair, takes in by(rows, voice_of).items():
        first, second = (homes[name] for name in pair.split("+"))
        steps = [some for _, some in sorted(by(takes, lambda row: row["take"]["share"]).items())]
        pitches = [mean(row["pitch"] for row in some) for some in steps]
        leans = [float(centre(some) @ (second - first)) for some in steps]
        found[pair] = {
            "pitch": in_order(pitches),
            "who": in_order(leans),
            "natural": min(mean(row["natural"] for row in some) for some in steps),
            "pitches": [round(each) for each in pitches],
            "leans": [round(each, 2) for each in leans],
        }
    return found


def in_order(values: Sequence[float]) -> int:
    """The length of the longest subsequence in the direction of the whole change."""
    whole, longest = values[-1] - values[0], list[int]()
    for index, value in enumerate(values):
        before = [longest[j] for j in range(index) if (value - values[j]) * whole > 0]
        longest.append(1 + max(before, default=0))
    return max(longest)


def blend_figures(rows: Sequence[Row], voices: Sequence[Row]) -> Figures:
    each = blend_rows(rows, voices).values()
    return {f"blends_{name}": min(v[name] for v in each) for name in ("pitch", "who", "natural")}


MEASURES = {"pitch": "pitch", "tone": "centroid", "pace": "seconds", "sex": "pitch"}


def design_figures(rows: Sequence[Row]) -> Figures:
    """Pairs follow each other: the low end, the high end."""
    right = defaultdict(list)
    for low, high in zip(rows[::2], rows[1::2], strict=True):
        axis = low["take"]["kind"]
        right[axis].append(low[MEASURES[axis]] < high[MEASURES[axis]])
    every = [each for some in right.values() for each in some]
    return {
        "designs": 100 * mean(every),
        **{f"designs_{axis}": 100 * mean(some) for axis, some in right.items()},
    }


def style_rows(rows: Sequence[Row]) -> dict[str, Figures]:
    """Each instruction against none, of the same voices and texts: factors, and semitones."""
    spoken = by(rows, lambda row: row["take"]["kind"])
    keys = [(voice_of(row), row["take"]["text"]) for row in spoken["plain"]]
    plain = dict(zip(keys, spoken["plain"], strict=True))
    found = {}
    for kind, takes in spoken.items():
        pairs = [(row, plain[voice_of(row), row["take"]["text"]]) for row in takes]
        found[kind] = {
            "duration": mean(a["seconds"] / b["seconds"] for a, b in pairs),
            "pitch": mean(semitones(b["pitch"], a["pitch"]) for a, b in pairs),
            "liveliness": mean(a["spread"] for a, _ in pairs) / mean(b["spread"] for _, b in pairs),
            "voiced": mean(a["voiced"] / max(0.01, b["voiced"]) for a, b in pairs),
            "natural": mean(row["natural"] for row in takes),
            "errors": errors(takes),
        }
    return found


def end_figures(rows: Sequence[Row]) -> Figures:
    """Ends of all that was said: too early where the last words lack and time does, too; missing
    where it was stopped, or went on for longer than the text and with other words."""
    early, missing = ended(rows)
    return {
        "ends_early": 100 * len(early) / len(rows),
        "ends_missing": 100 * len(missing) / len(rows),
        "ends_errors": errors(rows),
    }


def ended(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    early, missing = [], []
    for takes in by(rows, voice_of).values():
        pace = np.median([row["seconds"] / letters(row) for row in takes])
        for row in takes:
            time = row["seconds"] / letters(row) / max(1e-9, pace)
            if row["reason"] == "incomplete" or (row["unsaid_end"] and time < TOO_SHORT):
                early.append(row)
            elif row["reason"] != "finished" or (row["beyond"] > 1 and time > TOO_LONG):
                missing.append(row)
    return early, missing


def letters(row: Row) -> int:
    """The letters of its text, and some for a start and an end, which take time too."""
    return 6 + sum(map(str.isalnum, row["take"]["text"]))


def long_figures(rows: Sequence[Row]) -> Figures:
    windows = [
        (np.array(row["who"]) / np.linalg.norm(row["who"], axis=1, keepdims=True), centre([row]))
        for row in rows
    ]
    return {
        "long_least": min(float((each @ home).min()) for each, home in windows),
        "long_drift": max(abs(row["drift"]) for row in rows),
        "long_natural": mean(row["natural"] for row in rows),
        "long_errors": errors(rows),
    }


def figures(rows: Sequence[Row], references: Sequence[Row]) -> Figures:
    """All of one source."""
    spoken, known = by(rows, part_of), by(references, part_of)
    found: Figures = {}
    if "voices" in spoken:
        found |= named_figures(spoken["voices"])
    for way in ("vector", "context"):
        groups = by(spoken.get(way, ()), lambda row: row["take"]["group"].split(".")[1])
        if "held_out" in groups:
            found |= clone_figures(way, groups["held_out"], known["held_out"])
        if "strangers" in groups:
            found |= stranger_figures(way, groups["strangers"], known["strangers"])
    if "blends" in spoken:
        found |= blend_figures(spoken["blends"], spoken["voices"])
    if "designs" in spoken:
        found |= design_figures(spoken["designs"])
    if whole_texts := [*spoken.get("voices", ()), *spoken.get("ends", ())]:
        found |= end_figures(whole_texts)
    if "long" in spoken:
        found |= long_figures(spoken["long"])
    return found


def whole(judged: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Everything that a card says, by source."""
    references, report = judged.get("references", ()), dict[str, Any]()
    for source, rows in judged.items():
        if source == "references" or not rows:
            continue
        spoken = by(rows, part_of)
        part: dict[str, Any] = {"figures": figures(rows, references)}
        if "voices" in spoken:
            part["voices"] = voices_figures(spoken["voices"])
        for way in ("vector", "context"):
            some = [r for r in spoken.get(way, ()) if r["take"]["group"].endswith(".strangers")]
            part[f"strangers_{way}"] = stranger_rows(
                some, [r for r in references if part_of(r) == "strangers"]
            )
        if "blends" in spoken:
            part["blends"] = blend_rows(spoken["blends"], spoken["voices"])
        if "styles" in spoken:
            part["styles"] = style_rows(spoken["styles"])
        report[source] = part
    return report
