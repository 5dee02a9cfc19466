"""The Music section of the Script tab: a file under the script, a chapter or some lines.

The store keeps it (studio/scripts/music); the section shows the music of the open script, one piece
at a time. Every field is saved as it is changed, and shows what Undo brings back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import gradio as gr

from engine import SAMPLE_RATE, InvalidSetting, Message, RequestError, TimbreError
from studio.context import Studio
from studio.imports.music_file import LONGEST, SUFFIXES
from studio.scripts.model import Script
from studio.scripts.music.cue import (
    LONGEST_FADE,
    LOUDEST,
    MOST_DUCKING,
    PLAIN,
    QUIETEST,
    Cue,
    chapters_of,
    lines_under,
)
from studio.scripts.open_script import OpenScript
from studio.scripts.rendering.script_music import cue_of, preview
from studio.takes.event_transport import Payload, refusal
from studio.takes.live_take import About
from studio.ui.gradio_compat.events import Trigger
from studio.ui.i18n import inform, tell, warn, word
from studio.ui.live_player import plays
from studio.ui.sound_card import hear
from studio.ui.tabs.script.handlers import BARE, LATEST, warned
from studio.ui.tabs.script.options import moments_of
from studio.ui.tabs.voice_form import FOUND_LATER, QUIET, Update

WHERE: Final = {"script": "Whole script", "chapter": "Chapter", "lines": "Lines"}
CUT: Final = "“{name}” lasts longer: its first {most:.0f} minutes are used."
DROP: Final = "Add music: drop a file here"


class Fields(NamedTuple):
    """The fields of a piece of music: their components, or what is in them."""

    over: Any
    chapter: Any  # the number of a chapter
    first: Any  # line, 1 for the first
    last: Any
    level: Any
    ducking: Any
    fade_in: Any
    fade_out: Any
    loop: Any


SHOWN: Final = 3 + len(Fields._fields)  # the menu, the editor, the fields as they were sent
Answer: TypeAlias = tuple[tuple[Any, ...], tuple[Update, ...]]  # what was asked, what is shown


class MusicSection:
    """The event handlers. A script and a piece of music are named by the page."""

    def __init__(self, studio: Studio) -> None:
        self._studio, self._store, self._music = studio, studio.scripts, studio.music

    def show(
        self, number: str, picked: int | None = None, known: Sequence[Any] = ()
    ) -> tuple[Update, ...]:
        """The script's music, with the fields of one piece: the picked one, or the first.

        `known`: the fields as the page had them from here; those that are still so stay as they
        are in the page, where somebody may be typing.
        """
        try:
            opened = self._store.look(number)
        except RequestError:  # deleted meanwhile
            opened = self._store.blank()
        cues = opened.project.cues
        cue = next((each for each in cues if each.id == picked), cues[0] if cues else None)
        gone = opened.music.missing if opened.music else ()
        choices = [(f"⚠️ {each.name}" if each in gone else each.name, each.id) for each in cues]
        menu = gr.update(choices=choices, value=cue.id if cue else None, visible=bool(cues))
        fields = _fields_of(cue or PLAIN, opened.script)
        same = cue is not None and cue.id == picked
        before = known if same and len(known) == len(fields) else (None,) * len(fields)
        updates = Fields(
            *(
                gr.skip() if now == had else gr.update(value=now)
                for now, had in zip(fields, before, strict=True)
            )
        )
        shown = _placed(updates, fields.over, opened.script)
        return menu, gr.update(visible=cue is not None), fields, *shown

    def add(self, number: str, path: str | None) -> tuple[Update, ...]:
        with warned():
            if not path:
                return (gr.skip(),) * SHOWN
            opened = self._music.add(number, Path(path), {})
            cue = opened.project.cues[-1]
            assert opened.sounds is not None
            if opened.sounds.samples(cue.sound) >= LONGEST * SAMPLE_RATE:
                inform(Message(CUT, name=cue.name, most=LONGEST / 60))
            return self.show(number, cue.id)
        return self.show(number)

    def change(
        self, number: str, picked: int | None, shown: Sequence[Any], *values: Any
    ) -> tuple[Update, ...]:
        """Save the fields that are not as they were shown: the others may have been changed since,
        by Undo or in another tab."""
        try:
            opened, cue = self._store.look(number), _number(picked)
            now = _fields_of(cue_of(opened, cue), opened.script)
            fields = zip(values, shown, now, strict=True)
            wanted = Fields(*(new if value == before else value for value, before, new in fields))
            self._music.change(number, cue, _values(opened, wanted))
        except TimbreError as error:
            warn(error.message)
            return self.show(number, picked)  # as it is
        return self.show(number, picked, values)

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


def music_section(
    studio: Studio,
    opened: gr.Textbox,
    player: gr.HTML,
    changed: Trigger,
    read: Callable[[Trigger], Any],
) -> list[Any]:
    """Build the section; returns its events that change the script. `changed`: the event of a
    change of the script by others; `read`: has typed text read at a moment."""
    handlers = MusicSection(studio)
    with gr.Accordion(word("Music"), open=False, elem_id="script-music"):
        picked: Any = gr.Dropdown(
            [],
            value=None,
            label=word("Music"),
            visible=False,
            elem_id="music-picked",
            **FOUND_LATER,
        )
        with gr.Column(visible=False) as editor:
            fields = _fields()
            with gr.Row():
                listen = gr.Button(word("Listen to 10 seconds"), size="sm")
                remove = gr.Button(word("Remove the music"), size="sm")
        upload = gr.File(
            label=word(DROP), file_types=[*SUFFIXES], height=140, elem_id="music-upload"
        )
    known = gr.State(())  # the fields as they were sent to the page
    shown = [picked, editor, known, *fields]
    here = [opened, picked]
    plays(player, [listen.click], handlers.listen, here)

    def answered(
        moment: Trigger,
        work: Callable[..., tuple[Update, ...]],
        inputs: list[Any],
        names: int = len(here),
        zone: Sequence[Any] = (),
        **how: Any,
    ) -> Any:
        """`names`: how many of the inputs tell what the answer is of: a script, a piece in it."""
        answer, landed = gr.State(((), ())), partial(_landed, names)
        done = moment(lambda *values: (values, work(*values)), inputs, answer, **how)
        return done.then(landed, [*here, answer, *zone], [*shown, *zone], **LATEST)

    answered(changed, handlers.show, [*here, known], **LATEST)
    answered(picked.input, handlers.show, here, **BARE)
    moments = partial(gr.on, [moment for each in fields for moment in moments_of(each)])
    add = read(upload.upload).then
    return [
        answered(add, handlers.add, [opened, upload], names=1, zone=[upload], **LATEST),
        answered(moments, handlers.change, [*here, known, *fields], **LATEST),
        answered(remove.click, handlers.remove, here, **QUIET),
    ]


def _landed(
    names: int, number: str, picked: int | None, answer: Answer, *zone: str | None
) -> tuple[Update, ...]:
    """What is shown of an answer: of a script or a piece that was left meanwhile nothing. The drop
    zone is emptied of the file that it was asked with."""
    asked, updates = answer
    same = asked[:names] == (number, picked)[:names]
    emptied = (None if held == asked[-1] else gr.skip() for held in zone)
    return *(updates if same else (gr.skip(),) * SHOWN), *emptied


def _fields() -> Fields:
    with gr.Row():
        over = gr.Radio(
            [(word(label), over) for over, label in WHERE.items()],
            value=PLAIN.over,
            label=word("Plays under"),
            min_width=240,
        )
        chapter = gr.Dropdown(
            [], value=None, label=word("Chapter"), visible=False, elem_id="music-chapter"
        )
        lines: dict[str, Any] = {"precision": 0, "minimum": 1, "min_width": 100, "visible": False}
        first = gr.Number(1, label=word("From line"), **lines)
        last = gr.Number(1, label=word("To line"), **lines)
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
    return Fields(over, chapter, first, last, level, ducking, fade_in, fade_out, loop)


def _placed(updates: Fields, over: str, script: Script) -> Fields:
    """With the fields of its place shown, and others not."""
    chapters = [(_title(script, each), each) for each in chapters_of(script)]
    return updates._replace(
        chapter=_with(updates.chapter, choices=chapters, visible=over == "chapter"),
        first=_with(updates.first, visible=over == "lines"),
        last=_with(updates.last, visible=over == "lines"),
    )


def _with(update: Update, **more: Any) -> Update:
    return gr.update(**{**update, **more}) if "value" in update else gr.update(**more)


def _title(script: Script, chapter: int) -> str:
    title = script.chapters[chapter] if chapter < len(script.chapters) else ""
    if not title and not chapter:
        return tell("Beginning" if len(chapters_of(script)) > 1 else WHERE["script"])
    return title or tell(Message("Chapter {number}", number=chapter + 1))


def _fields_of(cue: Cue, script: Script) -> Fields:
    """The numbers of lines are those that the page shows: 1 for the first."""
    places = lines_under(cue, script) or range(1)
    first, last = places[0], places[-1]
    chapter = script.lines[first].chapter if script.lines else 0
    return Fields(
        cue.over,
        chapter,
        first + 1,
        last + 1,
        cue.level,
        cue.ducking,
        cue.fade_in,
        cue.fade_out,
        cue.loop,
    )


def _values(opened: OpenScript, fields: Fields) -> dict[str, Any]:
    """Fields of a cue. Raises InvalidSetting."""
    over, script = fields.over, opened.script
    first = last = None
    if over == "chapter":
        first = _beginning(script, fields.chapter)
    elif over == "lines":
        first, last = _line(script, fields.first), _line(script, fields.last)
    return {
        "over": over,
        "first": first,
        "last": last,
        "level": fields.level,
        "ducking": fields.ducking,
        "fade_in": fields.fade_in,
        "fade_out": fields.fade_out,
        "loop": bool(fields.loop),
    }


def _beginning(script: Script, chapter: Any) -> int:
    """The first line of a chapter."""
    for line in script.lines:
        if line.chapter == chapter:
            return line.id
    raise InvalidSetting("The music has no lines. Choose where it plays.")


def _line(script: Script, number: Any) -> int:
    if not isinstance(number, int | float) or not 1 <= number <= len(script.lines):
        raise InvalidSetting(
            "Choose lines from 1 to {count} for the music.", count=len(script.lines)
        )
    return script.lines[int(number) - 1].id


def _number(picked: object) -> int:
    return picked if isinstance(picked, int) else -1  # no music has this id
