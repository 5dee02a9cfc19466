"""A Script tab, pressed as a page would press it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np

from engine import SAMPLE_RATE
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.shown import Shown
from studio.ui.tabs.script.view import View
from tests.support.tab_makers import heard, payloads_of

LINES = 6  # of the example
LONG = "\n\n".join(f"This is the sentence with the number {number}." for number in range(60))


def event(**data: Any) -> gr.EventData:
    return SimpleNamespace(_data=data)  # type: ignore[return-value]


def act(tab: ScriptTab, number: str, **data: Any) -> Any:
    """Press a button while the text field is empty."""
    return tab.act(number, "", View(), "", "", event(**data))


def page(tab: ScriptTab, number: str, mine: str = "") -> Shown:
    """What a page shows that has just opened."""
    return Shown(*tab.show(number, mine)[: len(Shown._fields)])


def html(shown: Any) -> str:
    return "".join(piece for _, piece in shown["items"])


def statuses(tab: ScriptTab, number: str) -> list[str]:
    opened = tab.store.open(number)
    return [tab.playback.line_status(opened)(job)[0] for job in opened.jobs]


def spoken(tab: ScriptTab, number: str, aloud: bool = True) -> bytes:
    payloads = payloads_of(tab.playback.speak(number, aloud))
    return heard([each for each in payloads if each])


def whole(tab: ScriptTab, number: str) -> bytes:
    """The expected audio: every line with the silence after it."""
    opened = tab.store.open(number)
    assert opened.sounds
    parts = []
    for job in opened.jobs:
        parts += [opened.sounds.read(job.key)] if job.key else []
        parts += [np.zeros(round(job.pause * SAMPLE_RATE), np.int16)]
    return np.concatenate(parts).tobytes()
