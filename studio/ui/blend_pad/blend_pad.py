"""The blend pad as a Gradio component: static/pad/pad.js in a `gr.HTML`.

Its value is the names of the voices and the position of the handle. Its event `release` has the new
position. Knows no voices and no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import gradio as gr

from studio.ui.blend_pad.pad_weights import CENTRE, CORNERS, MOST, Point
from studio.ui.gradio_compat.events import detail
from studio.ui.gradio_compat.scripts import on_load
from studio.ui.i18n import labelled

TEMPLATE = f"""<div class="timbre-pad">
{'<span class="corner"></span>' * MOST}
<canvas tabindex="0" role="slider" {labelled("Blend of voices: move with the arrow keys")}
 aria-valuemin="0" aria-valuemax="100"></canvas></div>"""


class Handle(TypedDict):
    """The component's value: the corners' names and the position of the handle."""

    names: list[str]
    x: float
    y: float


def handle(names: Sequence[str], at: Point = CENTRE) -> Handle:
    return Handle(names=list(names), x=at[0], y=at[1])


def blend_pad(names: Sequence[str], **kwargs: Any) -> gr.HTML:
    """A pad whose event `release` has the handle's position; read it with `released`."""
    return gr.HTML(
        value=handle(names),
        html_template=TEMPLATE,
        apply_default_css=False,
        js_on_load=on_load("static/pad/pad.js", ("release",), corners=CORNERS),
        **kwargs,
    )


def released(event: gr.EventData) -> Point:
    """Where the handle was released."""
    return float(detail(event)["x"]), float(detail(event)["y"])
