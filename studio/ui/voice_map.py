"""The map of voices as a Gradio component: static/map/map.js in a `gr.HTML`.

Its value is all voices of a model with their places, and the moods with their directions. Its event
`release` has the blend formula of a place that was let go, `hear` that of a voice pointed at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypedDict

import gradio as gr
import numpy as np

from engine import Blend, Clone, InvalidSetting, SpeechEngine, Vector
from studio.context import Studio
from studio.ui.gradio_compat.events import detail
from studio.ui.gradio_compat.scripts import on_load
from studio.ui.i18n import both, labelled
from studio.ui.voice_cards import colour_of
from studio.voices.voice_catalog import Choices
from studio.voices.voice_plane import voice_plane

LEAST_PRESETS: Final = 3  # that give the map its plane; else the first saved voices do
REFERENCE: Final = 64  # saved voices
LONGEST_FORMULA: Final = 4096
EVENTS: Final = ("release", "hear")
EMPTY: Final = "No voice here has a vector to draw. Load a model with voices."
POINTED: Final = "Play voices that are pointed at"
LABEL: Final = "Map of voices: the arrow keys move the cross, Enter plays what is there"
SEARCH: Final = "Search voices"


class Spot(TypedDict):
    """A voice on the map."""

    key: str
    name: str
    written: str  # its name in a blend formula
    preset: bool
    colour: str
    x: float
    y: float


class Arrow(TypedDict):
    """A mood: where it moves a voice."""

    name: str
    x: float
    y: float


class MapValue(TypedDict):
    """The component's value."""

    spots: list[Spot]
    moods: list[Arrow]


NOWHERE: Final = MapValue(spots=[], moods=[])


def map_html() -> str:
    return f"""<div class="timbre-map">
<div class="field"><canvas tabindex="0" role="slider" {labelled(LABEL)}
 aria-valuemin="0" aria-valuemax="100" aria-valuenow="50"></canvas>
<p class="empty" hidden>{both(EMPTY)}</p></div>
<div class="side">
<label class="aloud"><input type="checkbox" checked>{both(POINTED)}</label>
<input type="search" {labelled(SEARCH)} placeholder="{SEARCH}">
<ul {labelled("Voices on the map")}></ul>
<p class="more"></p>
<p class="there" role="status"></p>
<a class="use" href="#use-voice=">{both("Use in Speak")}</a>
</div></div>"""


def voice_map(**kwargs: Any) -> gr.HTML:
    """A map without voices; `map_value` fills it."""
    return gr.HTML(
        value=NOWHERE,
        html_template=map_html(),
        apply_default_css=False,
        js_on_load=on_load("static/map/map.js", EVENTS),
        **kwargs,
    )


def formula_of(event: gr.EventData) -> str:
    """The blend formula that the map has sent. Strangers may send anything."""
    sent = detail(event).get("recipe")
    if not isinstance(sent, str) or len(sent) > LONGEST_FORMULA:
        raise InvalidSetting("The page is older than the studio. Reload it.")
    return sent


def map_value(studio: Studio, model: str = "") -> MapValue:
    """All voices that can be blended for a model, and its moods."""
    capabilities = studio.engine.capabilities()
    able = [key for key, each in capabilities.items() if each.clone or each.preset]
    if not able:
        return NOWHERE
    key = model if model in able else able[0]
    chosen = capabilities[key]
    choices = Choices({key: chosen}, studio.library)
    found = list(_vectors(studio.engine, choices, key, chosen.width))
    if not found:
        return NOWHERE
    presets = [vector for spot, vector in found if spot["preset"]]
    saved = [vector for spot, vector in found if not spot["preset"]]
    enough = len(presets) >= LEAST_PRESETS
    plane = voice_plane(presets if enough else [*presets, *saved][:REFERENCE])
    places = plane.places([vector for _, vector in found])
    moods = [each.mood for each in choices.moods.list() if len(each.mood.shift) == chosen.width]
    ways = plane.shifts([mood.shift for mood in moods])
    return MapValue(
        spots=[
            {**spot, "x": _round(x), "y": _round(y)}
            for (spot, _), (x, y) in zip(found, places, strict=True)
        ],
        moods=[
            Arrow(name=mood.name, x=_round(x), y=_round(y))
            for mood, (x, y) in zip(moods, ways, strict=True)
        ],
    )


def _vectors(
    engine: SpeechEngine, choices: Choices, model: str, width: int
) -> Iterator[tuple[Spot, Vector]]:
    """Voices with their vectors; presets first, then saved ones in the order in which they were
    saved."""
    for choice, voice, colour in choices.blendable():
        if isinstance(voice, Clone):
            vector = voice.vector
        else:
            routed = engine.resolve(Blend(((voice, 1.0),)), model).voice
            assert isinstance(routed, Clone)
            vector = routed.vector
        if len(vector) != width or not np.isfinite(vector).all():
            continue
        spot = Spot(
            key=choice.key,
            name=choice.label,
            written=choice.written,
            preset=choice.kind == "preset",
            colour=colour or colour_of(choice.key),
            x=0.0,
            y=0.0,
        )
        yield spot, vector


def _round(number: float) -> float:
    return round(float(number), 4)
