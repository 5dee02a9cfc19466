"""The Music section of the Script tab: a file under the script, a chapter or some lines.

The store keeps it (studio/scripts/music); the section shows the music of the open script, one piece
at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import gradio as gr

from engine import InvalidSetting, RequestError, TimbreError
from studio.context import Studio
from studio.imports.music_file import SUFFIXES
from studio.scripts.model import Script
from studio.scripts.music.cue import LONGEST_FADE, LOUDEST, MOST_DUCKING, QUIETEST, Cue, lines_under
from studio.scripts.music.script_music import cue_of, preview
from studio.scripts.open_script import OpenScript
from studio.takes.event_transport import Payload, refusal
from studio.takes.live_take import About
from studio.ui.i18n import word
from studio.ui.live_player import plays
from studio.ui.sound_card import hear
from studio.ui.tabs.script.handlers import BARE, warned
from studio.ui.tabs.voice_form import QUIET, Update

WHERE: Final = {"script": "Whole script", "chapter": "Chapter", "lines": "Lines"}
PLAIN: Final = Cue(id=0, sound="none")


class MusicSection:
    """The event handlers. A script and a piece of music are named by the page."""

    def __init__(self, studio: Studio) -> None:
        self._studio, self._store, self._music = studio, studio.scripts, studio.music

    def show(self, number: str, picked: int | None = None) -> tuple[Update, ...]:
        """The script's music, with the fields of one piece: the picked one, or the first."""
        try:
            opened = self._store.look(number)
        except RequestError:  # deleted meanwhile
            opened = self._store.blank()
        cues = opened.project.cues
        cue = next((each for each in cues if each.id == picked), cues[0] if cues else None)
        gone = opened.music.missing if opened.music else ()
        choices = [(f"⚠️ {each.name}" if each in gone else each.name, each.id) for each in cues]
        menu = gr.update(choices=choices, value=cue.id if cue else None)
        fields = _fields_of(cue or PLAIN, opened.script)
        return menu, gr.update(visible=cue is not None), fields, *fields

    def add(self, number: str, path: str) -> tuple[Update, ...]:
        with warned():
            cues = self._music.add(number, Path(path), {}).project.cues
            return self.show(number, cues[-1].id)
        return self.show(number)

    def change(
        self, number: str, picked: int | None, shown: Sequence[Any], *values: Any
    ) -> tuple[Update, ...]:
        """Save the fields that are not as they were shown: the others may have been changed since,
        by Undo or in another tab."""
        with warned():
            opened, cue = self._store.look(number), _number(picked)
            now = _fields_of(cue_of(opened, cue), opened.script)
            fields = zip(values, shown, now, strict=True)
            wanted = tuple(own if value == before else value for value, before, own in fields)
            self._music.change(number, cue, _values(opened, wanted))
        return self.show(number, picked)

    def remove(self, number: str, picked: int | None) -> tuple[Update, ...]:
        with warned():
            self._music.remove(number, _number(picked))
        return self.show(number)

    async def listen(self, number: str, picked: int | None) -> AsyncIterator[Payload]:
        """The first seconds of the mix."""
        try:
            opened = await asyncio.to_thread(self._store.look, number)
            cue = cue_of(opened, _number(picked))
            pcm = await asyncio.to_thread(preview, opened, cue)
        except TimbreError as error:
            yield refusal(error.message)
            return
        async for payload in hear(self._studio, pcm, About(cue.name, "")):
            yield payload


def music_section(studio: Studio, opened: gr.Textbox, player: gr.HTML) -> list[Any]:
    """Build the section; returns its events that change the script."""
    handlers = MusicSection(studio)
    with gr.Accordion(word("Music"), open=False, elem_id="script-music") as section:
        with gr.Row():
            picked: Any = gr.Dropdown(
                [], value=None, label=word("Music"), min_width=200, elem_id="music-picked"
            )
            upload = gr.UploadButton(
                str(word("Add music")), file_types=[*SUFFIXES], size="sm", scale=0, min_width=150
            )
        with gr.Column(visible=False) as editor:
            fields = _fields()
            with gr.Row():
                save = gr.Button(word("Save the music"), size="sm")
                listen = gr.Button(word("Listen to 10 seconds"), size="sm")
                remove = gr.Button(word("Remove the music"), size="sm")
    known = gr.State(())  # the fields as they were shown
    shown = [picked, editor, known, *fields]
    here = [opened, picked]
    opened.change(handlers.show, opened, shown, **BARE)
    section.expand(handlers.show, here, shown, **BARE)
    picked.input(handlers.show, here, shown, **BARE)
    plays(player, [listen.click], handlers.listen, here)
    return [
        upload.upload(handlers.add, [opened, upload], shown, **QUIET),
        save.click(handlers.change, [*here, known, *fields], shown, **QUIET),
        remove.click(handlers.remove, here, shown, **QUIET),
    ]


def _fields() -> list[Any]:
    """In the order of `_fields_of` and `_values`."""
    with gr.Row():
        over = gr.Radio(
            [(word(label), over) for over, label in WHERE.items()],
            value=PLAIN.over,
            label=word("Plays under"),
            min_width=240,
        )
        first = gr.Number(1, label=word("From line"), precision=0, minimum=1, min_width=100)
        last = gr.Number(1, label=word("To line"), precision=0, minimum=1, min_width=100)
    with gr.Row():
        level = gr.Slider(QUIETEST, LOUDEST, PLAIN.level, step=1, label=word("Level in dB"))
        ducking = gr.Slider(
            0, MOST_DUCKING, PLAIN.ducking, step=1, label=word("Lower under speech by dB")
        )
    with gr.Row():
        fade_in = gr.Slider(
            0, LONGEST_FADE, PLAIN.fade_in, step=0.5, label=word("Fade in, seconds")
        )
        fade_out = gr.Slider(
            0, LONGEST_FADE, PLAIN.fade_out, step=0.5, label=word("Fade out, seconds")
        )
        loop = gr.Checkbox(PLAIN.loop, label=word("Repeat a short piece"), min_width=180)
    return [over, first, last, level, ducking, fade_in, fade_out, loop]


def _fields_of(cue: Cue, script: Script) -> tuple[Any, ...]:
    """The numbers of lines are those that the page shows: 1 for the first."""
    places = lines_under(cue, script) or range(1)
    lines = places[0] + 1, places[-1] + 1
    return cue.over, *lines, cue.level, cue.ducking, cue.fade_in, cue.fade_out, cue.loop


def _values(opened: OpenScript, fields: tuple[Any, ...]) -> dict[str, Any]:
    """Fields of a cue. A chapter is that of the first line. Raises InvalidSetting."""
    over, first, last, level, ducking, fade_in, fade_out, loop = fields
    ids = [_line(opened.script, each) if over != "script" else None for each in (first, last)]
    return {
        "over": over,
        "first": ids[0],
        "last": ids[1],
        "level": level,
        "ducking": ducking,
        "fade_in": fade_in,
        "fade_out": fade_out,
        "loop": bool(loop),
    }


def _line(script: Script, number: Any) -> int:
    if not isinstance(number, int | float) or not 1 <= number <= len(script.lines):
        raise InvalidSetting(
            "Choose lines from 1 to {count} for the music.", count=len(script.lines)
        )
    return script.lines[int(number) - 1].id


def _number(picked: object) -> int:
    return picked if isinstance(picked, int) else -1  # no music has this id
