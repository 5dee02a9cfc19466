"""Shared parts of the voice tabs: trial playback, the save form, errors. Knows no tab."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import gradio as gr

from engine import (
    Clone,
    Design,
    InvalidVoice,
    Message,
    SavedVoice,
    SpeechRequest,
    Voice,
    folded,
)
from studio.context import Studio
from studio.ui.gradio_compat.events import Dependency, Trigger, page_load, tabs_around
from studio.ui.gradio_compat.turns import IN_TURN
from studio.ui.i18n import tell, word
from studio.ui.voice_cards import use_link
from studio.voices.voice_catalog import PHRASE

Update: TypeAlias = Any  # what Gradio takes for a component

SAVED: Final = "is saved. You find it in every list of voices."
MAX_FILE: Final = 1 << 20  # bytes; a voice has some ten thousand
COLOUR: Final = "#4f7cac"
_HEX: Final = re.compile("#[0-9a-fA-F]{6}")
_NUMBER: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,30})?")
# Runs concurrently, shows no progress over the page, and is no public endpoint.
QUIET: Final[dict[str, Any]] = {
    "concurrency_limit": None,
    "show_progress": "hidden",
    "api_visibility": "private",
}
# Of one page one after the other: each is answered before the next one is read.
ORDERED: Final[dict[str, Any]] = {**QUIET, **IN_TURN}
# Of a menu whose choices come after the page: a server that was started again knows none of them.
FOUND_LATER: Final[dict[str, Any]] = {"allow_custom_value": True}


def quoted(text: str) -> str:
    """A text to read aloud, as HTML."""
    return f'<blockquote class="timbre-quote">{escape(text)}</blockquote>'


def model_menu(names: Sequence[str]) -> gr.Dropdown:
    """The choice of a model; hidden where there is only one."""
    return gr.Dropdown(**_models(names, ""), label=word("Model"))


def models_now(names: Sequence[str], picked: str | None) -> Update:
    """The loaded models; the selected one stays selected if it is still loaded."""
    return gr.update(**_models(names, picked or ""))


def _models(names: Sequence[str], picked: str) -> dict[str, Any]:
    choices = [(word("Auto"), ""), *((name, name) for name in names)]
    return {
        "choices": choices,
        "value": picked if picked in names else "",
        "visible": len(names) > 1,
    }


class SaveForm(NamedTuple):
    """The fields of a voice that is saved."""

    name: gr.Textbox
    colour: gr.ColorPicker
    note: gr.Textbox
    button: gr.Button
    status: gr.Markdown

    @property
    def fields(self) -> list[gr.components.Component]:
        return [self.name, self.colour, self.note]


def save_form() -> SaveForm:
    with gr.Row():
        name = gr.Textbox(
            "", label=word("Name"), max_lines=1, placeholder=word("For example: Grandmother")
        )
        colour = gr.ColorPicker(label=word("Colour"), value=COLOUR, scale=0, min_width=110)
    note = gr.Textbox("", label=word("Note (optional)"), max_lines=3)
    button = gr.Button(word("Save as voice"))
    return SaveForm(name, colour, note, button, gr.Markdown(min_height=24))


def save_voice(
    studio: Studio, name: str, colour: str, note: str, voice: Clone | Design, **details: Any
) -> SavedVoice:
    """Save a voice under a name that no other voice has. Raises InvalidVoice."""
    card = {"colour": hex_colour(colour), "note": note.strip(), **details}
    return studio.library.save(checked_name(studio, name), voice, **card)


def saved_line(saved: SavedVoice, message: str) -> str:
    """The message that a voice is saved, as Markdown, with a link to use it."""
    link = use_link(f"#{saved.id}").replace("=#", "=%23")
    return f"**{saved.name}** {tell(message)} [{tell('Use in Speak')}]({link})"


def checked_name(studio: Studio, name: str, own: str = "") -> str:
    """The name, if no other voice has it; `own` is the id of the voice that is renamed."""
    wanted = " ".join(name.split())
    if not wanted:
        raise InvalidVoice("Give the voice a name first.")
    speakers = map(folded, studio.choices().speakers())
    saved = studio.library.named(wanted)
    if folded(wanted) in speakers or (saved and saved.id != own):
        raise InvalidVoice(
            "There is a voice called '{name}' already. Choose another name.", name=wanted
        )
    return wanted


def hex_colour(colour: str | None) -> str:
    """`#rrggbb` from what the picker sends, which may be `rgba(…)`; empty where it is neither."""
    text = (colour or "").strip()
    if text.startswith("rgb"):
        found = _NUMBER.findall(text)[:3]
        levels = [f"{min(255, round(float(level))):02x}" for level in found]
        text = f"#{''.join(levels)}" if len(levels) == 3 else ""
    return text if _HEX.fullmatch(text) else ""


def uploaded(path: str | None, too_large: Message) -> bytes:
    """A file of a voice or a mood, read as far as it may be long."""
    if not path:
        raise InvalidVoice("Choose a file first.")
    with Path(path).open("rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise InvalidVoice(too_large)
    return data


def downloadable(outbox: Path, name: str, data: bytes) -> str:
    """The path of a file to download: in Gradio's cache, which Gradio cleans."""
    folder = outbox / secrets.token_hex(16)
    folder.mkdir(parents=True)
    path = folder / name
    path.write_bytes(data)
    return str(path)


def try_out(text: str, voice: Voice, seed: int | None = None) -> SpeechRequest:
    return SpeechRequest(text=text.strip() or PHRASE, voice=voice, seed=seed)


def on_show(
    refresh: Callable[..., Any],
    outputs: list[Any],
    inputs: list[Any] | None = None,
    also: Sequence[Trigger] = (),
    opening: bool = True,
    **how: Any,
) -> Dependency:
    """Run when a tab around this is chosen or (`opening`) the page opens with it, and at `also`.
    A tab that the page opens with is not chosen (gradio_compat/script_mends.py).

    All are one event of Gradio's, which runs once at a time and once more for what came meanwhile:
    an older answer never replaces a newer one. `how`: more arguments of that event.
    """
    tabs, load = [*tabs_around()], page_load()
    moments = [tab.select for tab in tabs]
    if opening and load and all(map(_is_open, tabs)):
        moments.append(load)
    how = {"trigger_mode": "always_last", **QUIET, **how}
    return gr.on([*moments, *also], refresh, inputs, outputs, **how)  # type: ignore[no-any-return]


def _is_open(tab: gr.Tab) -> bool:
    """Whether a page opens with this tab."""
    siblings = tab.parent.children if isinstance(tab.parent, gr.Tabs) else [tab]
    return siblings[0] is tab
