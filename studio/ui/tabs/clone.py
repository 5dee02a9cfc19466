"""The Clone tab: check a recording, try its voice, save it.

The recording is shown as the model gets it. The engine makes the voice and caches encoded
recordings, so trying and saving encode once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import gradio as gr
import numpy as np

from engine import (
    Clone,
    InvalidAudio,
    InvalidText,
    InvalidVoice,
    Message,
    Pcm,
    Recording,
    RequestError,
    SavedVoice,
    SpeechRequest,
    TimbreError,
    UnknownVoice,
    speaking_seconds,
)
from studio.context import Studio
from studio.takes.event_transport import Payload, refusal
from studio.takes.live_take import About
from studio.ui.drafts import SCRIPT, keep_draft
from studio.ui.gradio_compat.scripts import on_event
from studio.ui.i18n import both, errors_shown, tell, warning, word
from studio.ui.live_player import live_player, plays
from studio.ui.recordings.checks import METER, checks_of, level_meter
from studio.ui.recordings.loaded import recording_at
from studio.ui.sound_card import Card, hear, html_of, sound_cards
from studio.ui.tabs import own_voice
from studio.ui.tabs.clone_samples import compare, joined, samples_form
from studio.ui.tabs.voice_form import (
    QUIET,
    SAVED,
    Update,
    model_menu,
    models_now,
    on_show,
    quoted,
    save_form,
    save_voice,
    saved_line,
    try_out,
)
from studio.voices.voice_catalog import PHRASE

FASTEST: Final = 40  # characters of a transcript for each second of its recording, at most
Written: TypeAlias = tuple[str, str]  # a recording's path, and the words recognised in it
# A recogniser takes seconds of the CPU: one at a time for all visitors.
ONE: Final[dict[str, Any]] = {"concurrency_limit": 1, "concurrency_id": "transcribe"}
LEAST_WORDS: Final = 100  # characters that any recording may have
HELP: Final = (
    "Record a voice or drop a file: 5 to 15 seconds of one person, without music. "
    "It stays on this server."
)
WORDS: Final = (
    "With the exact words the clone comes closer. Without them, only the voice is cloned."
)
WRITING: Final = "Writing down what is said …"
READ_IT: Final = "What you were to read. Change what you said otherwise, or empty it."
LIKELY: Final = (0.3, 1.5)  # of the time that a line takes to read slowly
CHECK_IT: Final = "Written down from the recording. Change what is wrong."
READ_ALOUD: Final = (
    "When the sunlight strikes raindrops in the air, they act as a prism and form a rainbow. "
    "The rainbow is a division of white light into many beautiful colours.",
    "The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background. "
    "It's easy to tell the depth of a well.",
    "I usually take the early train, because the carriages are quiet and the view over the bay "
    "is worth getting up for. Would you like to come along?",
    "今天天气很好，我们一起去公园散步吧。路边的花都开了，孩子们在草地上放风筝，笑声传得很远。",
    "窗外下着小雨，屋里飘着热茶的香气。你慢慢地读完这一段，声音自然一点就好，行吗？",
)
CLEANED: Final = "Cleaned reference"
NOTHING: Final = "Shown here once there is a recording."
ADDING: Final = (
    "Texts and menus that name this mood take this recording, where others take the learned mood: "
    "[whisper] … [/whisper]."
)
CONSENT: Final = "This is my voice, or the person has agreed that I copy it."
NEED_CONSENT: Final = Message("Tick the box first: only copy a voice whose owner has agreed.")


class CloneTab:
    """Event handlers."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def check(self, path: str | None) -> tuple[str, str]:
        """The preprocessed recording's card, and a report."""
        if not path:
            return html_of([cleaned(None)]), ""
        try:
            recording = recording_at(path)
        except InvalidAudio as error:
            return html_of([cleaned(None)]), f"<p>{escape(warning(error))}</p>"
        return html_of([cleaned(recording)]), checks_of(recording)

    async def hear(self, path: str | None) -> AsyncIterator[Payload]:
        """Play the preprocessed recording."""
        try:
            recording = await asyncio.to_thread(recording_at, _given(path))
        except InvalidAudio as error:
            yield refusal(error.message)
            return
        async for payload in hear(self._studio, as_pcm(recording), About(tell(CLEANED), "")):
            yield payload

    def transcribe(self, path: str | None) -> Iterator[tuple[Written, Update]]:
        """Transcribe the recording; empty if nothing is recognised."""
        if not path or self._studio.transcribe is None:
            yield ("", ""), gr.skip()
            return
        yield ("", ""), gr.update(placeholder=word(WRITING))
        try:
            words = self._studio.transcribe(recording_at(path).waveform)
        except InvalidAudio:
            words = ""  # the check shows the reason
        yield (path, words), gr.update(placeholder="")

    def models(self, picked: str | None) -> Update:
        """The models that clone, to choose from."""
        return models_now(self.cloners(), picked)

    def cloners(self) -> tuple[str, ...]:
        return self._studio.choices().models(lambda each: each.clone)

    def compare(
        self, path: str | None, more: list[str] | None, agreed: bool, model: str = ""
    ) -> tuple[str, Update]:
        """How alike several recordings are, and which of them are used."""
        return compare(self._studio, path, more, agreed, model)

    async def speak(
        self,
        path: str | None,
        transcript: str,
        agreed: bool,
        phrase: str,
        model: str = "",
        more: list[str] | None = None,
        used: list[str] | None = None,
    ) -> AsyncIterator[Payload]:
        def line() -> SpeechRequest:
            return try_out(phrase, self._voice(path, transcript, agreed, model, more, used))

        async for payload in self._studio.speak(line, tell("Clone")):
            yield payload

    def save(
        self, name: str, colour: str, note: str, path: str | None, words: str, *given: Any
    ) -> str:
        """Save the voice; `given` are consent, model, more recordings and which of all are used.
        Returns a status."""
        try:
            saved = self._keep(name, colour, note, path, words, *given)
        except TimbreError as error:
            return warning(error)
        return saved_line(saved, SAVED)

    def clones(self, picked: str | None = None) -> Update:
        """Saved clones, to which a recording in a mood can be added."""
        saved = [each for each in self._studio.library.list() if each.card.kind == "clone"]
        clones = [(each.name, each.id) for each in saved if not each.built_in]
        there = picked if picked in {key for _, key in clones} else None
        return gr.update(choices=clones, value=there)

    def add(self, picked: str | None, mood: str, path: str | None, words: str, *given: Any) -> str:
        """Keep the recording beside a saved clone's own, as one of its person in a mood; `given`
        are consent and model. Returns a status."""
        try:
            if not picked:
                raise UnknownVoice("Pick a saved clone first.")
            if not mood.strip():
                raise InvalidVoice("Say which mood the recording is in.")
            voice = self._voice(path, words, *given)
            saved = self._studio.library.keep_reference(picked, mood.strip(), voice)
        except TimbreError as error:
            return warning(error)
        there = ", ".join(each.mood for each in saved.card.references)
        message = Message("has recordings in these moods now: {moods}.", moods=there)
        return f"**{saved.name}** {tell(message)}"

    def program(
        self, name: str, path: str | None, transcript: str, agreed: bool, model: str = ""
    ) -> str:
        """Clone the voice of a recording and save it. Returns its id."""
        with errors_shown(str):
            return self._keep(name, "", "", path, transcript, agreed, model).id

    def _keep(
        self, name: str, colour: str, note: str, path: str | None, words: str, *given: Any
    ) -> SavedVoice:
        voice = self._voice(path, words, *given)
        made_from = Path(path or "").name[:400]
        return save_voice(
            self._studio, name, colour, note, voice, consent=True, made_from=made_from
        )

    def _voice(
        self,
        path: str | None,
        transcript: str,
        agreed: bool,
        model: str = "",
        more: list[str] | None = None,
        used: list[str] | None = None,
    ) -> Clone:
        if more and not path:
            path, more = more[0], more[1:]
        given = _given(path)
        if not agreed:
            raise RequestError(NEED_CONSENT)
        first = self._first(given, transcript, model)
        return joined(self._studio, first, path, more, used, model) if more else first

    def _first(self, given: str, transcript: str, model: str) -> Clone:
        """The voice of one recording with its words."""
        recording, words = recording_at(given), transcript.strip()
        if len(words) > max(LEAST_WORDS, FASTEST * recording.seconds):
            raise InvalidText(
                "The transcript has {count:,} characters: more than {seconds:.0f} s of speech can "
                "hold. Paste only what is said in the recording.",
                count=len(words),
                seconds=recording.seconds,
            )
        words = recording.continued(words)
        return self._studio.engine.clone(recording.waveform, words, model or None)


def _given(path: str | None) -> str:
    if not path:
        raise InvalidAudio("Record a voice or drop a file first.")
    return path


def cleaned(recording: Recording | None) -> Card:
    """The card of a preprocessed recording."""
    if recording is None:
        return Card(CLEANED, both(NOTHING))
    length = Message("{seconds:.1f} s", seconds=recording.seconds)
    return Card(CLEANED, escape(tell(length)), as_pcm(recording))


def as_pcm(recording: Recording) -> Pcm:
    return np.round(recording.waveform * 32767).astype(np.int16)


class Adding(NamedTuple):
    """The fields of another recording of a saved clone's person."""

    voice: gr.Dropdown
    mood: gr.Textbox
    button: gr.Button
    status: gr.Markdown


class Controls(NamedTuple):
    audio: gr.Audio
    transcript: gr.Textbox
    agreed: gr.Checkbox
    model: gr.Dropdown
    cleaned: gr.HTML
    done: gr.HTML
    phrase: gr.Textbox
    speak: gr.Button


def build(studio: Studio) -> None:
    """Build the tab in the current Blocks context."""
    tab = CloneTab(studio)
    gr.Markdown(word(HELP))
    with gr.Row():
        with gr.Column(min_width=320):
            gr.Markdown(word("## 1. Record, or drop a file"))
            line, shown, audio, file = _recorded()
            gr.Markdown(word("## 2. Checked"))
            checked, done = sound_cards([cleaned(None)]), gr.HTML(elem_id="clone-report")
            samples = samples_form()
        with gr.Column(min_width=320):
            gr.Markdown(word("## 3. Words and consent"))
            transcript, use, agreed = _consent()
            model = model_menu(tab.cloners())
            gr.Markdown(word("## 4. Try it, and save it"))
            phrase = gr.Textbox(PHRASE, label=word("What to say"), max_lines=3)
            speak = gr.Button(word("Try it"), variant="primary", elem_classes="timbre-go")
            form = save_form()
            adding = _adding()
    controls = Controls(audio, transcript, agreed, model, checked, done, phrase, speak)
    line.change(quoted, line, shown, queue=False, **QUIET)
    player = live_player(studio.live, elem_id="clone-player")
    use.click(lambda text: text, line, transcript, queue=False, **QUIET)
    audio.change(tab.check, audio, [controls.cleaned, controls.done], **QUIET)
    another = [transcript, agreed]
    for changed in (audio.clear, audio.start_recording):
        changed(_another, None, another, queue=False, **QUIET)
    file.upload(lambda path: (path, None, *_another()), file, [audio, file, *another], **QUIET)
    if studio.transcribe is not None:
        written = gr.State(("", ""))
        found = audio.change(tab.transcribe, audio, [written, transcript], **{**QUIET, **ONE})
        found.then(_filled, [written, audio, transcript], transcript, queue=False, **QUIET)
    else:
        read = [audio, line, transcript]
        audio.stop_recording(_read_aloud, read, transcript, queue=False, **QUIET)
    filled = keep_draft("clone", [audio, transcript, controls.phrase, *form.fields])
    if filled is not None:  # clears the transcript with the recording
        left = on_event(SCRIPT, "wordsOf")
        filled.then(None, [audio, transcript], transcript, js=left, queue=False, **QUIET)
    on_show(tab.models, [model], [model])
    voice = [audio, transcript, agreed, model]
    triggers = [controls.speak.click, controls.phrase.submit]
    several = [samples.files, samples.used]
    inputs = [audio, transcript, agreed, controls.phrase, model, *several]
    plays(player, triggers, tab.speak, inputs)
    plays(player, [controls.cleaned.hear], tab.hear, [audio])
    compared = [audio, samples.files, agreed, model]
    changes = [samples.files.change, audio.change, agreed.change, model.change]
    gr.on(
        changes,
        tab.compare,
        compared,
        [samples.compared, samples.used],
        trigger_mode="always_last",
        **QUIET,
    )
    samples.files.upload(lambda: False, None, agreed, queue=False, **QUIET)
    saved = form.button.click(tab.save, [*form.fields, *voice, *several], form.status, **QUIET)
    saved.then(tab.clones, adding.voice, adding.voice, **QUIET)
    on_show(tab.clones, [adding.voice], [adding.voice])
    added = [adding.voice, adding.mood, *voice]
    adding.button.click(tab.add, added, adding.status, **QUIET)
    if studio.trainings is not None:
        own_voice.build(studio, studio.trainings)
    _endpoint(tab)


def _adding() -> Adding:
    with gr.Accordion(word("Or add it to a saved clone, as a recording in a mood"), open=False):
        gr.Markdown(word(ADDING), elem_classes="timbre-hint")
        with gr.Row():
            voice = gr.Dropdown([], value=None, label=word("Saved clone"), allow_custom_value=True)
            mood = gr.Textbox("", label=word("Mood"), max_lines=1, placeholder=word("whisper"))
        button = gr.Button(word("Add the recording"))
        return Adding(voice, mood, button, gr.Markdown(min_height=24))


def _filled(written: Written, path: str | None, transcript: str) -> Update:
    """The recognised words, unless the recording or the field was changed meanwhile."""
    recording, words = written
    if not words or recording != path or transcript.strip():
        return gr.skip()
    return gr.update(value=words, info=word(CHECK_IT))


def _read_aloud(path: str | None, line: str, transcript: str) -> Update:
    """The line that was to be read, where a recording with the microphone is about as long."""
    if not path or transcript.strip():
        return gr.skip()
    try:
        share = recording_at(path).seconds / speaking_seconds(line)
    except InvalidAudio:  # the check shows the reason
        return gr.skip()
    likely = LIKELY[0] <= share <= LIKELY[1]
    return gr.update(value=line, info=word(READ_IT)) if likely else gr.skip()


def _another() -> tuple[str, bool]:
    """Clear transcript and consent: they belong to one recording."""
    return "", False


def _endpoint(tab: CloneTab) -> None:
    """The endpoint `/clone`; the components describe its arguments and check the file."""
    sound = [
        gr.Textbox(label="Name", visible=False),
        gr.Audio(type="filepath", label="Recording", visible=False),
        gr.Textbox("", label="Transcript", visible=False),
        gr.Checkbox(label=CONSENT, visible=False),
        gr.Textbox("", label="Model (empty: one that clones)", visible=False),
    ]
    answer = gr.Textbox(label="Id of the voice", visible=False)
    gr.on([], tab.program, sound, answer, api_name="clone", concurrency_limit=None)


def _recorded() -> tuple[gr.Dropdown, gr.HTML, gr.Audio, gr.File]:
    """Sentences to read aloud, the recording, and where a file is dropped."""
    with gr.Group(elem_classes="timbre-read"):
        line = gr.Dropdown(
            [(_beginning(text), text) for text in READ_ALOUD],
            value=READ_ALOUD[0],
            label=word("To read while you record"),
            filterable=False,
        )
        shown = gr.HTML(quoted(READ_ALOUD[0]), elem_classes="timbre-plain")
    audio = gr.Audio(
        sources=["microphone"],
        type="filepath",
        label=word("Recording"),
        elem_id="clone-recording",
        buttons=["download"],
    )
    gr.HTML(level_meter(), js_on_load=METER, elem_classes="timbre-plain", padding=False)
    file = gr.File(
        label=word("Or drop a recording here"),
        file_types=["audio", "video"],
        height=140,
        elem_id="clone-file",
    )
    return line, shown, audio, file


def _beginning(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def _consent() -> tuple[gr.Textbox, gr.Button, gr.Checkbox]:
    transcript = gr.Textbox(
        "", label=word("Transcript (optional)"), info=word(WORDS), lines=2, max_lines=5
    )
    use = gr.Button(word("I have read this: use it as the transcript"), size="sm")
    return transcript, use, gr.Checkbox(label=word(CONSENT))
