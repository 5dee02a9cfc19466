"""The Design tab: describe a voice, compare three takes, save one.

Where a model clones, the chosen take becomes the reference of the kept voice, so it sounds the
same every time. Otherwise the description is kept. Knows no networks.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Final, NamedTuple

import gradio as gr
import numpy as np

from engine import (
    SAMPLE_RATE,
    SYLLABIC,
    Clone,
    Design,
    InvalidSetting,
    InvalidText,
    Message,
    Pcm,
    SavedVoice,
    SpeechRequest,
    SpeechStream,
    TimbreError,
    load_reference_audio,
)
from studio.context import Studio
from studio.takes.event_transport import Payload, refusal
from studio.takes.live_take import About, Part
from studio.ui.drafts import keep_draft
from studio.ui.gradio_compat.events import api
from studio.ui.i18n import both, errors_shown, tell, warning, word
from studio.ui.live_player import PLAYING, live_player, plays, translated
from studio.ui.sound_card import Card, hear, html_of, pressed, sound_cards
from studio.ui.tabs.voice_form import (
    QUIET,
    Update,
    save_form,
    save_voice,
    saved_line,
)

TAKES: Final = 3
LONGEST: Final = 600  # letters that are said in less than a minute; a syllable's sign counts three
NONE: Final = "Not made yet"
FIRST: Final = "Press “Make three takes” first."
TICK: Final = 0.25  # seconds between looks at the takes; a closed page is noticed by then
PHRASE: Final = "Good evening. I have been looking forward to telling you this story."
EXAMPLES: Final = (
    "A warm, low voice of an old man who smiles while he speaks.",
    "A young woman, quick and bright, close to the microphone.",
    "A calm news reader, clear and even.",
)
HELP: Final = (
    "Describe a voice. You get three takes of it, played one after the other; keep the one you "
    "like."
)
BETWEEN: Final = 0.7  # seconds between takes that are played
REFERENCE: Final = "is saved. It will sound like this take every time."
DESCRIBED: Final = (
    "is saved. No loaded model clones, so the description is kept: each time is a new try."
)


@dataclass(frozen=True, eq=False)
class Sketch:
    """A take of a described voice, with what is needed to save it."""

    description: str
    text: str
    pcm: Pcm
    label: str = ""  # of its card


@dataclass
class Trying:
    """A take being generated; all are generated concurrently and shown when complete."""

    stream: SpeechStream
    parts: list[Pcm] = field(default_factory=list)
    problem: str = ""
    over: bool = False

    async def follow(self) -> None:
        try:
            async for chunk in self.stream:
                self.parts.append(chunk.pcm)
        except TimbreError as error:
            self.problem = error.message
        finally:
            self.over = True

    @property
    def stopped(self) -> bool:
        return self.stream.end is not None and self.stream.end.reason == "cancelled"

    @property
    def pcm(self) -> Pcm:
        return np.concatenate(self.parts) if self.parts else np.zeros(0, np.int16)

    def label(self) -> str:
        seconds = sum(map(len, self.parts)) / SAMPLE_RATE
        if self.problem:
            return f"⚠️ {tell(self.problem)}"
        if self.over:
            return tell(
                Message("{seconds:.1f} s, seed {seed}", seconds=seconds, seed=self.stream.seed)
            )
        return f"{seconds:.1f} s …" if seconds else tell("Waiting for its turn")


class DesignTab:
    """Event handlers."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._making: dict[str, list[Trying]] = {}  # by page

    async def sketch(
        self,
        description: str,
        phrase: str,
        before: Sequence[Sketch],
        page: gr.Request | None = None,
    ) -> AsyncIterator[tuple[Update, ...]]:
        """Yield the takes' cards, sketches, whether these are new, and a status until all takes are
        complete. Stopped, or where all fail, the takes `before` are back."""
        text = phrase.strip() or PHRASE
        try:
            tries = self._begin(description.strip(), text)
        except TimbreError as error:
            yield gr.skip(), gr.skip(), False, warning(error)
            return
        with self._stoppable(tries, page):
            work = [asyncio.ensure_future(each.follow()) for each in tries]
            while not all(each.over for each in tries):
                yield html_of(_trying(tries)), [], False, word("Making three takes …")
                await asyncio.wait(work, timeout=TICK)
        if any(each.stopped for each in tries):
            yield html_of(_cards(before)), before, False, word("Stopped.")
            return
        if all(each.problem for each in tries):
            yield html_of(_cards(before)), before, False, f"⚠️ {tell(tries[0].problem)}"
            return
        said = description.strip()
        sketches = [Sketch(said, text, each.pcm, each.label()) for each in tries]
        yield html_of(_cards(sketches)), sketches, True, word("Listen, pick one, and keep it.")

    async def hear_all(self, sketches: Sequence[Sketch], new: bool) -> AsyncIterator[Payload]:
        """Play takes that were just made one after the other."""
        silence = np.zeros(round(BETWEEN * SAMPLE_RATE), np.int16)
        sounds, parts, start = list[Pcm](), list[Part](), 0
        for number, sketch in enumerate(sketches):
            parts.append(Part(start, _heard_as(number), sketch.text))
            sounds += [sketch.pcm, silence]
            start += len(sketch.pcm) + len(silence)
        if new:
            about = About(_heard_as(0), sketches[0].text, lambda: parts)
            async for payload in hear(self._studio, np.concatenate(sounds), about):
                yield payload

    async def hear(self, sketches: Sequence[Sketch], event: gr.EventData) -> AsyncIterator[Payload]:
        """Play one of the takes."""
        number = pressed(event)
        if 0 <= number < len(sketches):
            sketch = sketches[number]
            about = About(_heard_as(number), sketch.text)
            async for payload in hear(self._studio, sketch.pcm, about):
                yield payload
        else:
            yield refusal(FIRST)

    def stop(self, page: gr.Request | None = None) -> None:
        """Stop this session's takes; the generating event reports it, so updates stay in order."""
        for each in self._making.get(_mark(page), ()):
            each.stream.cancel()

    @contextmanager
    def _stoppable(self, tries: list[Trying], page: gr.Request | None) -> Iterator[None]:
        self._making[_mark(page)] = tries
        try:
            yield
        finally:
            self._making.pop(_mark(page), None)
            for each in tries:
                each.stream.cancel()

    def save(
        self, name: str, colour: str, note: str, sketches: Sequence[Sketch], pick: int | None
    ) -> str:
        """Save one of the takes as a voice; returns a status."""
        try:
            saved = self._keep(name, colour, note, _picked(sketches, pick))
        except TimbreError as error:
            return warning(error)
        return saved_line(saved, REFERENCE if self._clones() else DESCRIBED)

    def program(self, name: str, description: str, text: str = PHRASE, seed: int = 0) -> str:
        """Speak one take of a described voice and save it. Returns its id."""
        with errors_shown(str):
            _check_length(text)
            request = SpeechRequest(text, Design(description), seed=seed, live=False)
            pcm = self._studio.engine.submit(request).collect()
            return self._keep(name, "", "", Sketch(description, text, pcm)).id

    def _keep(self, name: str, colour: str, note: str, sketch: Sketch) -> SavedVoice:
        made_from = f"Designed: {sketch.description}"[:400]
        voice = self._voice(sketch)
        about = {"kind": "design", "made_from": made_from}
        return save_voice(self._studio, name, colour, note, voice, **about)

    def _begin(self, description: str, text: str) -> list[Trying]:
        if not description:
            raise InvalidSetting(
                "Describe a voice first, for example: {example}", example=EXAMPLES[0]
            )
        _check_length(text)
        tries: list[Trying] = []
        try:
            for seed in _seeds():
                request = SpeechRequest(text, Design(description), seed=seed, live=False)
                tries.append(Trying(self._studio.engine.submit(request)))
        except TimbreError:
            for each in tries:
                each.stream.cancel()
            raise
        return tries

    def _voice(self, sketch: Sketch) -> Clone | Design:
        """A clone of the take if a model clones, else the description."""
        if not self._clones():
            return Design(sketch.description)
        waveform = load_reference_audio((sketch.pcm, SAMPLE_RATE)).waveform
        return self._studio.engine.clone(waveform, sketch.text)

    def _clones(self) -> bool:
        return any(
            capabilities.clone for capabilities in self._studio.engine.capabilities().values()
        )


def _mark(page: gr.Request | None) -> str:
    return (page.session_hash or "") if page else ""


def _check_length(text: str) -> None:
    """A take becomes a reference, which lasts a minute at most."""
    if len(text) + 2 * len(SYLLABIC.findall(text)) > LONGEST:
        raise InvalidText(
            "This is more than a voice can be made from. Write two or three sentences."
        )


def _seeds() -> list[int]:
    first = secrets.randbelow(1_000_000)
    return [first + number for number in range(TAKES)]


def _name(number: int) -> str:
    return f"Take {number + 1}"


def _heard_as(number: int) -> str:
    return f"{tell('Design')} · {tell(_name(number))}"


def _trying(tries: Sequence[Trying]) -> list[Card]:
    return [Card(_name(number), escape(each.label())) for number, each in enumerate(tries)]


def _cards(sketches: Sequence[Sketch]) -> list[Card]:
    if not sketches:
        return [Card(_name(number), both(NONE)) for number in range(TAKES)]
    return [
        Card(_name(number), escape(each.label), each.pcm if len(each.pcm) else None)
        for number, each in enumerate(sketches)
    ]


def _picked(sketches: Sequence[Sketch], pick: int | None) -> Sketch:
    if not sketches:
        raise InvalidSetting(FIRST)
    if pick is None:
        raise InvalidSetting("Pick one under “Which take to save?” first.")
    if not len(sketches[pick].pcm):
        raise InvalidSetting("This take has no sound. Pick another one.")
    return sketches[pick]


class Controls(NamedTuple):
    description: gr.Textbox
    phrase: gr.Textbox
    make: gr.Button
    stop: gr.Button
    status: gr.Markdown


def build(studio: Studio) -> None:
    """Build the tab in the current Blocks context."""
    tab = DesignTab(studio)
    gr.Markdown(word(HELP))
    on = _fields()
    takes = sound_cards(_cards([]))
    player = live_player(studio.live, elem_id="design-player")
    sketches, new = gr.State([]), gr.State(False)
    pick = gr.Radio(
        [(word(f"Take {number + 1}"), number) for number in range(TAKES)],
        label=word("Which take to save?"),
    )
    form = save_form()
    outputs = [takes, sketches, new, on.status]
    made = gr.on(
        [on.make.click, on.description.submit],
        tab.sketch,
        [on.description, on.phrase, sketches],
        outputs,
        trigger_mode="once",
        **QUIET,
    )
    made.then(translated(tab.hear_all), [sketches, new], player, **PLAYING)
    keep_draft("design", [on.description, on.phrase, *form.fields])
    on.stop.click(tab.stop, None, None, **QUIET)
    plays(player, [takes.hear], tab.hear, [sketches])
    form.button.click(tab.save, [*form.fields, sketches, pick], form.status, **QUIET)
    api(tab.program, api_name="design", concurrency_limit=None)


def _fields() -> Controls:
    description = gr.Textbox("", label=word("The voice"), lines=3, placeholder=EXAMPLES[0])
    with gr.Column(elem_classes="timbre-examples"):  # has its height before they are loaded
        gr.Examples(
            [[each] for each in EXAMPLES],
            [description],
            label=word("For example"),
            api_visibility="private",
        )
    phrase = gr.Textbox(PHRASE, label=word("What to say"), max_lines=3)
    with gr.Row():
        make = gr.Button(word("Make three takes"), variant="primary", elem_classes="timbre-go")
        stop = gr.Button(word("Stop"))
    return Controls(description, phrase, make, stop, gr.Markdown(min_height=24))
