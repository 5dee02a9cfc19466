"""The blend pad as a Gradio component: the scripts of this folder in a `gr.HTML`.

Its value is the names of the voices and the position of the handle. Its event `release` has the new
position. Knows no voices and no engine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import gradio as gr

from studio.ui.blend_pad.pad_weights import CENTRE, CORNERS, MOST, Point

FOLDER = Path(__file__).parent

TEMPLATE = f"""<div class="timbre-pad">
{'<span class="corner"></span>' * MOST}
<canvas tabindex="0" role="slider" aria-label="Blend of voices: move with the arrow keys"
 aria-valuemin="0" aria-valuemax="100"></canvas></div>"""

MOUNT = """
const root = element.querySelector('.timbre-pad');
const pad = window.timbrePad.mount(root, OPTIONS, (at) => trigger('release', at));
if (props.value) pad.show(props.value);
watch('value', () => props.value && pad.show(props.value));
"""


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
        js_on_load=MOUNT.replace("OPTIONS", json.dumps({"corners": CORNERS})),
        **kwargs,
    )


def released(event: gr.EventData) -> Point:
    """Where the handle was released."""
    return float(event._data["x"]), float(event._data["y"])


def _script() -> str:
    """The pad's script as one closure."""
    css = json.dumps((FOLDER / "pad.css").read_text(encoding="utf-8"))
    code = (FOLDER / "pad.js").read_text(encoding="utf-8")
    return f"(() => {{\nconst CSS_TEXT = {css};\n{code}}})();"


HEAD = f"<script>{_script()}</script>"  # of a page with a pad
