"""Actions of the buttons on a script's lines and cast.

A page may send anything: an unknown action is refused. Knows no components.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from engine import InvalidText, Message
from studio.scripts import Line, Passage, Script, edits
from studio.scripts.open_script import OpenScript
from studio.scripts.rendering.playback import ScriptPlayback
from studio.scripts.store import ScriptStore
from studio.ui.tabs.script.left_out import places_of
from studio.ui.tabs.script.view import PAGE, View

Press: TypeAlias = dict[str, Any]  # the detail that static/script/board.js sends
LOOKING = ("turn", "show", "find", "stop", "dismiss", "search", "voices")  # no line is changed
NEW_LINE = "Write here what is said."
NAMES = {  # of changes of a line, as Undo names them
    "lock": "the lock of line {place}",
    "unlock": "the lock of line {place}",
    "remove": "the deletion of line {place}",
    "add": "the new line",
    "up": "the move of line {place}",
    "down": "the move of line {place}",
    "move": "the move of line {place}",
    "edit": "the text of line {place}",
    "join": "the join of line {place}",
}
SPLIT = "the split of line {place}"  # what an edit is that makes more lines of one


class ScriptActions:
    """All actions but playback. Raises TimbreError."""

    def __init__(self, store: ScriptStore, playback: ScriptPlayback) -> None:
        self._store = store
        self._playback = playback

    def done(self, opened: OpenScript, view: View, press: Press) -> tuple[OpenScript, View]:
        """Carry out the action of a press; returns the script and the view after it."""
        action, number = press.get("do"), opened.number
        if action == "turn":
            return opened, view.turned(_number(press.get("page")))
        if action == "show":
            return opened, view.showing(str(press.get("value")))
        if action == "find":
            place = opened.script.place(_number(press.get("line")))
            return opened, View(place // PAGE, voices=view.voices)
        if action == "stop":
            self._playback.stop(number)
            return opened, view
        if action == "dismiss":
            self._store.end_rendering(number)
            return opened, view
        if action == "undo":
            return self._store.undo(number), view
        if action == "search":
            return opened, view.searching(str(press.get("value") or ""))
        if action == "voices":
            return opened, view.casting(str(press.get("value") or ""))
        if action == "pick":
            line = _number(press.get("line"))
            return self._store.pick_take(number, line, str(press.get("take"))), view
        if action == "take-in":
            places = places_of(opened.project.left_out, str(press.get("part") or ""))
            return self._store.take_in(number, places), view
        if action == "forget-parts":
            return self._store.forget_left_out(number), view
        if action == "cast":
            who, voice = str(press.get("who") or ""), str(press.get("value") or "")
            return self._store.recast(number, who, voice), view
        return self._changed(opened, str(action), _number(press.get("line")), press), view

    def _changed(self, opened: OpenScript, action: str, line: int, press: Press) -> OpenScript:
        """Change a line."""
        reading = opened.project.delivery.manner
        text, who = str(press.get("text") or ""), str(press.get("who") or "")
        works: dict[str, Callable[[Script], Script]] = {
            "lock": lambda script: edits.lock(
                script,
                line,
                opened.take(line),
                opened.project.casting.heard_in(script.line(line)),
            ),
            "unlock": lambda script: edits.unlock(script, line),
            "remove": lambda script: _without(script, line),
            "add": lambda script: edits.insert(
                script, line, Passage(NEW_LINE, script.line(line).speaker), reading
            ),
            "up": lambda script: edits.move(script, line, script.place(line) - 1),
            "down": lambda script: edits.move(script, line, script.place(line) + 1),
            "move": lambda script: _moved(script, line, press),
            "edit": lambda script: edits.edit(
                _said_by(script, line, who, press.get("direction")), line, text, reading
            ),
            "join": lambda script: edits.join(script, line),
        }
        if action not in works:
            raise InvalidText("The page is older than the studio. Reload it.")
        name = NAMES[action]
        if action == "edit":
            _check_same(opened.script.line(line), press.get("was"))
            if len(works[action](opened.script).lines) > len(opened.script.lines):
                name = SPLIT
        place = opened.script.place(line) + 1
        return self._store.edit(opened.number, works[action], Message(name, place=place))


def _said_by(script: Script, line: int, who: str, direction: object) -> Script:
    """With the speaker and, where there is one, the direction of a form."""
    script = edits.say_as(script, line, who)
    return edits.direct(script, line, direction) if isinstance(direction, str) else script


def _without(script: Script, line: int) -> Script:
    if len(script.lines) == 1:
        raise InvalidText("A script keeps one line. Write something else in it, or delete it all.")
    return edits.remove(script, line)


def _moved(script: Script, line: int, press: Press) -> Script:
    """The line dropped on another one: above it, or with `below` below it."""
    target, start = script.place(_number(press.get("target"))), script.place(line)
    place = target + bool(press.get("below"))
    return edits.move(script, line, place - (start < place))


def _check_same(line: Line, was: object) -> None:
    """Raises InvalidText if the line has changed since its edit form was opened."""
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
