"""Sentences to read for a voice of one's own: each is checked as it is recorded, and counted."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Final

import gradio as gr

from engine import InvalidAudio, TimbreError
from studio.ui.i18n import both, warning, word
from studio.ui.tabs.voice_form import QUIET, Update, on_show
from studio.voices.reading import Reading
from training.voice.texts import READ

READ_SO_FAR: Final = "Sentences read: {count}, {minutes:.1f} minutes. Ten minutes are good."
OWN: Final = "Or type a sentence of your own, and read that."


class ReadingForm:
    """Event handlers."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def take(self, recording: str | None, line: str | None) -> tuple[Update, Update, str]:
        """Keep what was read. Returns an empty recorder, the next sentence, and what is there."""
        try:
            if not recording or not (line or "").strip():
                raise InvalidAudio("Choose a sentence, and read it.")
            self._reading.take(Path(recording), (line or "").strip())
        except TimbreError as error:
            return None, gr.skip(), escape(warning(error))
        return None, self.next(line), self.told()

    def next(self, line: str | None) -> Update:
        """A sentence that was not read, of the same language."""
        read = self._reading.texts()
        texts = next((texts for texts in READ.values() if line in texts), READ["english"])
        return next((text for text in texts if text not in read), "")

    def told(self) -> str:
        count, minutes = len(self._reading.texts()), self._reading.seconds() / 60
        return both(READ_SO_FAR, count=count, minutes=minutes) if count else ""

    def clear(self) -> str:
        self._reading.clear()
        return self.told()


def build(reading: Reading) -> tuple[Callable[[], str], gr.HTML]:
    """Build the recorder. Returns what tells how much was read, and where it is shown."""
    form = ReadingForm(reading)
    line = gr.Dropdown(
        [text for texts in READ.values() for text in texts],
        label=word("To read while you record"),
        info=word(OWN),
        allow_custom_value=True,
    )
    audio = gr.Audio(sources=["microphone"], type="filepath", label=word("Recording"))
    counted = gr.HTML(elem_id="own-voice-read", padding=False)
    clear = gr.Button(word("Delete what was read"), size="sm")
    audio.stop_recording(form.take, [audio, line], [audio, line, counted], **QUIET)
    clear.click(form.clear, None, counted, **QUIET)
    on_show(form.told, [counted])
    return form.told, counted
