"""The form of a script's line, as HTML. All text of users is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from engine import MAX_STRENGTH
from studio.scripts import Line
from studio.scripts.edits import shown
from studio.scripts.model import LONGEST_DIRECTION, MAX_PAUSE
from studio.ui.i18n import both, tell

NO_MOOD = "As the voice is"


def line_form(line: Line, speakers: Sequence[str], moods: Sequence[str]) -> str:
    if line.locked:
        return ""
    options = "".join(
        option(who, who or tell("Narrator"), who == line.speaker)
        for who in dict.fromkeys([*speakers, line.speaker])
    )
    direction = (
        f'<input name="direction" maxlength="{LONGEST_DIRECTION}" '
        f'value="{escape(line.direction)}" placeholder="{attribute("Direction: softly")}"'
        f' aria-label="{attribute("Direction")}">'
        if line.speaker
        else ""
    )
    return (
        f'<form hidden><textarea name="text" rows="3" aria-label="{attribute("What is said")}">'
        f"{escape(shown(line))}</textarea><div>"
        f'<select name="who" aria-label="{attribute("Speaker")}">{options}</select>{_mood(moods)}'
        f'{direction}<label class="pause">{both("Pause after (s)")} <input name="pause"'
        f' type="number" min="0" max="{MAX_PAUSE:.0f}" step="0.1" placeholder="–"></label>'
        f'<button type="submit" class="save">{both("Save")}</button>'
        f'<button type="reset">{both("Cancel")}</button><i></i>'
        f'<button type="button" data-cut>{both("Split at the cursor")}</button>'
        f'<button type="button" data-act="join">{both("Join with the next")}</button>'
        f'<button type="button" data-act="up">{both("Move up")}</button>'
        f'<button type="button" data-act="down">{both("Move down")}</button>'
        f'<button type="button" data-act="add">{both("Add a line below")}</button>'
        f'<button type="button" data-act="remove">{both("Delete")}</button></div></form>'
    )


def _mood(moods: Sequence[str]) -> str:
    """The mood of the whole line; static/script/line_mood.js writes it into the text as a tag."""
    if not moods:
        return ""
    none = option("", tell(NO_MOOD), False)
    options = none + "".join(option(name, name, False) for name in moods)
    return (
        f'<select name="mood" aria-label="{attribute("Mood")}">{options}</select>'
        f'<input name="strength" type="number" min="0" max="{MAX_STRENGTH}" step="0.05" value="1"'
        f' hidden aria-label="{attribute("Strength of the mood")}">'
    )


def attribute(english: str) -> str:
    return escape(tell(english))


def option(value: str, label: str, chosen: bool) -> str:
    selected = " selected" if chosen else ""
    return f'<option value="{escape(value)}"{selected}>{escape(label)}</option>'
