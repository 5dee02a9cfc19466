"""The Engine page: statistics, refreshed each second while the page is open.

Knows the engine's numbers and how to draw a line of them, and nothing of requests.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import TypeAlias

import gradio as gr

from engine import SpeechEngine, Stats, load_profile, profiles
from studio.context import Studio
from studio.ui.i18n import both, labelled
from studio.ui.tabs import models

EVERY = 1.0  # seconds
REMEMBERED = 120  # looks

Look: TypeAlias = tuple[float, float, int, int]  # moment, audio seconds, running, waiting


def build(studio: Studio) -> gr.Timer:
    """Build the page; returns the timer that runs while it is open."""
    looks = gr.State([])
    drawn = figures(studio.engine, studio.engine.stats(), None) + plots(
        []
    )  # reserves its later height
    page = gr.HTML(drawn, elem_classes="timbre-plain")
    models.build(studio)
    timer = gr.Timer(EVERY, active=False)

    def look(before: list[Look]) -> tuple[list[Look], str]:
        stats = studio.engine.stats()
        now = (time.monotonic(), stats.audio_seconds, stats.running, stats.waiting)
        seen = [*before, now][-REMEMBERED:]
        speeds = speed(seen)
        return seen, figures(studio.engine, stats, speeds[-1] if speeds else None) + plots(seen)

    timer.tick(look, looks, [looks, page], show_progress="hidden", api_visibility="private")
    return timer


def speed(looks: Sequence[Look]) -> list[float]:
    """Seconds of audio generated per second since the last refresh."""
    pairs = pairwise(looks)
    return [(late[1] - early[1]) / max(late[0] - early[0], 1e-3) for early, late in pairs]


def figures(engine: SpeechEngine, stats: Stats, made: float | None) -> str:
    """The numbers as a table of tiles."""
    numbers = {
        "State": both("Ready" if engine.alive else "Stopped. Start Timbre again."),
        "Running": f"{stats.running} / {stats.slots}",
        "Waiting": str(stats.waiting),
        "Latency, median": _milliseconds(stats, 0),
        "Latency, p95": _milliseconds(stats, 1),
        "Speed": _times(made),
        "Audio so far": f"{stats.audio_seconds:,.0f} s",
        "Lowest buffer": _seconds(stats.lowest_lead),
        "Dropouts": str(stats.gaps),
        "Real-time capacity": str(stats.realtime_capacity),
        "One stream alone": _times(stats.speed),
        "Memory": _bytes(stats.memory),
        "Profile": both(profile_of(engine)),
    }
    tiles = (f"<div><dt>{both(name)}</dt><dd>{value}</dd></div>" for name, value in numbers.items())
    return f'<dl class="timbre-figures">{"".join(tiles)}</dl>' + replicas(stats)


def replicas(stats: Stats) -> str:
    """Each replica of a cluster in a row; nothing where there is one engine."""
    if not stats.replicas:
        return ""
    heads = ("Replica", "Running", "Waiting", "Lowest buffer", "Audio so far", "Memory")
    head = "".join(f'<th scope="col">{both(name)}</th>' for name in heads)
    rows = "".join(
        "<tr>"
        + f'<th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{value}</td>" for value in _row(each))
        + "</tr>"
        for name, each in sorted(stats.replicas.items())
    )
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<table class="timbre-replicas">{body}</table>' + dashboard(stats.dashboard)


def dashboard(address: str) -> str:
    if not address.startswith(("http://", "https://")):
        return ""
    link = f'<a href="{escape(address)}" target="_blank" rel="noopener noreferrer">'
    return f"<p>{link}{both('Processes and logs, in the dashboard of Ray')}</a></p>"


def _row(stats: Stats) -> tuple[str, ...]:
    return (
        f"{stats.running} / {stats.slots}",
        str(stats.waiting),
        _seconds(stats.lowest_lead),
        f"{stats.audio_seconds:,.0f} s",
        _bytes(stats.memory),
    )


def plots(looks: Sequence[Look]) -> str:
    """The last two minutes as lines."""
    lines = {
        "Running": [float(each[2]) for each in looks],
        "Waiting": [float(each[3]) for each in looks],
        "Speed (× real time)": speed(looks),
    }
    return f'<div class="timbre-plots">{"".join(_plot(*each) for each in lines.items())}</div>'


def profile_of(engine: SpeechEngine) -> str:
    """The profile with these settings. One that leaves the lag to the device has any."""
    now, depth = engine.settings, {"pipeline_depth": engine.settings.pipeline_depth}
    for name in profiles():
        profile = load_profile(name)
        if now == (profile.model_copy(update=depth) if profile.pipeline_depth is None else profile):
            return name
    return "settings of its own"


def _plot(name: str, values: Sequence[float]) -> str:
    top = max([1.0, *values])
    across = max(1, len(values) - 1)
    points = " ".join(f"{i / across:.4f},{1 - value / top:.4f}" for i, value in enumerate(values))
    return (
        f"<figure><figcaption>{both(name)} ≤ {top:.0f}</figcaption>"
        f'<svg viewBox="0 -0.04 1 1.08" preserveAspectRatio="none" role="img" {labelled(name)}>'
        f'<polyline points="{points}"/></svg></figure>'
    )


def _times(speed: float | None) -> str:
    return "–" if speed is None else both("{speed}× real time", speed=f"{speed:.1f}")


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s"


def _milliseconds(stats: Stats, which: int) -> str:
    return "–" if stats.first_audio is None else f"{1000 * stats.first_audio[which]:.0f} ms"


def _bytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
