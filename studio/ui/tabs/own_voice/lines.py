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
TAKEN: Final = "All of {name} is taken. Go on begins again, with it."
RISK: Final = (
    "Noise, echo, music or another person in it become a part of the voice: take it only if you "
    "have heard that the check is wrong."
)
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

    def opened(self, training: str | None) -> tuple[Update, None, str, str, Update]:
        """Another training's lines, whose files have the same names: none is heard yet."""
        return self.listed(training), None, "", "", gr.update(visible=False)

    def hear(
        self, training: str | None, file: str | None
    ) -> tuple[tuple[int, Pcm] | None, str, str, Update]:
        """A line's sound, its words, why it is left out, and whether its sound alone is why."""
        line = self._lines(training).get(file or "")
        if line is None:
            return None, "", "", gr.update(visible=False)
        path = self._trainings.folder(training or "").segments / line.file
        pcm = soundfile.read(path, dtype="int16")[0]
        return (SAMPLE_RATE, pcm), line.text, tell(line.doubtful), gr.update(visible=line.takeable)

    def mend(self, training: str | None, file: str | None, text: str) -> str:
        try:
            self._trainings.mend(training or "", file or "", text)
        except TimbreError as error:
            return warning(error)
        return tell(MENDED)

    def take_anyway(self, training: str | None, file: str | None) -> str:
        """Take all of the line's recording."""
        line = self._lines(training).get(file or "")
        source = line.source if line else ""
        try:
            self._trainings.take_anyway(training or "", source)
        except TimbreError as error:
            return warning(error)
        return tell(Message(TAKEN, name=source))

    def _lines(self, training: str | None) -> dict[str, Spoken]:
        try:
            return {each.file: each for each in self._trainings.mendable(training or "")}
        except TimbreError:
            return {}


def build(
    trainings: VoiceTraining, training: gr.Dropdown, timer: gr.Timer
) -> tuple[Dependency, ...]:
    """Build the part below a training's status. Returns the events that lines were taken."""
    form = LinesForm(trainings)
    with gr.Accordion(word("Mend lines that are left out"), open=False):
        line = gr.Dropdown([], label=word("Line"), **FOUND_LATER)
        why = gr.Markdown()
        sound = gr.Audio(label=word("Recording"), interactive=False, buttons=["download"])
        text = gr.Textbox("", label=word("Its words"), max_lines=4)
        take = gr.Button(word("Take it"), size="sm")
        with gr.Column(visible=False) as flawed:
            gr.Markdown(word(RISK), elem_classes="timbre-hint")
            whole = gr.Button(word("Take the whole recording anyway"), size="sm")
    heard, there = [sound, text, why, flawed], [training, line]
    training.change(form.opened, training, [line, *heard], **QUIET)
    timer.tick(form.listed, there, line, **QUIET)
    line.input(form.hear, there, heard, **QUIET)
    taken = take.click(form.mend, [training, line, text], why, **QUIET)
    all_taken = whole.click(form.take_anyway, there, why, **QUIET)
    for each in (taken, all_taken):
        each.then(form.listed, there, line, **QUIET)
    return taken, all_taken
