"""Sentences to read for a voice of one's own: each is checked as it is recorded, and counted."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Final

import gradio as gr

from engine import InvalidAudio, TimbreError
from studio.ui.i18n import both, warning, word
from studio.ui.recordings.checks import METER, level_meter
from studio.ui.tabs.voice_form import QUIET, Update, on_show, quoted
from studio.voices.reading import Reading
from training.voice.prepare import has_consent
from training.voice.recordings import Flawed
from training.voice.texts import READ

READ_SO_FAR: Final = "Sentences read: {count}, {minutes:.1f} minutes. Ten minutes are good."
OWN: Final = "Or type a sentence of your own, and read that."
FIRST: Final = "To read sentences here, write first whose voice it is."


class ReadingForm:
    """Event handlers. `owner`: the browser's id."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def take(
        self, recording: str | None, line: str | None, agreed: str, owner: str, anyway: bool = False
    ) -> tuple[Update, Update, str, Update]:
        """Keep what was read. Returns an empty recorder, the next sentence, what is there, and
        whether it can be taken `anyway`: then it stays in the recorder."""
        try:
            if not recording or not (line or "").strip():
                raise InvalidAudio("Choose a sentence, and read it.")
            self._of(owner).take(Path(recording), (line or "").strip(), agreed.strip(), anyway)
        except TimbreError as error:
            flawed = isinstance(error, Flawed)
            kept = gr.skip() if flawed else None
            return kept, gr.skip(), escape(warning(error)), gr.update(visible=flawed)
        return None, self.next(line, owner), self.told(owner), gr.update(visible=False)

    def take_anyway(
        self, recording: str | None, line: str | None, agreed: str, owner: str
    ) -> tuple[Update, Update, str, Update]:
        """Keep it in spite of its sound."""
        return self.take(recording, line, agreed, owner, anyway=True)

    def ready(self, agreed: str) -> tuple[Update, Update]:
        """The recorder is there once it is said whose voice it is; until then what is missing."""
        said = has_consent(agreed)
        return gr.update(visible=said), gr.update(visible=not said)

    def agreed(self, agreed: str, owner: str) -> str:
        """What was said before the page was loaded again."""
        return agreed or self._of(owner).agreed

    def next(self, line: str | None, owner: str) -> Update:
        """A sentence that was not read, of the same language."""
        read = self._of(owner).texts()
        texts = next((texts for texts in READ.values() if line in texts), READ["english"])
        return next((text for text in texts if text not in read), "")

    def told(self, owner: str) -> str:
        reading = self._of(owner)
        count, minutes = len(reading.texts()), reading.seconds() / 60
        return both(READ_SO_FAR, count=count, minutes=minutes) if count else ""

    def clearable(self, owner: str) -> Update:
        """Whether there is something to delete."""
        return gr.update(visible=bool(self._of(owner).texts()))

    def clear(self, owner: str) -> str:
        self._of(owner).clear()
        return self.told(owner)

    def _of(self, owner: str) -> Reading:
        return Reading(self._data, owner)


def build(
    data: Path, agreed: gr.Textbox, owner: gr.Textbox
) -> tuple[Callable[[str], str], gr.HTML]:
    """Build the recorder. Returns what tells how much was read, and where it is shown."""
    form = ReadingForm(data)
    texts = [text for texts in READ.values() for text in texts]
    missing = gr.Markdown(word(FIRST))
    with gr.Column(visible=False) as recorder:
        with gr.Group(elem_classes="timbre-read"):
            line = gr.Dropdown(
                texts,
                value=texts[0],
                label=word("To read while you record"),
                info=word(OWN),
                allow_custom_value=True,
            )
            shown = gr.HTML(quoted(texts[0]), elem_classes="timbre-plain")
        audio = gr.Audio(
            sources=["microphone"], type="filepath", label=word("Recording"), buttons=[]
        )
        gr.HTML(level_meter(), js_on_load=METER, elem_classes="timbre-plain", padding=False)
    counted = gr.HTML(elem_id="own-voice-read", padding=False)
    anyway = gr.Button(word("Keep this sentence anyway"), size="sm", visible=False)
    clear = gr.Button(word("Delete what was read"), size="sm", visible=False)
    line.change(quoted, line, shown, **QUIET)
    said, after = [audio, line, agreed, owner], [audio, line, counted, anyway]
    audio.stop_recording(form.take, said, after, **QUIET)
    anyway.click(form.take_anyway, said, after, **QUIET)
    # It is about this recording of this sentence alone.
    gr.on(
        [audio.start_recording, audio.clear, line.input],
        lambda: gr.update(visible=False), None, anyway, **QUIET,
    )  # fmt: skip
    counted.change(form.clearable, owner, clear, **QUIET)
    clear.click(form.clear, owner, counted, **QUIET)
    agreed.change(form.ready, agreed, [recorder, missing], trigger_mode="always_last", **QUIET)
    owner.change(form.told, owner, counted, **QUIET)
    owner.change(form.agreed, [agreed, owner], agreed, **QUIET)
    owner.change(form.next, [line, owner], line, **QUIET)
    on_show(form.told, [counted], [owner])
    return form.told, counted
