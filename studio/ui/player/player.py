"""The live player as a Gradio component: the scripts of this folder in a `gr.HTML`.

The component shows nothing: it watches its value and plays it, and the page's one player bar
(bar.js) shows the player that began last. The scripts are in the page's head once (`HEAD`), where
they run before any component is built. This module knows no engine.
"""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component
from gradio.events import Dependency

from studio.takes.event_transport import Payload
from studio.takes.live_takes import LiveTakes
from studio.ui.i18n import tell
from studio.ui.player.labels import WORDS

FOLDER = Path(__file__).parent
WORKLET = ("playout.js", "stretch.js", "resample.js", "worklet.js")
PAGE = ("plain.js", "sound.js", "feed.js", "wave.js", "bar.js", "player.js")

PLAYING: dict[str, Any] = {
    "concurrency_limit": None,
    "show_progress": "hidden",
    "trigger_mode": "multiple",
    "api_visibility": "private",
}

MOUNT = """
const root = element.querySelector('.timbre-source');
const page = {
  ask: (id, start) => server.missing({ id, start }),
  leave: (id) => server.leave({ id }).catch(() => {}),
  tell: (event, detail) => trigger({ take: 'take', heard: 'heard', stop: 'stop' }[event], detail),
};
const player = window.timbre.mount(root, OPTIONS, page);
if (props.value) player.feed.past.add(props.value.id);
watch('value', () => player.take(props.value));
"""


def live_player(takes: LiveTakes, *, language: str = "", **kwargs: Any) -> gr.HTML:
    """A player for what `takes.play` yields.

    Its events: `take` (the audio is complete and saved), `heard` (playback has ended) and `stop`.
    `language` is "en" or "zh"; by default the browser's.

    A function, not a subclass: Gradio writes a .pyi file for every subclass of its components.
    """

    async def missing(gap: dict[str, Any]) -> Payload | None:
        return takes.missing(str(gap["id"]), int(gap["start"]))

    async def leave(left: dict[str, Any]) -> None:
        takes.leave(str(left["id"]))

    return gr.HTML(
        html_template='<div class="timbre-source"></div>',
        apply_default_css=False,
        js_on_load=MOUNT.replace("OPTIONS", json.dumps({"language": language})),
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

    A custom event, such as `html.again`, comes alone: `gr.on` takes none.
    """
    how = {**PLAYING, "preprocess": preprocess}
    spoken, values = translated(speak), list(inputs)
    if isinstance(triggers[0], functools.partial):
        return triggers[0](spoken, values, player, **how)  # type: ignore[no-any-return]
    return gr.on(list(triggers), spoken, values, player, **how)  # type: ignore[no-any-return]


def translated(speak: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    """The same handler; messages in its payloads are in the language of the browser."""

    @functools.wraps(speak)
    async def told(*values: Any) -> AsyncIterator[Any]:
        async for payload in speak(*values):
            ended = payload.get("ended")
            yield (
                {**payload, "ended": {**ended, "message": tell(ended["message"])}}
                if (ended)
                else payload
            )

    return told


def _script() -> str:
    """The scripts as one closure."""
    data = {"WORDS": WORDS, "CSS_TEXT": _text("player.css"), "WORKLET": _joined(WORKLET)}
    constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in data.items())
    return f"(() => {{\n{constants}{_joined(PAGE)}}})();"


def _joined(names: Sequence[str]) -> str:
    return "\n".join(map(_text, names))


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


HEAD = f"<script>{_script()}</script>"  # of a page with live players
