"""The voice library: search, play, edit, export, import, delete, restore.

A deleted voice goes to the trash and can be restored. The library handles folders.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Final, NamedTuple

import gradio as gr

from engine import InvalidVoice, Message, SavedVoice, SpeechRequest, TimbreError, UnknownVoice
from studio.context import Studio
from studio.scripts.voice_usage import usage_of
from studio.takes.event_transport import Payload
from studio.ui.drafts import SCRIPT, browser_id
from studio.ui.gradio_compat.events import detail
from studio.ui.gradio_compat.pages import outbox
from studio.ui.gradio_compat.scripts import on_event
from studio.ui.i18n import tell, warning, word
from studio.ui.live_player import live_player, plays
from studio.ui.tabs.voice_form import (
    COLOUR,
    ORDERED,
    QUIET,
    Update,
    checked_name,
    downloadable,
    hex_colour,
    on_show,
    try_out,
    uploaded,
)
from studio.ui.voice_cards import PRESSES, cards
from studio.ui.voice_list import SHOWN, counted, favourite_voices, found_cards, toggled
from studio.voices.consent_recordings import ConsentRecording, consent_of, consent_sound
from studio.voices.voice_catalog import PHRASE

WHICH: Final = (
    ("All", "all"),
    ("Starred", "starred"),
    ("Preset", "preset"),
    ("Cloned", "clone"),
    ("Trained", "trained"),
    ("Designed", "design"),
    ("Blended", "blend"),
)
FORM: Final = ("name", "tags", "colour", "note")
ENDING: Final = ".voice.safetensors"
TOO_LARGE: Final = Message("This file is too large for a voice. Choose one that was exported here.")
NO_SOUND: Final = gr.update(value=None, visible=False)
EMPTY: Final = Message(
    "No voice is kept yet. Make one under Clone, Design or Blend, or import a file from somebody."
)
KINDS: Final = {
    "clone": Message("cloned"),
    "trained": Message("trained"),
    "blend": Message("blended"),
    "design": Message("designed"),
}


class VoicesTab:
    """Event handlers. `picked` is the id of a voice."""

    def __init__(self, studio: Studio, outbox: Path) -> None:
        self._studio = studio
        self._outbox = outbox  # where files to download are put

    def search(
        self, words: str, which: str, picked: str | None, favourites: Sequence[str] | None
    ) -> tuple[str, str, Update]:
        """The cards, a summary, and the selection: cleared if it is not listed.

        Otherwise the selection is not sent, since it may have changed meanwhile.
        """
        starred = favourites or []
        found = [
            voice
            for voice in found_cards(self._studio, words, starred)
            if which in ("all", voice.kind) or (which == "starred" and voice.key in starred)
        ]
        gone = picked and f"#{picked}" not in {voice.key for voice in found[:SHOWN]}
        return (
            cards(found[:SHOWN], starred),
            self._summary(len(found), words),
            "" if gone else gr.skip(),
        )

    def act(self, favourites: Sequence[str] | None, event: gr.EventData) -> tuple[Update, Update]:
        """Handle a button of a card: the voice to edit, and the favourites."""
        key = str(detail(event).get("voice"))
        if detail(event).get("do") == "edit":
            return key.removeprefix("#"), gr.skip()
        return gr.skip(), toggled(favourites or [], key)

    async def hear(self, phrase: str, event: gr.EventData) -> AsyncIterator[Payload]:
        """Play a sample of a card's voice."""

        key = str(detail(event).get("voice"))

        def line() -> SpeechRequest:
            return try_out(phrase, self._studio.choices().named(key))

        async for payload in self._studio.speak(line, self._studio.choices().shown(key)):
            yield payload

    def show(self, picked: str | None) -> tuple[Update, ...]:
        """The form of a voice: visibility, name, tags, colour, note, these four as they are shown,
        facts, consent, file."""
        voice = self._own(picked)
        if voice is None:
            return gr.update(visible=False), "", "", COLOUR, "", (), "", NO_SOUND, None
        card = voice.card
        written = (voice.name, ", ".join(card.tags), card.colour or COLOUR, card.note)
        return (
            gr.update(visible=True),
            *written,
            written,
            facts(
                voice,
                self._studio.choices().stranger(voice.voice),
                consent_of(self._studio.library, voice),
            ),
            self._consent(voice),
            self._file(voice),
        )

    def change(
        self,
        picked: str | None,
        name: str,
        tags: str,
        colour: str,
        note: str,
        shown: Sequence[str] = (),
    ) -> tuple[Update, ...]:
        """Save the form: a status and the form as it is then; one that is refused stays as it is.

        `shown`: the fields as they were shown; what is still so keeps what another page may have
        saved.
        """
        now = (name, tags, colour, note)
        pairs = zip(FORM, shown, now, strict=False)
        kept = {field for field, was, own in pairs if was == own}
        try:
            wanted = {
                "name": name if "name" in kept else checked_name(self._studio, name, picked or ""),
                "tags": split_tags(tags),
                "colour": hex_colour(colour),
                "note": note.strip(),
            }
            given = {field: value for field, value in wanted.items() if field not in kept}
            changed = self._studio.library.change(_one(picked), **given)
        except TimbreError as error:
            return warning(error), *(gr.skip(),) * len(Card._fields)
        return f"**{changed.name}** {word('is changed.')}", *self.show(picked)

    def delete(
        self, picked: str | None, owner: str = "", numbers: str = ""
    ) -> tuple[str, Update, Update, Update, str]:
        """Delete unless it is in use: status, undo ticket, undo button, the button that deletes a
        voice in use, and which one that is.

        `owner`, `numbers`: this browser's id and its scripts; of a guest nothing else counts.
        """
        guest = (owner, set(numbers.split())) if self._studio.guests else (None, None)
        try:
            voice = self._studio.library.get(_one(picked))
            used = usage_of(voice, self._studio.scripts, self._studio.takes, *guest)
        except TimbreError as error:
            return warning(error), gr.skip(), gr.skip(), gr.update(visible=False), ""
        if not used:
            return *self.delete_used(picked), ""
        message = Message(
            "{name} is used by {uses}. What it has spoken stays, but it will speak no more lines. "
            "Press Delete anyway to delete it.",
            name=voice.name,
            uses=used.told(),
        )
        return f"⚠️ {tell(message)}", gr.skip(), gr.skip(), gr.update(visible=True), voice.id

    def delete_used(self, asked: str | None) -> tuple[str, Update, Update, Update]:
        """Delete the voice that was asked about, even if it is in use."""
        try:
            voice = self._studio.library.get(_one(asked))
            ticket = self._studio.library.delete(voice.id)
        except TimbreError as error:
            return warning(error), gr.skip(), gr.skip(), gr.update(visible=False)
        undo = gr.update(visible=True, value=f"{word('Restore')}: {voice.name}")
        return f"**{voice.name}** {word('is deleted.')}", ticket, undo, gr.update(visible=False)

    def restore(self, ticket: str) -> tuple[str, Update]:
        """Undo a deletion: status, and the button, hidden again."""
        try:
            voice = self._studio.library.restore(ticket)
        except TimbreError as error:
            return warning(error), gr.update(visible=False)
        return f"**{voice.name}** {word('is back.')}", gr.update(visible=False)

    def receive(self, path: str | None) -> tuple[str, str, Update]:
        """Import a voice file: status, and an offer if the voice exists already."""
        try:
            data = uploaded(path, TOO_LARGE)
            if there := self._same(data):
                message = Message("{name} is in the library already. Import it again?", name=there)
                return f"⚠️ {tell(message)}", str(path), gr.update(visible=True)
            voice = self._import(data)
        except TimbreError as error:
            return warning(error), "", gr.update(visible=False)
        return f"**{voice.name}** {word('is here.')}", "", gr.update(visible=False)

    def _import(self, data: bytes) -> SavedVoice:
        return self._studio.library.import_file(data, self._studio.choices().speakers())

    def receive_again(self, path: str) -> tuple[str, str, Update]:
        """Import a second copy."""
        try:
            voice = self._import(uploaded(path, TOO_LARGE))
        except OSError:  # Gradio has cleaned it away
            return warning(InvalidVoice("Choose a file first.")), "", gr.update(visible=False)
        except TimbreError as error:
            return warning(error), "", gr.update(visible=False)
        return f"**{voice.name}** {word('is here.')}", "", gr.update(visible=False)

    async def speak(self, picked: str | None, phrase: str) -> AsyncIterator[Payload]:
        def line() -> SpeechRequest:
            return try_out(phrase, self._studio.library.get(_one(picked)).voice)

        voice = self._own(picked)
        async for payload in self._studio.speak(line, voice.name if voice else ""):
            yield payload

    def _own(self, picked: str | None) -> SavedVoice | None:
        try:
            return self._studio.library.get(picked) if picked else None
        except (UnknownVoice, InvalidVoice):
            return None

    def _file(self, voice: SavedVoice) -> str:
        """Export to a file in Gradio's cache, which Gradio cleans."""
        data = self._studio.library.export(voice.id)
        return downloadable(self._outbox, f"{voice.id}{ENDING}", data)

    def _consent(self, saved_voice: SavedVoice) -> Update:
        """The recording in which its owner has agreed, if there is one."""
        sound = consent_sound(self._studio.library, saved_voice)
        if sound is None:
            return NO_SOUND
        path = self._outbox / secrets.token_hex(16) / f"{saved_voice.id}-consent.flac"
        path.parent.mkdir(parents=True)
        path.write_bytes(sound)
        return gr.update(value=str(path), visible=True)

    def _same(self, data: bytes) -> str:
        """The name of an identical voice in the library; empty if there is none."""
        library = self._studio.library
        same = (voice.name for voice in library.list() if library.export(voice.id) == data)
        return next(same, "")

    def _summary(self, found: int, words: str) -> str:
        broken = (
            Message(
                "⚠️ {name} cannot be read and was left alone: {why}",
                name=each.path.name,
                why=each.reason,
            )
            for each in self._studio.library.damaged()
        )
        none = () if self._studio.library.list() else (EMPTY,)
        return "\n\n".join(map(tell, (counted(found, words.strip()), *none, *broken)))


def split_tags(text: str) -> tuple[str, ...]:
    """Split `warm, old` into unique tags."""
    tags = (" ".join(tag.split()) for tag in text.split(","))
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def facts(voice: SavedVoice, stranger: Message, recorded: ConsentRecording | None = None) -> str:
    """Read-only details as Markdown; `stranger` is about a model that is not loaded, `recorded`
    the recording of its owner's consent."""
    card = voice.card
    when = card.created[:10] or tell(Message("some time ago"))
    lines = [
        f"{tell(KINDS[card.kind]).capitalize()}, {when}",
        card.made_from and Message("Made from: {source}", source=card.made_from),
        card.transcript and Message("Words of the recording: {words}", words=card.transcript),
        card.model and Message("Model: {model}", model=card.model),
        stranger and Message("⚠️ {what}", what=stranger),
        card.consent and Message("Its owner has agreed to the copy."),
        recorded and _recorded(recorded),
        voice.built_in and Message("Built in, read-only."),
    ]
    return "\n\n".join(tell(line) for line in lines if line)


def _recorded(consent_recording: ConsentRecording) -> Message:
    when = datetime.fromtimestamp(consent_recording.created_at, timezone.utc).date().isoformat()
    return Message(
        "Recorded consent: {name} ({language}, {when})",
        name=consent_recording.name,
        language=consent_recording.language,
        when=when,
    )


def _one(picked: str | None) -> str:
    if not picked:
        raise UnknownVoice("Pick a voice in the list first.")
    return picked


class Found(NamedTuple):
    words: gr.Textbox
    which: gr.Radio
    cards: gr.HTML
    picked: gr.Textbox  # the id of a voice
    favourites: gr.BrowserState
    summary: gr.Markdown
    receive: gr.UploadButton


class Told(NamedTuple):
    """What came of a press, and what can be done about it."""

    again: gr.Button
    waiting: gr.State  # the file that was uploaded
    undo: gr.Button
    ticket: gr.State
    status: gr.Markdown


class Card(NamedTuple):
    column: gr.Column
    name: gr.Textbox
    tags: gr.Textbox
    colour: gr.ColorPicker
    note: gr.Textbox
    shown: gr.State  # the four above, as they were shown
    facts: gr.Markdown
    consent: gr.Audio
    file: gr.DownloadButton


class Actions(NamedTuple):
    change: gr.Button
    delete: gr.Button
    used: gr.Button  # deletes a voice in use
    phrase: gr.Textbox
    listen: gr.Button


def build(
    studio: Studio, owner: gr.Textbox | None = None, favourites: gr.BrowserState | None = None
) -> None:
    """Build the page in the current Blocks context. `owner`: this browser's id."""
    with gr.Row():
        with gr.Column(min_width=320, scale=2):
            found = _found(favourites or favourite_voices())
        with gr.Column(min_width=320, visible=False, elem_id="library-card") as column:
            card, actions = _card(column)
    with gr.Column(elem_id="library-told"):  # in view wherever in list or form somebody is
        told = Told(
            gr.Button(word("Import again"), visible=False),
            gr.State(""),
            gr.Button(word("Restore"), visible=False),
            gr.State(""),
            gr.Markdown(elem_id="library-status"),
        )
    player = live_player(studio.live, elem_id="library-player")
    tab = VoicesTab(studio, outbox(card.file))
    _wire(tab, found, told, card, actions, owner or browser_id())
    plays(player, [actions.listen.click], tab.speak, [found.picked, actions.phrase])
    plays(player, [found.cards.hear], tab.hear, [actions.phrase])


def _found(favourites: gr.BrowserState) -> Found:
    return Found(
        gr.Textbox("", label=word("Search"), placeholder=word("Name, tag or note"), max_lines=1),
        gr.Radio([(word(label), name) for label, name in WHICH], value="all", label=word("Show")),
        gr.HTML(
            js_on_load=PRESSES, elem_id="library-voices", elem_classes="timbre-plain", padding=False
        ),
        gr.Textbox("", elem_id="library-picked", elem_classes="timbre-unseen"),
        favourites,
        gr.Markdown(min_height=24),
        gr.UploadButton(str(word("Import a voice")), file_types=[".safetensors"]),
    )


def _card(column: gr.Column) -> tuple[Card, Actions]:
    with gr.Row():
        name = gr.Textbox("", label=word("Name"), max_lines=1)
        colour = gr.ColorPicker(label=word("Colour"), scale=0, min_width=110)
    tags = gr.Textbox("", label=word("Tags"), info=word("With commas between them"), max_lines=1)
    note = gr.Textbox("", label=word("Note"), max_lines=4)
    status = gr.Markdown()
    consent = gr.Audio(
        label=word("Recorded consent"), interactive=False, visible=False, buttons=["download"]
    )
    with gr.Row():
        change = gr.Button(word("Save changes"), variant="primary", min_width=120)
        file = gr.DownloadButton(str(word("Export")), min_width=120)
        delete = gr.Button(word("Delete"), variant="stop", min_width=120)
        used = gr.Button(word("Delete anyway"), variant="stop", min_width=120, visible=False)
    phrase = gr.Textbox(PHRASE, label=word("What to say"), max_lines=3)
    listen = gr.Button(word("Listen"))
    return Card(column, name, tags, colour, note, gr.State(()), status, consent, file), Actions(
        change, delete, used, phrase, listen
    )


def _wire(
    tab: VoicesTab, found: Found, told: Told, card: Card, actions: Actions, owner: gr.Textbox
) -> None:
    """Every change of the library refreshes the list, and the list refreshes the form."""
    picked, status = found.picked, told.status
    listing = [found.cards, found.summary, picked]
    wanted = [found.words, found.which, picked, found.favourites]
    details = [card.name, card.tags, card.colour, card.note, card.shown]
    # change: Gradio's `input` is a key pressed, so what was pasted or deleted would find nothing
    search = [found.words.change, found.which.input, found.favourites.change]
    changes = gr.State(0)  # of the library
    on_show(tab.search, listing, wanted, [*search, changes.change])
    found.cards.act(tab.act, found.favourites, [picked, found.favourites], **QUIET)
    # in turn: an answer of the voice that was picked before would be that of this one
    shown = picked.change(tab.show, picked, list(card), **ORDERED)
    bring = on_event("static/in_view.js", "bring", "#library-card")
    shown.then(None, js=bring, queue=False, **QUIET)
    saved = [status, *card]
    changed = actions.change.click(tab.change, [picked, *details], saved, **ORDERED)
    picked.change(lambda: gr.update(visible=False), None, actions.used, **ORDERED)
    gone, asked = [status, told.ticket, told.undo, actions.used], gr.State("")
    with_scripts = on_event(SCRIPT, "withScripts")
    sent = [picked, owner, gr.Textbox(elem_classes="timbre-unseen")]
    deleted = actions.delete.click(tab.delete, sent, [*gone, asked], js=with_scripts, **ORDERED)
    used = actions.used.click(tab.delete_used, asked, gone, **QUIET)  # whatever is picked since
    outputs = [status, told.waiting, told.again]
    received = found.receive.upload(tab.receive, found.receive, outputs, **QUIET)
    again = told.again.click(tab.receive_again, told.waiting, outputs, **QUIET)
    back = told.undo.click(tab.restore, told.ticket, [status, told.undo], **QUIET)
    for event in (changed, deleted, used, received, again, back):
        event.then(lambda before: before + 1, changes, changes, **QUIET)
