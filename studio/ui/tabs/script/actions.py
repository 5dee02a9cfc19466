"""What a press on the board of a script asks for, done in the store.

A page may send anything: what means nothing is refused in words. Knows no components.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from engine import InvalidText
from studio.scripts import Line, Passage, Project, Script, edits
from studio.ui.tabs.script.playback import ScriptPlayback
from studio.ui.tabs.script.store import Opened, ScriptStore
from studio.ui.tabs.script.view import PAGE, View

SpeechForm: TypeAlias = dict[str, Any]  # what script.js tells of a press
NEW_LINE = "Write here what is said."


class ScriptActions:
    """Everything but what is heard. Raises TimbreError."""

    def __init__(self, store: ScriptStore, playback: ScriptPlayback) -> None:
        self._store = store
        self._playback = playback

    def done(self, opened: Opened, view: View, asked: SpeechForm) -> tuple[Opened, View]:
        """What was asked for, done."""
        does, number = asked.get("do"), opened.number
        if does == "turn":
            return opened, view.turned(_number(asked.get("page")))
        if does == "show":
            return opened, view.showing(str(asked.get("value")))
        if does == "find":
            place = opened.script.place(_number(asked.get("line")))
            return opened, View(place // PAGE)
        if does == "stop":
            self._playback.stop(number)
            return opened, view
        if does == "dismiss":
            self._store.end_rendering(number)
            return opened, view
        if does == "undo":
            return self._store.undo(number), view
        if does == "search":
            return opened, view.searching(str(asked.get("value") or ""))
        if does == "pick":
            line = _number(asked.get("line"))
            return self._store.pick_take(number, line, str(asked.get("take"))), view
        if does == "cast":
            return self._cast_as(number, str(asked.get("who") or ""), str(asked["value"])), view
        return self._changed(opened, str(does), _number(asked.get("line")), asked), view

    def _changed(self, opened: Opened, does: str, line: int, asked: SpeechForm) -> Opened:
        """A line, changed."""
        manner = opened.project.delivery.manner
        text, who = str(asked.get("text") or ""), str(asked.get("who") or "")
        works: dict[str, Callable[[Script], Script]] = {
            "lock": lambda own: edits.lock(own, line, opened.take(line)),
            "unlock": lambda own: edits.unlock(own, line),
            "remove": lambda own: _without(own, line),
            "add": lambda own: edits.insert(
                own, line, Passage(NEW_LINE, own.line(line).speaker), manner
            ),
            "up": lambda own: edits.move(own, line, own.place(line) - 1),
            "down": lambda own: edits.move(own, line, own.place(line) + 1),
            "move": lambda own: _moved(own, line, asked),
            "edit": lambda own: edits.edit(edits.say_as(own, line, who), line, text, manner),
        }
        if does == "edit":
            _check_same(opened.script.line(line), asked.get("was"))
        if does not in works:
            raise InvalidText("The page is older than the studio. Reload it.")
        return self._store.edit(opened.number, works[does])

    def _cast_as(self, number: str, who: str, voice: str) -> Opened:
        self._store.resolve(voice)  # a voice that is not there is refused

        def recast(own: Project) -> Project:
            cast = own.casting.with_voice(who, voice) if who else own.casting.having(default=voice)
            return own.having(casting=cast)

        return self._store.change(number, recast)


def _without(script: Script, line: int) -> Script:
    if len(script.lines) == 1:
        raise InvalidText("A script keeps one line. Write something else in it, or delete it all.")
    return edits.remove(script, line)


def _moved(script: Script, line: int, asked: SpeechForm) -> Script:
    """The line dropped on another one: above it, or with `below` below it."""
    target, start = script.place(_number(asked.get("target"))), script.place(line)
    place = target + bool(asked.get("below"))
    return edits.move(script, line, place - (start < place))


def _check_same(line: Line, was: object) -> None:
    """Raises InvalidText where the line is no more what somebody began to change."""
    now = edits.shown(line)
    if isinstance(was, str) and was.strip() != now:
        raise InvalidText(
            "Another tab has changed this line. It says now: “{now}”. Copy what you wrote, press "
            "Cancel, and change it once more.",
            now=now[:200],
        )


def _number(value: Any) -> int:
    """A number from a page, which may send anything."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidText("The page is older than the studio. Reload it.")
    return value
