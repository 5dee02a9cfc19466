"""The page's header, and the dialog of keyboard shortcuts (static/shortcuts.js)."""

from __future__ import annotations

from studio.ui.i18n import both, labelled

KEYS = {
    "Ctrl + Enter": "Speak",
    "Esc": "Stop",
    "Space": "Play or pause, when you are not typing",
    "?": "This sheet, when you are not typing",
    "Tab": "On to the next field or button",
    "← →": "From tab to tab",
    "← ↑ → ↓": "Another voice on cards; on a map or a pad: move",
    "Enter": "On a map: play what is there; in the search of voices: choose",
    "↑ ↓": "The same control of the next row, in lists of takes and voices",
    "← → Home End": "On the player's wave: 2 s back or on, the beginning, the end",
}
LINE_KEYS = {
    "F6": "To the lines of the script, and from them to its text",
    "↑ ↓": "The line before or after",
    "P, O": "Play the line, or from it on",
    "R": "Regenerate it; what plays is not stopped",
    "E": "Edit it; Enter saves and speaks, Shift + Enter begins a new row",
    "Alt + Enter": "Split it at the cursor, while you edit it",
    "J": "Join it with the next",
    "Esc": "Take back what you wrote, while you edit it",
    "↑ ↓ on ⠿": "Move the line",
    "L": "Lock its take, or unlock it",
}
WAITING = "The server does not answer. Waiting for it; what you typed is kept."


def _listed(keys: dict[str, str]) -> str:
    rows = (f"<dt><kbd>{key}</kbd></dt><dd>{both(what)}</dd>" for key, what in keys.items())
    return f"<dl>{''.join(rows)}</dl>"


HEAD = f"""
<header class="timbre-head">
  <h1>Timbre</h1>
  <p>{both("Type, pick a voice, and listen.")}</p>
  <button type="button" data-timbre="shade">{both("Theme")}</button>
  <button type="button" data-timbre="help" aria-haspopup="dialog">{both("Shortcuts")}</button>
</header>
<p class="timbre-connection" role="alert" hidden>{both(WAITING)}</p>
<dialog class="timbre-help" {labelled("Keyboard shortcuts")}>
  <h2>{both("Keyboard shortcuts")}</h2>
  {_listed(KEYS)}
  <h2>{both("On a line of a script")}</h2>
  {_listed(LINE_KEYS)}
  <form method="dialog"><button type="submit">{both("Close")}</button></form>
</dialog>
"""
