"""The moods of the library: listen, rename, export, import, delete, learn from pairs.

A deleted mood goes to the trash and can be restored. The library handles folders.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import gradio as gr

from engine import (
    InvalidSetting,
    InvalidVoice,
    Message,
    SavedMood,
    SpeechRequest,
    TimbreError,
    UnknownVoice,
)
from studio.context import Studio
from studio.takes.event_transport import Payload
from studio.ui.gradio_compat.pages import outbox
from studio.ui.i18n import tell, warning, word
from studio.ui.live_player import live_player, plays
from studio.ui.tabs.voice_form import (
    ORDERED,
    QUIET,
    Update,
    downloadable,
    on_show,
    try_out,
    uploaded,
)
from studio.voices.moods import MAX_STRENGTH, Source, learn
from studio.voices.voice_catalog import PHRASE

ENDING: Final = ".mood.safetensors"
TOO_LARGE: Final = Message("This file is too large for a mood. Choose one that was exported here.")
MOST_PAIRS: Final = 20  # that are learned at once here
SOUNDS: Final = ["audio"]
CONSENT: Final = "Who speaks in these recordings has agreed that I learn from them."
LEARN: Final = (
    "## Learn a mood\n"
    "From recordings of the same people, plain and in the mood, or from voices that differ in it. "
    "The first plain one belongs to the first in the mood, and so on. Five to ten people give a "
    "mood that fits others."
)
# What is picked is looked up, not compared with a list that the server may have forgotten.
FREE: Final[dict[str, Any]] = {"allow_custom_value": True}
IS_CHANGED: Final = "is changed."


class MoodsTab:
    """Event handlers. `picked` is the id of a mood."""

    def __init__(self, studio: Studio, outbox: Path) -> None:
        self._studio = studio
        self._outbox = outbox  # where files to download are put

    def listed(self, picked: str | None, voice: str | None) -> tuple[Update, ...]:
        """The moods and the voices to try them on, with those that are picked; voices to learn
        from."""
        moods = [(_label(each), each.id) for each in self._moods()]
        known = {key for _, key in moods}
        voices = self.voices(voice)
        keys = [key for _, key in voices]
        return (
            gr.update(choices=moods, value=picked if picked in known else None),
            gr.update(choices=voices, value=voice if voice in keys else next(iter(keys), None)),
            gr.update(choices=voices),
            gr.update(choices=voices),
        )

    def voices(self, picked: str | None = None) -> list[tuple[str, str]]:
        """Labels and keys of voices that a mood can be put on."""
        menu = self._studio.choices().menu("", [picked or ""])
        return [(each.label, each.key) for each in menu.voices if each.kind != "design"]

    def show(self, picked: str | None) -> tuple[Update, ...]:
        """The form of a mood: visibility, name, words, note, facts, file."""
        mood = self._own(picked)
        if mood is None:
            return gr.update(visible=False), "", "", "", "", None
        words = ", ".join(mood.mood.words)
        shown = (mood.name, words, mood.card.note, facts(mood), self._file(mood))
        return gr.update(visible=True), *shown

    def change(self, picked: str | None, name: str, words: str, note: str) -> tuple[Update, ...]:
        """Save the form: a status and the form as it is then. A refused one stays as it is."""
        try:
            library = self._studio.library.moods
            changed = library.change(_one(picked), name.strip(), _words(words), note.strip())
        except TimbreError as error:
            return warning(error), *(gr.skip(),) * len(Card._fields)
        return f"**{changed.name}** {word(IS_CHANGED)}", *self.show(picked)

    def delete(self, picked: str | None) -> tuple[str, Update, Update]:
        """Status, undo ticket, undo button."""
        library = self._studio.library.moods
        try:
            name = library.get(_one(picked)).name
            ticket = library.delete(_one(picked))
        except TimbreError as error:
            return warning(error), gr.skip(), gr.skip()
        undo = gr.update(visible=True, value=f"{tell('Restore')}: {name}")
        return f"**{name}** {word('is deleted.')}", ticket, undo

    def restore(self, ticket: str) -> tuple[str, Update]:
        """Undo a deletion: status, and the button, hidden again."""
        try:
            name = self._studio.library.moods.restore(ticket).name
        except TimbreError as error:
            return warning(error), gr.update(visible=False)
        return f"**{name}** {word('is back.')}", gr.update(visible=False)

    def receive(self, path: str | None) -> str:
        """Import a file; returns a status."""
        try:
            mood = self._studio.library.moods.import_file(uploaded(path, TOO_LARGE))
        except TimbreError as error:
            return warning(error)
        return f"**{mood.name}** {word('is here.')}"

    def learn(
        self,
        name: str,
        words: str,
        plain: Sequence[str] | None,
        moody: Sequence[str] | None,
        plain_voices: Sequence[str] | None,
        moody_voices: Sequence[str] | None,
        agreed: bool,
    ) -> str:
        """Learn a mood from pairs of recordings and of voices; returns a status."""
        try:
            befores: list[Source] = [*map(Path, plain or ()), *(plain_voices or ())]
            afters: list[Source] = [*map(Path, moody or ()), *(moody_voices or ())]
            if len(plain or ()) != len(moody or ()) or len(befores) != len(afters):
                raise InvalidSetting("Each plain one needs one in the mood: give as many of both.")
            if len(befores) > MOST_PAIRS:
                raise InvalidSetting("At most {most} pairs are learned here.", most=MOST_PAIRS)
            if (plain or moody) and not agreed:
                raise InvalidSetting(
                    "Tick the box first: only learn from people who have agreed to it."
                )
            if not name.strip():
                raise InvalidVoice("Give the mood a name first.")
            find = self._studio.choices().read
            pairs = list(zip(befores, afters, strict=True))
            library, taught = self._studio.library, _words(words)
            engine = self._studio.engine
            mood = learn(engine, library, name.strip(), pairs, find, taught, agreed)
        except TimbreError as error:
            return warning(error)
        return f"**{mood.name}** {word('is learned.')} {_learned(mood)}"

    async def speak(
        self, picked: str | None, voice: str | None, strength: float, phrase: str
    ) -> AsyncIterator[Payload]:
        """A voice in the mood."""
        choices, name = self._studio.choices(), self._name(picked)

        def line() -> SpeechRequest:
            moods, mood = choices.moods, self._studio.library.moods.get(_one(picked))
            mooded = moods.put_on(choices.read(voice or ""), mood.name, strength)
            return try_out(phrase, mooded, seed=0)

        shown = f"{choices.shown(voice or '')} · {name}" if voice else name
        async for payload in self._studio.speak(line, shown):
            yield payload

    def _moods(self) -> tuple[SavedMood, ...]:
        return self._studio.library.moods.list()

    def _own(self, picked: str | None) -> SavedMood | None:
        try:
            return self._studio.library.moods.get(picked) if picked else None
        except (UnknownVoice, InvalidVoice):
            return None

    def _name(self, picked: str | None) -> str:
        mood = self._own(picked)
        return mood.name if mood else ""

    def _file(self, mood: SavedMood) -> str:
        """Export to a file in Gradio's cache, which Gradio cleans."""
        data = self._studio.library.moods.export(mood.id)
        return downloadable(self._outbox, f"{mood.id}{ENDING}", data)


def facts(mood: SavedMood) -> str:
    """Read-only details as Markdown."""
    lines = [
        _learned(mood),
        mood.mood.space and tell(Message("For models: {space}", space=mood.mood.space)),
        mood.card.made_from and tell(Message("Made from: {source}", source=mood.card.made_from)),
        mood.built_in and tell(Message("Built in, read-only.")),
    ]
    return "\n\n".join(line for line in lines if line)


def _learned(mood: SavedMood) -> str:
    learned = mood.card.mood
    if learned is None or learned.pairs < 2:
        return tell(Message("Learned from one pair."))
    return tell(
        Message(
            "Learned from {pairs} pairs, which agree by {agreement:.2f} (1: all alike); spread "
            "{spread:.2f}.",
            pairs=learned.pairs,
            agreement=learned.agreement,
            spread=learned.spread,
        )
    )


def _label(mood: SavedMood) -> str:
    return f"{mood.name} · {mood.mood.space}" if mood.mood.space else mood.name


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def _one(picked: str | None) -> str:
    if not picked:
        raise UnknownVoice("Pick a mood in the list first.")
    return picked


class Card(NamedTuple):
    column: gr.Column
    name: gr.Textbox
    words: gr.Textbox
    note: gr.Textbox
    facts: gr.Markdown
    file: gr.DownloadButton


class Lesson(NamedTuple):
    """The fields of a mood to learn, in the order of `learn`."""

    name: gr.Textbox
    words: gr.Textbox
    plain: gr.File
    moody: gr.File
    plain_voices: gr.Dropdown
    moody_voices: gr.Dropdown
    agreed: gr.Checkbox


def build(studio: Studio) -> None:
    """Build the page in the current Blocks context."""
    with gr.Row():
        with gr.Column(min_width=320):
            picked = gr.Dropdown([], value=None, label=word("Mood"), elem_id="library-mood", **FREE)
            receive = gr.UploadButton(str(word("Import a mood")), file_types=[".safetensors"])
            undo = gr.Button(word("Restore"), visible=False)
            status = gr.Markdown(min_height=24, elem_id="moods-status")
        with gr.Column(min_width=320, visible=False) as column:
            card, change, delete = _card(column)
            voice, strength, phrase, listen = _trial()
    player = live_player(studio.live, elem_id="moods-player")
    tab = MoodsTab(studio, outbox(card.file))
    lesson, learned = _lesson()
    ticket, changes = gr.State(""), gr.State(0)
    lists = [picked, voice, lesson.plain_voices, lesson.moody_voices]
    on_show(tab.listed, lists, [picked, voice], [changes.change])
    # in turn: an answer of the mood that was picked before would be that of this one
    picked.change(tab.show, picked, list(card), **ORDERED)
    details = [card.name, card.words, card.note]
    changed = change.click(tab.change, [picked, *details], [status, *card], **ORDERED)
    deleted = delete.click(tab.delete, picked, [status, ticket, undo], **QUIET)
    restored = undo.click(tab.restore, ticket, [status, undo], **QUIET)
    received = receive.upload(tab.receive, receive, status, **QUIET)
    lessons = learned.click(tab.learn, list(lesson), status, **{**QUIET, "show_progress": "full"})
    for event in (changed, deleted, restored, received, lessons):
        event.then(lambda before: before + 1, changes, changes, **QUIET)
    plays(player, [listen.click], tab.speak, [picked, voice, strength, phrase])


def _card(column: gr.Column) -> tuple[Card, gr.Button, gr.Button]:
    with gr.Row():
        name = gr.Textbox("", label=word("Name"), max_lines=1)
        words = gr.Textbox(
            "",
            label=word("Other words for it in texts"),
            info=word("With commas between them"),
            max_lines=1,
        )
    note = gr.Textbox("", label=word("Note"), max_lines=4)
    status = gr.Markdown()
    with gr.Row():
        change = gr.Button(word("Save changes"), variant="primary", min_width=120)
        file = gr.DownloadButton(str(word("Export")), min_width=120)
        delete = gr.Button(word("Delete"), variant="stop", min_width=120)
    return Card(column, name, words, note, status, file), change, delete


def _trial() -> tuple[gr.Dropdown, gr.Slider, gr.Textbox, gr.Button]:
    with gr.Row():
        voice = gr.Dropdown([], value=None, label=word("Voice"), **FREE)
        strength = gr.Slider(
            0, MAX_STRENGTH, value=1, step=0.05, label=word("Strength of the mood")
        )
    phrase = gr.Textbox(PHRASE, label=word("What to say"), max_lines=3)
    return voice, strength, phrase, gr.Button(word("Listen"))


def _lesson() -> tuple[Lesson, gr.Button]:
    gr.Markdown(word(LEARN))
    many: dict[str, Any] = {"file_count": "multiple", "file_types": SOUNDS, "height": 140}
    several: dict[str, Any] = {"multiselect": True, "max_choices": MOST_PAIRS, **FREE}
    with gr.Row():
        name = gr.Textbox("", label=word("Name"), max_lines=1)
        words = gr.Textbox("", label=word("Other words for it in texts"), max_lines=1)
    with gr.Row():
        plain = gr.File(label=word("Recordings, plain"), **many)
        moody = gr.File(label=word("Recordings, in the mood"), **many)
    with gr.Row():
        plain_voices = gr.Dropdown([], label=word("Voices, plain"), **several)
        moody_voices = gr.Dropdown([], label=word("Voices, in the mood"), **several)
    agreed = gr.Checkbox(label=word(CONSENT))
    fields = Lesson(name, words, plain, moody, plain_voices, moody_voices, agreed)
    return fields, gr.Button(word("Learn"), variant="primary")
