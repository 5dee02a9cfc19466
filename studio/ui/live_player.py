"""The live player as a Gradio component: static/player/player.js in a `gr.HTML`.

The component shows nothing: it watches its value and plays it, and the page's one player bar
(static/player/bar.js) shows the player that began last. Knows no engine.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component

from studio.takes.event_transport import Payload
from studio.takes.live_takes import LiveTakes
from studio.ui.gradio_compat.events import Dependency, on
from studio.ui.gradio_compat.scripts import on_load
from studio.ui.i18n import tell

PLAYING: dict[str, Any] = {
    "concurrency_limit": None,
    "show_progress": "hidden",
    "trigger_mode": "multiple",
    "api_visibility": "private",
}


def live_player(takes: LiveTakes, **kwargs: Any) -> gr.HTML:
    """A player for what `takes.play` yields.

    Its events: `take` (the audio is complete and saved), `heard` (playback has ended) and `stop`.

    A function, not a subclass: Gradio writes a .pyi file for every subclass of its components.
    """

    async def missing(gap: dict[str, Any]) -> Payload | None:
        return takes.missing(str(gap["id"]), int(gap["start"]))

    async def leave(left: dict[str, Any]) -> None:
        takes.leave(str(left["id"]))

    return gr.HTML(
        html_template='<div class="timbre-source"></div>',
        apply_default_css=False,
        js_on_load=on_load("static/player/player.js", ("take", "heard", "stop")),
        server_functions=[missing, leave],
        **kwargs,
    )


def plays(
    player: gr.HTML,
    triggers: Sequence[Any],
    speak: Callable[..., AsyncIterator[Payload]],
    inputs: Sequence[Component] = (),
    preprocess: bool = True,
) -> Dependency:
    """Let triggers (`[button.click, text.submit]`) speak to a player; the latest one wins.

    A custom event, such as `html.again`, comes alone.
    """
    how = {**PLAYING, "preprocess": preprocess}
    spoken, values = translated(speak), list(inputs)
    return on(triggers, spoken, values, player, **how)


def translated(speak: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    """The same handler; messages in its payloads are in the language of the browser."""

    @functools.wraps(speak)
    async def translate(*values: Any) -> AsyncIterator[Any]:
        async for payload in speak(*values):
            ended = payload.get("ended")
            yield (
                {**payload, "ended": {**ended, "message": tell(ended["message"])}}
                if (ended)
                else payload
            )

    return translate
