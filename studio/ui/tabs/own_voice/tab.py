"""A voice of one's own in the Clone tab: recordings, progress, sounds of each epoch, a blind
comparison, and what is kept or deleted. Knows no networks: a training runs in a process of its own.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Final, TypeAlias

import gradio as gr
import numpy as np
from soundfile import LibsndfileError

from engine import (
    SAMPLE_RATE,
    InvalidAudio,
    Message,
    Pcm,
    RequestError,
    TimbreError,
    UnknownVoice,
    add_model,
    explain_write_errors,
)
from studio.context import Studio
from studio.storage import read_sound
from studio.ui.drafts import browser_id
from studio.ui.i18n import both, tell, warning, word
from studio.ui.tabs.own_voice import lines, reading
from studio.ui.tabs.own_voice.recordings import LISTENING, RecordingsTable, sounds_of
from studio.ui.tabs.voice_form import FOUND_LATER, QUIET, Update, checked_name, on_show
from studio.voices.kept_models import KeptModel
from studio.voices.reading import Reading
from studio.voices.voice_training import VoiceTraining
from training.voice.job import ENDED, Epoch, Spoken, Status
from training.voice.prepare import Way, Wish
from training.voice.recordings import level

Sound: TypeAlias = tuple[int, Pcm]  # what Gradio plays: a rate and samples

TICK: Final = 2.0  # seconds between two looks
REST: Final = 10.0  # where nothing is learned: another page may begin it again
PAIRS: Final = 6  # of the blind comparison
ABOUT: Final = (
    "Ten minutes of one person, read or told in a quiet room, can make a voice that is nearer than "
    "a clone; if it is not, that is told. Read sentences here, or drop the recordings with their "
    "words: a .txt of the same name for each short one, or an .srt for a long one. Everything "
    "stays on this server; Delete removes the recordings too."
)
WHOSE: Final = "Whose voice it is, and that they agree"
AGREED: Final = "For example: Ann Lee, it is my own voice."
NO_MODEL: Final = Message("No model here clones, so none can begin a voice from recordings.")
COMPARE: Final = "Which is more like the person? You do not see which is the clone."
WAYS: Final = (("A voice: a small file", "rows"), ("A model of its own", "adapter"))
WHAT_EACH_GIVES: Final = (
    "A small file speaks beside all others: it mends the pitch of a clone and comes a quarter "
    "nearer. A model of its own comes half way and more where this model's sound carries the "
    "voice, and is refused where not; it takes the room of a model."
)
NO_RECOGNISER: Final = (
    "No recogniser is named here (TIMBRE_TRANSCRIBER), so nobody hears whether words suffer, which "
    "a model of its own does more often: listen to it before you keep it."
)
GOING: Final = ("preparing", "training")
SURE: Final = Message("Press Delete again: the recordings of this training go for good.")
SURE_MODEL: Final = Message(
    "Press Delete again: the recordings of this training and its voice go for good."
)
NONE: Final = "No training yet."
GONE: Final = "This training was deleted."
READING: Final = "Reading the recordings …"


class OwnVoiceTab:
    """Event handlers. `training` is the id of the one that is shown."""

    def __init__(self, studio: Studio, trainings: VoiceTraining) -> None:
        self._studio, self._trainings = studio, trainings
        self._table = RecordingsTable(lambda wave: studio.engine.clone(wave).vector)
        self._keeping = Lock()  # of all pages one keeps, or deletes what another one keeps

    def start(
        self,
        files: Sequence[str] | None,
        name: str,
        language: str,
        agreed: str,
        way: Way = "rows",
        owner: str = "",
        anyway: Sequence[str] = (),
        picked: str | None = None,
    ) -> tuple[str, Update, str]:
        """Check the recordings and begin. Returns why it does not, the training to show, or
        `picked` as it was, and its status. `owner`: the browser, whose readings are learned from
        too; `anyway`: recordings that are taken in spite of their sound."""
        read, training = Reading(self._trainings.data, owner), ""
        try:
            own = read.files()
            files = [*(files or ()), *map(str, own)]
            if not files:
                raise InvalidAudio("Record a voice or drop a file first.")
            names = [Path(file).name for file in files]
            if twice := next((each for each in names if names.count(each) > 1), ""):
                raise InvalidAudio("Two files are called {name}. Rename one.", name=twice)
            wanted = checked_name(self._studio, name)
            wish = Wish(wanted, self._model(), agreed.strip(), language, way=way)
            with TemporaryDirectory() as beside:  # each upload has a folder of its own
                together = [_copied(Path(file), beside) for file in files]
                taken = [*anyway, *read.anyway()]
                training = self._trainings.prepare(wish, together, self._studio.transcribe, taken)
            read.taken(own)
            self._trainings.start(training)
        except TimbreError as error:
            listed = self.listed(training) if training else gr.skip()
            return warning(error), listed, self.told(training or picked)
        return "", self.listed(training), self.told(training)

    def heard(
        self, files: Sequence[str] | None, anyway: Sequence[str]
    ) -> Iterator[tuple[str, Update]]:
        """What the recordings are like, and which can be taken though a check speaks against it."""
        if sounds_of(files):
            yield both(LISTENING), gr.skip()
        html, takeable = self._table.told(files, anyway)
        taken = [name for name in takeable if name in anyway]
        yield html, gr.update(choices=[*takeable], value=taken, visible=bool(takeable))

    def heard_again(self, files: Sequence[str] | None, anyway: Sequence[str]) -> str:
        """The same with others of them taken."""
        return self._table.told(files, anyway).html

    def _model(self) -> str:
        """The folder of the first model that clones."""
        for checkpoint in self._studio.engine.checkpoints().values():
            if checkpoint.capabilities.clone and (folder := getattr(checkpoint, "folder", None)):
                return str(folder)
        raise RequestError(NO_MODEL)

    def go_on(self, training: str | None) -> str:
        return self._do(training, self._trainings.start)

    def stop(self, training: str | None) -> str:
        return self._do(training, self._trainings.stop)

    def keep(self, training: str | None) -> str:
        try:
            with self._keeping:
                if self._trainings.makes_model(training or ""):
                    name = self._keep_model(training or "")
                else:
                    library, there = self._studio.library, self._studio.engine.capabilities()
                    name = self._trainings.keep(training or "", library, there).name
        except TimbreError as error:
            return warning(error)
        return tell(Message("{name} is saved. You find it in every list of voices.", name=name))

    def _keep_model(self, training: str) -> str:
        """Load it beside the others, now and at every start. Returns the name of its voice."""
        engine, before = self._studio.engine, self._trainings.kept_model(training)
        learned = self._trainings.status(training).phase == "done"
        if before and learned and self._trainings.folder(training).merged.is_dir():
            self._forget(before)  # lines were mended since
        kept = self._trainings.keep_model(training, engine.capabilities(), self._studio.library)
        if not self._loaded(kept):
            add_model(engine, str(kept.folder))
        return kept.speaker.capitalize()  # as lists show presets

    def _forget(self, kept: KeptModel) -> None:
        for name in self._loaded(kept):
            self._studio.engine.remove(name)

    def _loaded(self, kept: KeptModel) -> list[str]:
        """Under which names an engine has it; another model may have its own."""
        folder = kept.folder.resolve()
        there = self._studio.engine.checkpoints()
        return [name for name, each in there.items() if getattr(each, "folder", None) == folder]

    def delete(self, training: str | None, asked: str, said: str) -> tuple[str, str]:
        """Delete at the second press, while the page still has the question of the first: `asked`
        is the training that it was about, `said` what the page says."""
        training = training or ""
        try:
            question = tell(SURE_MODEL if self._trainings.kept_model(training) else SURE)
            if (asked, said) != (training, question):
                return question, training
            with self._keeping:
                self._trainings.end(training)  # if it cannot be, its voice stays, too
                if kept := self._trainings.kept_model(training):
                    self._forget(kept)
                self._trainings.delete(training)
        except TimbreError as error:
            return warning(error), ""
        return tell(Message("Deleted, with its recordings.")), ""

    def _do(self, training: str | None, action: Any) -> str:
        try:
            action(training or "")
        except TimbreError as error:
            return warning(error)
        return self.told(training)

    def listed(self, picked: str | None) -> Update:
        """All trainings; the selected one stays selected if it still exists."""
        there = self._trainings.list()
        choices = [(self._name(each), each) for each in there]
        value = picked if picked in there else (there[0] if there else None)
        return gr.update(choices=choices, value=value)

    def _name(self, training: str) -> str:
        """What it was called; its id where that cannot be read."""
        try:
            return self._trainings.folder(training).read().name
        except TimbreError:
            return training

    def told(self, training: str | None) -> str:
        """The progress of a training, as HTML."""
        if not training:
            return both(NONE)
        try:
            status = self._trainings.status(training)
            left_out = self._trainings.folder(training).left_out
        except UnknownVoice:
            return both(GONE)
        except TimbreError as error:
            return escape(tell(error.message))
        return told(status, left_out)

    def see(self, training: str | None, epoch: str | None, before: str) -> tuple[Update, ...]:
        """All that is shown of a training; `before`: the one whose sounds were shown. The status is
        read first: where it has an epoch, its sounds are there."""
        looked, parts = self.look(training), self.parts(training)
        return *looked, *parts, self.sounds(training, epoch, before), training or ""

    def look(self, training: str | None) -> tuple[Update, Update]:
        """The status, and how soon to look again."""
        if not training:
            return both(NONE), gr.Timer(active=False)
        text = self.told(training)
        try:
            going = self._trainings.status(training).phase not in ENDED
        except TimbreError:
            going = False
        return text, gr.Timer(TICK if going else REST, active=True)

    def parts(self, training: str | None) -> list[Update]:
        """Which parts are there: stop, go on, keep, delete, sounds, comparison, mending."""
        try:
            status = self._trainings.status(training or "")
            mendable = bool(self._trainings.mendable(training or ""))
        except TimbreError:
            return [gr.update(visible=False)] * 7
        going = status.phase in GOING
        samples = bool(self._samples(training))
        there = (
            going,
            not going and status.phase not in ("done", "refused"),
            status.phase == "done",
            True,
            samples,
            samples and status.best is not None,
            mendable and not going,
        )
        return [gr.update(visible=each) for each in there]

    def sounds(self, training: str | None, epoch: str | None = None, before: str = "") -> Update:
        """Which epochs can be heard. What is selected stays, also what is selected meanwhile, but
        not if it is gone, or another training's."""
        numbers = sorted({int(path.stem.split("-")[0]) for path in self._samples(training)})
        labels = [(word("The clone") if not n else f"{n}", str(n)) for n in numbers]
        stays = training == before and (not epoch or epoch in map(str, numbers))
        return gr.update(choices=labels) if stays else gr.update(choices=labels, value=None)

    def hear(self, training: str | None, epoch: str | None, number: int = 0) -> Sound | None:
        """The sound of an epoch's sentence."""
        if not epoch or not epoch.isdecimal():
            return None
        wanted = f"{int(epoch)}-{number}"
        for path in self._samples(training):
            if path.stem == wanted:
                with suppress(LibsndfileError):  # deleted meanwhile
                    return SAMPLE_RATE, read_sound(path)
        return None

    def _samples(self, training: str | None) -> list[Path]:
        try:
            folder = self._trainings.folder(training or "")
        except TimbreError:
            return []
        return sorted(folder.samples.glob("*-*.wav"))

    def compare(
        self, training: str | None
    ) -> tuple[Sound | None, Sound | None, dict[str, Any], str]:
        """Two sounds of one sentence: the clone's and the best epoch's, in a drawn order."""
        try:
            status = self._trainings.status(training or "")
        except TimbreError as error:
            return None, None, {}, warning(error)
        if status.best is None:
            return None, None, {}, tell(Message("This training has no voice yet."))
        number = random.choice([n for n in range(PAIRS) if self.hear(training, "0", n)] or [0])
        order = random.sample([0, status.best], 2)
        one, two = equally_loud(*(self.hear(training, str(epoch), number) for epoch in order))
        return one, two, {"order": order, "best": status.best}, ""

    def choose(
        self, first: bool, pair: dict[str, Any], tally: list[int]
    ) -> tuple[str, list[int], dict[str, Any]]:
        """Count a choice; the answer comes after it, so the pair counts once."""
        if not pair:
            return tell(Message("Press Compare first.")), tally, {}
        trained = pair["order"][0 if first else 1] == pair["best"]
        tally = [tally[0] + trained, tally[1] + 1]
        told_ = Message(
            "The trained voice was chosen {trained} of {all} times.",
            trained=tally[0],
            all=tally[1],
        )
        return tell(told_), tally, {}


def _copied(file: Path, folder: str) -> Path:
    with explain_write_errors(file):
        return Path(shutil.copy(file, folder))


def equally_loud(*sounds: Sound | None) -> list[Sound | None]:
    """The louder ones made as quiet as the quietest that is heard: what is louder sounds better."""
    waves = [sound and sound[1].astype(np.float32) / np.float32(32_768) for sound in sounds]
    levels = [0.0 if wave is None else level(wave) for wave in waves]
    quietest = min(filter(None, levels), default=0.0)
    gains = [quietest / own if own else 1.0 for own in levels]
    pairs = zip(sounds, gains, strict=True)
    return [
        sound and (sound[0], np.round(sound[1] * gain).astype(np.int16)) for sound, gain in pairs
    ]


def told(status: Status, left_out: Sequence[Spoken] = ()) -> str:
    """A status as HTML: a sentence, a bar, what the judges say, and which lines are left out."""
    share = len(status.history[1:]) / max(1, status.epochs)
    rows = "".join(_row(each, status.best) for each in status.history)
    heads = ("Epoch", "Semitones away", "Decibels away", "Stops by itself", "Words misheard", "")
    head = "".join(f"<th>{both(each) if each else ''}</th>" for each in heads)
    table = f"<table><tr>{head}</tr>{rows}</table>" if rows else ""
    bar = f'<progress max="1" value="{share:.3f}"></progress>'
    reasons = "".join(
        f"<li>{both(each)}</li>" for each in dict.fromkeys(each.reason for each in left_out)
    )
    head = both("Lines left out: {count}", count=len(left_out))
    out = f"<details><summary>{head}</summary><ul>{reasons}</ul></details>" if reasons else ""
    return f"<p>{both(status.text)}</p>{bar}{table}{out}"


def _row(epoch: Epoch, best: int | None) -> str:
    name = f"{epoch.number}" if epoch.number else both("The clone")
    words = "–" if epoch.words is None else f"{epoch.words:.0%}"
    note = both("Best" if epoch.number and epoch.number == best else epoch.refused)
    cells = (
        name,
        f"{epoch.pitch:+.1f}",
        f"{epoch.spectrum:.1f}",
        f"{epoch.stopped:.0%}",
        words,
        note,
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def build(studio: Studio, trainings: VoiceTraining) -> None:
    """Build the part of the Clone tab."""
    tab, owner, timer = OwnVoiceTab(studio, trainings), browser_id(), gr.Timer(TICK, active=False)
    with gr.Accordion(word("Train a better one"), open=False, elem_id="own-voice"):
        gr.Markdown(word(ABOUT))
        with gr.Row():
            with gr.Column(min_width=320):
                agreed = gr.Textbox("", label=word(WHOSE), placeholder=word(AGREED), max_lines=2)
                read, counted = reading.build(trainings.data, agreed, owner)
                files = gr.File(
                    file_count="multiple", label=word("Recordings and their words"), height=160
                )
                heard = gr.HTML(elem_id="own-voice-heard", padding=False)
                anyway = gr.Dropdown(
                    [],
                    multiselect=True,
                    label=word("Take it anyway"),
                    info=word(lines.RISK),
                    visible=False,
                    **FOUND_LATER,
                )
                name = gr.Textbox("", label=word("Name"), max_lines=1)
                language = gr.Dropdown(
                    [(word(each.capitalize()), each) for each in studio.choices().languages()],
                    value="auto",
                    label=word("Language"),
                )
                way = gr.Radio(
                    [(word(label), value) for label, value in WAYS],
                    value="rows",
                    label=word("What is learned"),
                    info=word(WHAT_EACH_GIVES),
                )
                if not trainings.transcriber:
                    gr.Markdown(word(NO_RECOGNISER), elem_classes="timbre-hint")
                begin = gr.Button(word("Train"), variant="primary")
            with gr.Column(min_width=320, elem_id="own-voice-training"):
                picked = gr.Dropdown([], label=word("Training"), **FOUND_LATER)
                shown = gr.HTML(both(NONE), elem_id="own-voice-status", padding=False)
                with gr.Row():
                    stop = gr.Button(word("Stop"), size="sm", visible=False)
                    go_on = gr.Button(word("Go on"), size="sm", visible=False)
                    keep = gr.Button(word("Keep"), size="sm", variant="primary", visible=False)
                    delete = gr.Button(word("Delete"), size="sm", variant="stop", visible=False)
                answer = gr.Markdown(elem_id="own-voice-answer")
                with gr.Column(visible=False) as hearing:
                    epoch = gr.Dropdown([], label=word("Hear an epoch"), **FOUND_LATER)
                    sound = gr.Audio(label=word("Sample"), interactive=False, buttons=["download"])
                with gr.Column(visible=False) as comparing:
                    gr.Markdown(word(COMPARE))
                    compare = gr.Button(word("Compare"), size="sm")
                    with gr.Row():
                        one = gr.Audio(label="A", interactive=False, buttons=["download"])
                        two = gr.Audio(label="B", interactive=False, buttons=["download"])
                    with gr.Row():
                        first = gr.Button(word("A is nearer"), size="sm")
                        second = gr.Button(word("B is nearer"), size="sm")
                    verdict = gr.Markdown(min_height=24)
                with gr.Column(visible=False) as mending:
                    mended = lines.build(trainings, picked, timer)
    pair, tally, asked_twice, heard_of = gr.State({}), gr.State([0, 0]), gr.State(""), gr.State("")
    looked = [shown, timer]
    asked = [files, name, language, agreed, way, owner, anyway, picked]
    parts = [stop, go_on, keep, delete, hearing, comparing, mending]
    begun = begin.click(_reading, None, [*looked, answer], **QUIET).then(
        tab.start, asked, [answer, picked, shown], **QUIET
    )
    begun.then(_watch, None, timer, **QUIET)
    begun.then(read, owner, counted, **QUIET)
    of, seen = [picked, epoch, heard_of], [*looked, *parts, epoch, heard_of]
    for taken in mended:
        taken.then(tab.see, of, seen, **QUIET)
    looks = {**QUIET, "show_progress": "minimal", "concurrency_limit": 1}
    files.change(tab.heard, [files, anyway], [heard, anyway], trigger_mode="always_last", **looks)
    anyway.input(tab.heard_again, [files, anyway], heard, trigger_mode="always_last", **looks)
    moments: list[Any] = [picked.change, timer.tick]  # no answer about the one before is the last
    gr.on(moments, tab.see, of, seen, trigger_mode="always_last", **QUIET)
    silent = [sound, one, two, pair, tally, verdict, asked_twice]
    picked.change(_silent, None, silent, **QUIET)
    picked.input(_unsaid, None, answer, **QUIET)
    epoch.input(tab.hear, [picked, epoch], sound, **QUIET)
    for button, action in ((go_on, tab.go_on), (stop, tab.stop)):
        acted = button.click(action, picked, shown, **QUIET)
        acted.then(tab.see, of, seen, **QUIET).then(_watch, None, timer, **QUIET)
    keep.click(tab.keep, picked, answer, **QUIET)
    sure = [answer, asked_twice]
    delete.click(tab.delete, [picked, asked_twice, answer], sure, **QUIET).then(
        tab.listed, picked, picked, **QUIET
    )
    compare.click(tab.compare, picked, [one, two, pair, verdict], **QUIET)
    for button, which in ((first, True), (second, False)):
        chosen = gr.State(which)
        button.click(tab.choose, [chosen, pair, tally], [verdict, tally, pair], **QUIET)
    on_show(tab.listed, [picked], [picked])


def _silent() -> tuple[None, None, None, dict[str, Any], list[int], str, str]:
    """Another training's sounds and comparison are none of this one."""
    return None, None, None, {}, [0, 0], "", ""


def _unsaid() -> str:
    return ""


def _reading() -> tuple[str, gr.Timer, str]:
    """Long recordings take a while, before there is a training to follow; the one before is not
    looked at meanwhile."""
    return both(READING), gr.Timer(active=False), ""


def _watch() -> gr.Timer:
    return gr.Timer(TICK, active=True)
