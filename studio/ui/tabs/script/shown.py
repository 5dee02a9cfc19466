"""What an answer changes on the Script tab. Knows no store."""

from __future__ import annotations

from typing import NamedTuple

import gradio as gr

from studio.ui.tabs.voice_form import Update


class Shown(NamedTuple):
    """The components that a change of the script updates."""

    opened: Update  # its number
    mine: Update  # numbers of the scripts this browser has had, with spaces between
    view: Update
    picked: Update
    title: Update
    text: Update
    seen: Update
    cast: Update
    lines: Update
    timer: Update
    read: Update  # AsRead
    here: Update  # the number again, as the presses before have left it

    def with_draft(self, draft: object) -> Shown:
        """Restore unread text with the text it was typed into. If nothing is restored, text that
        was typed meanwhile stays."""
        sent = draft if isinstance(draft, dict) else {}
        if sent.get("number") != self.opened:
            return self if self.opened else self._replace(text=gr.skip(), seen=gr.skip())
        return self._replace(text=str(sent.get("text") or ""), seen=str(sent.get("seen") or ""))


FIELDS = len(Shown._fields)
