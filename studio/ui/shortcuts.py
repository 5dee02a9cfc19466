"""The page's header, and the dialog of keyboard shortcuts (static/shortcuts.js)."""

from __future__ import annotations

from studio.ui.i18n import both

KEYS = {
    "Ctrl + Enter": "Speak",
    "Esc": "Stop",
    "Space": "Play or pause, when you are not typing",
    "?": "This sheet, when you are not typing",
    "Tab": "On to the next field or button",
}
WAITING = "The server does not answer. Waiting for it; what you typed is kept."
_LINES = "".join(f"<dt><kbd>{key}</kbd></dt><dd>{both(what)}</dd>" for key, what in KEYS.items())

HEAD = f"""
<header class="timbre-head">
  <h1>Timbre</h1>
  <p>{both("Type, pick a voice, and listen.")}</p>
  <button type="button" data-timbre="shade">{both("Theme")}</button>
  <button type="button" data-timbre="help" aria-haspopup="dialog">{both("Shortcuts")}</button>
</header>
<p class="timbre-connection" role="alert" hidden>{both(WAITING)}</p>
<dialog class="timbre-help" aria-label="Keyboard shortcuts">
  <h2>{both("Keyboard shortcuts")}</h2>
  <dl>{_LINES}</dl>
  <form method="dialog"><button type="submit">{both("Close")}</button></form>
</dialog>
"""
