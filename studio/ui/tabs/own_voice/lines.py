"""Lines that a training left out: heard, given their words, and taken after all."""

from __future__ import annotations

from typing import Final

import gradio as gr
import soundfile

from engine import SAMPLE_RATE, Message, Pcm, TimbreError
from studio.ui.gradio_compat.events import Dependency
from studio.ui.i18n import tell, warning, word
from studio.ui.tabs.voice_form import FOUND_LATER, QUIET, Update
from studio.voices.voice_training import VoiceTraining
from training.voice.job import Spoken

MENDED: Final = Message("It is taken. Go on begins again, with this line.")
SHOWN: Final = 60  # letters of a line


class LinesForm:
    """Event handlers. `training` is the id of the one that is shown."""

    def __init__(self, trainings: VoiceTraining) -> None:
        self._trainings = trainings

    def listed(self, training: str | None, picked: str | None = None) -> Update:
        """The lines that can be mended; the one that is heard stays selected."""
        lines = self._lines(training)
        choices = [(f"{line.source}: {line.text[:SHOWN]}", file) for file, line in lines.items()]
        return gr.update(choices=choices, value=picked if picked in lines else None)

    def opened(self, training: str | None) -> tuple[Update, None, str, str]:
        """Another training's lines, whose files have the same names: none is heard yet."""
        return self.listed(training), None, "", ""

    def hear(
        self, training: str | None, file: str | None
    ) -> tuple[tuple[int, Pcm] | None, str, str]:
        """A line's sound, its words, and why it is left out."""
        line = self._lines(training).get(file or "")
        if line is None:
            return None, "", ""
        path = self._trainings.folder(training or "").segments / line.file
        pcm = soundfile.read(path, dtype="int16")[0]
        return (SAMPLE_RATE, pcm), line.text, tell(line.doubtful)

    def mend(self, training: str | None, file: str | None, text: str) -> str:
        try:
            self._trainings.mend(training or "", file or "", text)
        except TimbreError as error:
            return warning(error)
        return tell(MENDED)

    def _lines(self, training: str | None) -> dict[str, Spoken]:
        try:
            return {each.file: each for each in self._trainings.mendable(training or "")}
        except TimbreError:
            return {}


def build(trainings: VoiceTraining, training: gr.Dropdown, timer: gr.Timer) -> Dependency:
    """Build the part below a training's status. Returns the event that a line was taken."""
    form = LinesForm(trainings)
    with gr.Accordion(word("Mend lines that are left out"), open=False):
        line = gr.Dropdown([], label=word("Line"), **FOUND_LATER)
        why = gr.Markdown()
        sound = gr.Audio(label=word("Recording"), interactive=False, buttons=["download"])
        text = gr.Textbox("", label=word("Its words"), max_lines=4)
        take = gr.Button(word("Take it"), size="sm")
    heard, there = [sound, text, why], [training, line]
    training.change(form.opened, training, [line, *heard], **QUIET)
    timer.tick(form.listed, there, line, **QUIET)
    line.input(form.hear, there, heard, **QUIET)
    taken: Dependency = take.click(form.mend, [training, line, text], why, **QUIET)
    taken.then(form.listed, there, line, **QUIET)
    return taken
