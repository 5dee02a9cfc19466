"""Event handlers of the Script tab: each changes the store and returns what to show.

Unread text is read before any other action, so that no action loses it. `seen` is the text that the
server sent last; where the text differs from it, the user has typed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import gradio as gr

from engine import InvalidText, Message, RequestError, TimbreError, folded
from studio.api.page_request import page_request
from studio.context import Studio
from studio.imports.formats import SUFFIXES
from studio.imports.projects.project_uploads import GONE
from studio.scripts import Delivery, text_of
from studio.scripts.open_script import OpenScript
from studio.scripts.projects import DamagedProject
from studio.scripts.rendering.playback import Payloads
from studio.scripts.store import PROJECT_SUFFIX
from studio.takes.event_transport import Payload
from studio.ui.gradio_compat.events import detail
from studio.ui.i18n import errors_shown, inform, tell, warn, word
from studio.ui.tabs.script import view as board
from studio.ui.tabs.script.actions import LOOKING, Press, ScriptActions
from studio.ui.tabs.script.lines import lines_of
from studio.ui.tabs.script.options import (
    UNREAD,
    AsRead,
    ReadingFields,
    delivery_of,
    values_of,
    with_changes,
)
from studio.ui.tabs.script.received import tell_received
from studio.ui.tabs.script.shown import FIELDS, Shown
from studio.ui.tabs.script.view import EXAMPLE, Board, View
from studio.ui.tabs.script.words import characters, tell_joined
from studio.ui.tabs.voice_form import QUIET, Update

# Not queued: for events that must never be refused.
BARE: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
# Once at a time, and once more for what came meanwhile.
LATEST: dict[str, Any] = {**QUIET, "trigger_mode": "always_last"}
TICK = 0.6  # seconds between polls during rendering
ANSWERED = 64  # presses of all pages that are remembered as carried out
LONGEST_PRESS = 40  # characters of a press's name
MOST_MINE = 100  # scripts that a browser remembers
FORKED = Message(
    "Another tab has changed this script. What you wrote here is a script of its own now."
)
DELETED = Message("This script was deleted. What you wrote here is a script of its own now.")
NOT_THERE = Message("There is no script at this address any more: it was deleted.")
CHANGED = Message("Another tab has changed this script. This is how it is now.")
UPLOAD = "Upload a file"
TYPED = Message(
    "Another tab has changed this script. What you have typed here becomes a script of its own "
    "when you press a button."
)


READING = len(ReadingFields._fields)


class ScriptTab:
    """The event handlers. State of one visitor is sent by the page."""

    def __init__(self, studio: Studio) -> None:
        self._guests, self._uploads = studio.guests, studio.uploads
        self.store, self.playback = studio.scripts, studio.playback
        self._actions = ScriptActions(self.store, self.playback)
        self._answered: deque[tuple[str, str]] = deque(maxlen=ANSWERED)  # script, press
        self._typed: deque[tuple[int, str]] = deque(maxlen=ANSWERED)  # what was read, into which

    # Showing.

    def listed(self) -> list[tuple[str, str]]:
        """Labels and numbers of all scripts."""
        return [(tell(label), number) for label, number in self.store.listed()]

    def show(self, number: str | None, mine: str = "") -> tuple[Update, ...]:
        """Show a script and its reading settings; an empty tab if it is gone."""
        try:
            opened = self.store.open(number or "")
        except RequestError:
            opened = self.store.blank()
        reading = values_of(opened.project.delivery)
        return *self._shown(opened, View(), mine, reading=reading), *reading

    def arrive(self, event: gr.EventData, *reading: Any) -> tuple[Update, ...]:
        """A page has loaded, or opens a script by its address; it sends its last script, any unread
        text, and whether what is rendered is played."""
        sent: Press = dict(detail(event))
        mine, left = str(sent.get("mine") or ""), sent.get("left")
        if isinstance(left, dict):  # on its way from another script
            with warned():
                typed = (str(left.get(name) or "") for name in ("number", "text", "seen"))
                mine = self._kept(mine, *typed, *reading)
        shown = self.show(str(sent.get("number") or ""), mine)
        draft = sent.get("draft")
        if isinstance(draft, dict) and not shown[0] and draft.get("number") == sent.get("number"):
            draft = {**draft, "number": "", "seen": ""}  # what was typed into a deleted script
        elif (asked := str(sent.get("asked") or "")) and not shown[0]:  # by its address
            warn(self._why_not(asked))
        drafted = Shown(*shown[:FIELDS]).with_draft(draft)
        return *drafted, *shown[FIELDS:], sent.get("aloud") is not False

    def _why_not(self, number: str) -> Message:
        with suppress(RequestError):
            try:
                self.store.open(number)
            except DamagedProject as error:
                return error.message
        return NOT_THERE

    def offer(self, number: str, mine: str, view: View) -> tuple[Update, Update, Update]:
        """Refresh the choices of scripts, voices and languages."""
        try:
            opened = self.store.open(number)
        except RequestError:
            opened = self.store.blank()
        cast = self._cast(opened, view) if opened.number else gr.skip()
        languages = gr.update(choices=self.store.languages())
        return gr.update(choices=self._listed(mine)), cast, languages

    def look(self, number: str, view: View) -> tuple[Update, Update]:
        """The lines during rendering, and whether to poll again."""
        try:
            opened = self.store.look(number)
            self.playback.attend(number)
        except RequestError:
            return gr.skip(), gr.Timer(active=False)
        lines = self._lines(opened, view)
        lines["polled"] = True
        return lines, gr.Timer(active=self.playback.busy(number))

    def back(self, number: str, mine: str, view: View, text: str, seen: str) -> Shown:
        """The tab is visible again: show or report what another tab changed."""
        skip = Shown(*(gr.skip(),) * FIELDS)
        try:
            opened = self.store.open(number)
        except RequestError:
            return skip
        if not number or seen == text_of(opened.script):
            return skip
        if text != seen:
            warn(TYPED)
            return skip
        inform(CHANGED)
        return self._shown(opened, view, mine)

    # Scripts.

    def turn(self, picked: str | None, mine: str, *typed: Any) -> tuple[Update, ...]:
        """Show another script. `typed`: number, text, seen text and reading settings of the one
        before."""
        with warned():
            return self.show(picked, self._kept(mine, *typed))
        stays = Shown(*(gr.skip(),) * FIELDS)._replace(picked=gr.update(value=typed[0] or None))
        return *stays, *(gr.skip(),) * READING

    def new(self, mine: str, *typed: Any) -> tuple[Update, ...]:
        return self.turn("", mine, *typed)

    def begin_reading(self) -> Update:
        """A book takes seconds."""
        return gr.update(label=str(word("Reading the file …")), interactive=False)

    def end_reading(self) -> Update:
        return gr.update(label=str(word(UPLOAD)), interactive=True)

    def receive(self, path: str | None, mine: str, *typed: Any) -> tuple[Update, ...]:
        """Create a script from an uploaded file. `typed`: as for `turn`."""
        with warned():
            if not path:
                there = ", ".join([*SUFFIXES, PROJECT_SUFFIX])
                raise RequestError("Choose a file first: {there}.", there=there)
            mine = self._kept(mine, *typed)
            titles = self.store.titles()
            visible = {number for _, number in self._listed(mine)}
            taken = [title for number, title in titles.items() if number in visible]
            opened = self.store.receive(Path(path), taken)
            tell_received(opened, taken)
            return self.show(opened.number, mine)
        return (gr.skip(),) * (FIELDS + READING)

    def receive_project(
        self, mine: str, number: str, text: str, seen: str, event: gr.EventData, *reading: Any
    ) -> tuple[Update, ...]:
        """Create a script from a project that came by `ProjectUploads`."""
        with warned():
            if self._uploads is None:
                raise RequestError(GONE)
            with self._uploads.opened(str(detail(event).get("token"))) as path:
                return self.receive(str(path), mine, number, text, seen, *reading)
        return (gr.skip(),) * (FIELDS + READING)

    def rename(self, number: str, title: str, mine: str, here: str = "") -> tuple[Update, Update]:
        """The list of scripts, and the saved name: where it is another, as there may be more in the
        field by now, and where its script is still the page's, as leaving the field by a press of
        New saves it too. `here`: as the presses before this one left it."""
        saved = title
        with warned():
            if number:
                saved = self.store.look(number).project.title  # if the new one is refused
                saved = self.store.rename(number, title).project.title
        shown = saved != title and here == number
        return gr.update(choices=self._listed(mine)), saved if shown else gr.skip()

    def delete(self, number: str, mine: str) -> tuple[Update, ...]:
        """An empty tab and the Restore button."""
        title = ""
        with warned():
            if not number:
                raise InvalidText("There is nothing to delete yet.")
            self.playback.stop(number)
            title = self.store.delete(number)
        if not title:
            return (gr.skip(),) * (FIELDS + READING + 2)
        label = tell(Message("Restore “{title}”", title=title[:30]))
        back = gr.update(visible=True, value=label)
        return *self.show("", mine), number, back

    def restore(self, number: str, mine: str, *typed: Any) -> tuple[Update, ...]:
        with warned():
            mine = self._kept(mine, *typed)
            return *self.show(self.store.restore(number).number, mine), gr.update(visible=False)
        return (gr.skip(),) * (FIELDS + READING + 1)

    # Lines.

    def read(
        self,
        number: str,
        mine: str,
        view: View,
        text: str,
        seen: str,
        before: AsRead = UNREAD,
        *reading: Any,
    ) -> Shown:
        """Read the typed text and the settings, in which the cursor may still be. Raises gr.Error,
        so that Speak does not start."""
        with errors_shown():
            opened = self._read(mine, number, text, seen, *reading)
            opened = self._deliver(opened, before, reading)
        self.playback.expect(opened.number)
        return self._shown(opened, view, mine, (text, seen), reading, watch=True)

    def read_typed(
        self, number: str, mine: str, view: View, text: str, seen: str, *reading: Any
    ) -> Shown:
        """Read text that was typed, if any, before what needs its lines."""
        with warned():
            if text != seen and text.strip():
                opened = self._read(mine, number, text, seen, *reading)
                return self._shown(opened, view, mine, (text, seen), () if number else reading)
        return Shown(*(gr.skip(),) * FIELDS)

    def act(
        self,
        number: str,
        mine: str,
        view: View,
        text: str,
        seen: str,
        event: gr.EventData,
        *reading: Any,
    ) -> Shown:
        """A button on a line or the cast was pressed."""
        press: Press = dict(detail(event))
        with warned():
            if press.get("do") == "example":
                mine = self._kept(mine, number, text, seen, *reading)
                opened = self._read(mine, "", EXAMPLE, "", *reading)
                return self._shown(opened, View(), mine, reading=reading)
            if press.get("do") in LOOKING:
                return self._looked(*self._actions.done(self.store.look(number), view, press))
            deleted = self._is_deleted(number)
            opened = self._read(mine, number, text, seen, *reading)
            if deleted:  # the press was of a line there
                return self._shown(opened, View(), mine, (text, seen), reading)
            opened, view = self._actions.done(opened, view, press)
            if press.get("press"):
                self._answered.append((opened.number, str(press["press"])[:LONGEST_PRESS]))
            return self._shown(opened, view, mine, (text, seen), () if number else reading)
        return self._refused(number, view, press)

    def read_settings(
        self, number: str, view: View, before: AsRead, *fields: Any
    ) -> tuple[Update, Update]:
        """Save the reading settings; returns the lines and the fields as read.

        `before`: the fields as they were; unchanged ones keep what another tab may have saved.
        Refused ones are still unread: Speak refuses them as well.
        """
        with warned():
            if number:
                self._deliver(self.store.look(number), before, fields)
            return self.look(number, view)[0], AsRead(number, fields)
        return self.look(number, view)[0], gr.skip()

    # Playback.

    async def speak(self, number: str, aloud: bool) -> AsyncIterator[Payload | Update]:
        async for payload in _played(self.playback.speak(number, aloud)):
            yield payload

    async def play(self, number: str, event: gr.EventData) -> AsyncIterator[Payload | Update]:
        """A button that plays audio was pressed."""
        self.playback.expect(number)
        async for payload in _played(self._started(number, dict(detail(event)))):
            yield payload

    def watch(self) -> Update:
        return gr.Timer(active=True)

    def stopped(self, event: gr.EventData) -> None:
        self.playback.stop_take(str(detail(event).get("id")))

    # Internal.

    def _started(self, number: str, press: Press) -> Payloads:
        """The payloads that a play button asks for."""
        if press.get("do") == "voice":
            return self.playback.audition(number, str(press.get("who") or ""))
        line = press["line"] if isinstance(press.get("line"), int) else -1  # no line has this id
        aloud = press.get("aloud") is not False  # else what plays is not stopped
        if press.get("do") == "onward":
            return self.playback.speak(number, True, line)
        if press.get("do") == "word":
            return self.playback.speak(
                number, True, line, characters(self.store, number, press).start
            )
        if press.get("do") == "redo":
            return self.playback.redo(number, line, aloud)
        if press.get("do") == "words":
            words = characters(self.store, number, press)
            return self.playback.redo_words(number, line, words, tell_joined, aloud)
        if press.get("do") == "take":
            return self.playback.take(number, line, str(press.get("take")))
        return self.playback.listen(number, line, aloud)

    def _deliver(self, opened: OpenScript, before: AsRead, fields: tuple[Any, ...]) -> OpenScript:
        """Save the reading settings; none are sent by programs."""
        if not fields:
            return opened
        had = before.fields if before.number == opened.number else ()
        return self.store.deliver(
            opened.number, lambda delivery: with_changes(delivery, had, fields)
        )

    def _kept(
        self, mine: str, number: str = "", text: str = "", seen: str = "", *reading: Any
    ) -> str:
        """Read typed text before another script takes its place; `mine`, with the script of it."""
        if text == seen or not text.strip():
            return mine
        read = self._read(mine, number, text, seen, *reading).number
        return " ".join([*(each for each in mine.split() if each != read), read])

    def _read(self, mine: str, number: str, text: str, seen: str, *reading: Any) -> OpenScript:
        """The script with the text that a page sends; where it sends no number a new one, with the
        reading settings that the page shows."""
        if number and text == seen:
            return self.store.look(number)
        typed = hash((_page(), number, text, seen))
        deleted = self._is_deleted(number)
        if deleted:
            number = seen = ""
        before = next((into for sent, into in self._typed if sent == typed), "")
        now = text_of(self.store.open(number).script) if number and seen else seen
        changed = now not in (seen, text)
        if before and (before not in mine.split() or (changed and before == number)):
            with suppress(RequestError):  # deleted meanwhile
                return self.store.look(before)  # the page does not have the answer to that press
        if changed or deleted:
            warn(DELETED if deleted else FORKED)
        if changed:
            opened = self.store.fork(number, text)
        else:
            delivery = delivery_of(Delivery(), reading) if reading and not number else Delivery()
            opened = self.store.read(number, text, delivery)
        self._typed.appendleft((typed, opened.number))
        return opened

    def _is_deleted(self, number: str) -> bool:
        try:
            self.store.look(number)
        except RequestError:
            return True
        return False

    def _shown(
        self,
        opened: OpenScript,
        view: View,
        mine: str,
        had: tuple[str, str] | None = None,
        reading: tuple[Any, ...] = (),
        watch: bool = False,
    ) -> Shown:
        """`had`: the text and the seen text of the page; an unchanged text is not sent again.
        `reading`: the settings that were read."""
        number, text = opened.number, text_of(opened.script)
        new_text = gr.skip() if had == (text, text) else text
        mine = " ".join([*(each for each in mine.split() if each != number), number][-MOST_MINE:])
        title = opened.project.title if number else ""
        return Shown(
            number,
            mine,
            view,
            gr.update(choices=self._listed(mine), value=number or None),
            gr.update(value=title, interactive=bool(number)),
            new_text,
            new_text,
            self._cast(opened, view),
            self._lines(opened, view),
            gr.Timer(active=watch or self.playback.busy(number)),
            AsRead(number, reading) if reading else gr.skip(),
            number,
        )

    def _refused(self, number: str, view: View, press: Press) -> Shown:
        """Nothing has changed; a form that was to be saved is told so."""
        shown = Shown(*(gr.skip(),) * FIELDS)
        if "press" not in press:
            return shown
        lines = self.look(number, view)[0]
        there = lines if "items" in lines else {}  # else deleted: the page keeps what it shows
        return shown._replace(lines={**there, "refused": str(press["press"])})

    def _looked(self, opened: OpenScript, view: View) -> Shown:
        """Another view of the same script; typed text stays as it is."""
        shown = Shown(*(gr.skip(),) * FIELDS)
        timer = gr.Timer(active=self.playback.busy(opened.number))
        cast, lines = self._cast(opened, view), self._lines(opened, view)
        return shown._replace(view=view, cast=cast, lines=lines, timer=timer)

    def _listed(self, mine: str) -> list[tuple[str, str]]:
        """Guests see the scripts of their browser, others all scripts."""
        known = set(mine.split())
        return [each for each in self.listed() if not self._guests or each[1] in known]

    def _cast(self, opened: OpenScript, view: View) -> Board:
        """The speakers with their voices; of many voices, some to choose among and a search."""
        speakers, casting = opened.script.speakers, opened.project.casting
        cast = [*casting.voices_of(speakers).values()]
        voices, complete = self.store.menu(view.voices, cast)
        members = zip(speakers, cast, strict=True)
        items = [board.member(who, voice, voices, len(speakers) == 1) for who, voice in members]
        if items and not complete:
            wanted = folded(view.voices)
            none = [] if any(wanted in folded(name) for name, _ in voices) else [board.no_voices()]
            items = [board.voice_search(), *none, *items]
        return board.board(opened.number, items, opened.project.changed)

    def _lines(self, opened: OpenScript, view: View) -> Board:
        number = opened.number
        return lines_of(
            opened,
            view,
            self.playback.line_status(opened),
            self.playback.progress(number),
            self.store.undone_next(number),
            self.playback.heard(number),
            self.playback.interrupted(opened),
            [press for changed, press in tuple(self._answered) if changed == number],
            self.store.choices().languages(),
        )


@contextmanager
def warned() -> Iterator[None]:
    """Show a TimbreError as a warning; nothing is changed."""
    try:
        yield
    except TimbreError as error:
        warn(error.message)


async def _played(payloads: Payloads) -> AsyncIterator[Payload | Update]:
    """Payloads for the player component."""
    async for payload in payloads:
        yield gr.skip() if payload is None else payload


def _page() -> str:
    """Whose event runs."""
    request = page_request()
    return (request.session_hash or "") if request else ""
