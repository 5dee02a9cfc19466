"""Event handlers of the Speak tab: requests from its fields, finished takes, the list.

One object for all visitors: what belongs to one of them travels through the page. Knows the
engine's public face, no layout.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, TypeAlias

import gradio as gr

from engine import (
    EarlyStart,
    InvalidSetting,
    Message,
    RequestError,
    SamplingParams,
    SpeechEngine,
    TimbreError,
    Voice,
    checked,
    parse_blend,
    speaking_seconds,
)
from studio.context import Studio
from studio.takes.event_transport import Payload, refusal
from studio.ui import take_card
from studio.ui.gradio_compat.events import detail
from studio.ui.i18n import both, errors_shown, tell, warn, word
from studio.ui.speech_form import (
    SpeechForm,
    asked_for,
    draw_seed,
    named_now,
    read_seed,
    rounded,
)
from studio.ui.tabs.mood_field import listed_anew
from studio.ui.tabs.take_compare import Shown, about, act, newest, shown, speak, with_waves
from studio.ui.tabs.voice_form import models_now
from studio.ui.voice_list import found_cards, toggled
from studio.ui.voice_picker import picker_html
from studio.voices.speaker_notes import described
from studio.voices.text_script import FOREIGN, foreign
from studio.voices.voice_catalog import BLEND_MARKS, Choice

Update: TypeAlias = Any  # what Gradio takes for a component

WELCOME = "Welcome to Timbre. Type anything you like, and I will say it."
SAMPLE = "Hello. This is how I sound."
SHOWN = 8  # takes in the list
FILL = ("fill", "Load these settings")  # a button of a card
LETTERS = "{count} of {most} characters · about {seconds}"
TOO_MANY = "Use fewer, or the Script tab."
FIELDS = 6  # before the Advanced ones: text, voice, language, instruction, seed; after: lock
EXTRA = 6  # after the Advanced ones: speed, pronunciation, start, mood, its strength, model
KEPT_OUTPUTS = 7
# How playback starts where speech is generated slower than real time.
STARTS: tuple[tuple[str, EarlyStart], ...] = (
    ("Wait, then without a pause", "off"),
    ("Start now, with pauses between sentences", "pauses"),
    ("Start at once, with pauses anywhere", "pieces"),
)
UNKNOWN = "Tags that name no mood here are left out: {tags}."
LEFT_OUT = "{cues} is skipped: this voice follows no instructions."


@dataclass(frozen=True)
class Setting:
    """An advanced setting; `name` is a field of SamplingParams, or `longest`."""

    name: str
    label: str
    range: dict[str, Any]


ADVANCED = (
    Setting("temperature", "Temperature", {"minimum": 0.01, "maximum": 5, "step": 0.05}),
    Setting("top_k", "Top-k", {"minimum": 0, "maximum": 4096, "precision": 0}),
    Setting("top_p", "Top-p", {"minimum": 0.01, "maximum": 1, "step": 0.05}),
    Setting("repetition_penalty", "Repetition penalty", {"minimum": 1, "maximum": 5, "step": 0.05}),
    Setting("predictor_temperature", "Acoustic temperature", {"maximum": 5, "step": 0.05}),
    Setting("predictor_top_k", "Acoustic top-k", {"maximum": 4096, "precision": 0}),
    Setting("predictor_top_p", "Acoustic top-p", {"maximum": 1, "step": 0.05}),
    Setting("longest", "Max. length (s)", {"minimum": 0}),
)


class SpeakHandlers:
    """The handlers of the Speak tab."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    # What can be picked.

    def first(self) -> str:
        """The voice that is chosen at first; empty: the model's own."""
        return next((voice.key for voice in self._studio.choices().list()), "")

    def listed(
        self, words: str, favourites: Sequence[str] | None, voice: str | None
    ) -> tuple[str, Update]:
        """The cards that a search finds, and the star of the chosen voice."""
        starred, catalog = favourites or [], self._studio.choices().list()
        html = picker_html(self._studio, words, starred, voice or "", catalog)
        return html, self.starred(starred, voice, catalog)

    def starred(
        self,
        favourites: Sequence[str] | None,
        voice: str | None,
        catalog: Sequence[Choice] | None = None,
    ) -> Update:
        """The button that stars the chosen voice; blends have none."""
        known = {each.key for each in catalog or self._studio.choices().list()}
        label = "Remove star" if voice in (favourites or []) else "Star"
        return gr.update(value=word(label), visible=voice in known)

    def star(self, favourites: Sequence[str] | None, voice: str | None) -> list[str]:
        """The favourites, with or without the chosen voice."""
        return toggled(favourites or [], voice or "")

    def find(
        self, words: str, favourites: Sequence[str] | None, voice: str | None
    ) -> tuple[Update, Update]:
        """Enter in the search: the voice of that name, a blend, or the first that is found; the
        search is cleared."""
        written, choices = words.strip(), self._studio.choices()
        if not written:
            return gr.skip(), gr.skip()
        key = choices.key(written)
        if key in {each.key for each in choices.list()} or self._there(written):
            return key, ""
        found = [card for card in found_cards(self._studio, written, favourites or []) if card.here]
        if found:
            return found[0].key, ""
        with errors_shown():
            choices.requested(written)
        return written, ""

    def languages(self) -> list[tuple[Any, str]]:
        named = self._studio.choices().languages()
        return [(word(name.capitalize()), name) for name in named]

    def use(self, key: str) -> tuple[Update, Update]:
        """Select a voice picked elsewhere; the request is cleared so that it can repeat."""
        if not key:
            return gr.skip(), gr.skip()
        return key if self._there(key) else gr.skip(), ""

    def arrive(self, voice: str | None, language: str | None) -> tuple[Update, Update]:
        """Languages, and another voice or language where the selected one no longer exists."""
        languages, there = self.languages(), self._there(voice or "")
        spoken = gr.update(choices=languages)
        if language not in {name for _, name in languages}:
            spoken["value"] = "auto"
        return gr.skip() if there else self.first(), spoken

    def opened(
        self, voice: str | None, language: str | None, model: str | None, mood: str | None
    ) -> tuple[Update, ...]:
        """What is told and offered for the fields of a draft: `arrive`, `picked`, the moods and
        `starts`."""
        arrived = self.arrive(voice, language)
        spoken = voice if self._there(voice or "") else self.first()
        moods = listed_anew(self._studio, mood)
        return *arrived, *self.picked(spoken, model), moods, self.starts()

    def starts(self) -> Update:
        """The choice of how playback starts, where speech is generated slower than real time."""
        return gr.update(visible=(self._studio.engine.stats().speed or 1.0) < 1.0)

    def about(self, voice: str) -> str:
        """A one-line description of a voice."""
        try:
            return self._described(voice.strip())
        except TimbreError as error:
            return escape(tell(error.message))

    def told(self, voice: str) -> str:
        """Name and description of the chosen voice."""
        name = self._studio.choices().shown(voice) or voice
        strong = f"<strong>{escape(name)}</strong> " if name else ""
        return f"{strong}{self.about(voice)}"

    def models(self, voice: str | None) -> tuple[str, ...]:
        """The models that can speak a voice."""
        engine = self._studio.engine
        try:
            wanted = self._studio.choices().requested(voice or "")
        except TimbreError:
            return ()
        return tuple(name for name in engine.capabilities() if _speaks(engine, wanted, name))

    def picked(self, voice: str | None, model: str | None = "") -> tuple[str, Update, Update]:
        """The description, the instruction field, disabled where the voice ignores it, and the
        models that speak the voice."""
        name = voice or ""
        reason = self._refusal(name)
        hint = tell(reason) or word("For example: slowly, with a smile")
        style = gr.update(interactive=not reason, placeholder=hint, info=tell(reason))
        return self.told(name), style, models_now(self.models(name), model)

    def chosen(
        self, voice: str | None, model: str | None, favourites: Sequence[str] | None
    ) -> tuple[Update, ...]:
        """What is told of a voice that was chosen, and the button that stars it."""
        return *self.picked(voice, model), self.starred(favourites, voice)

    def count(self, text: str) -> str:
        """Number of characters and estimated duration."""
        if not text.strip():
            return ""
        most = self._studio.engine.settings.max_text
        seconds = rounded(speaking_seconds(text))
        counted = both(LETTERS, count=f"{len(text):,}", most=f"{most:,}", seconds=seconds)
        if foreign(text, self._studio.choices().languages()):
            counted = f"{counted}<br>⚠️ {both(FOREIGN)}"
        return counted if len(text) <= most else f"<b>{counted}. {both(TOO_MANY)}</b>"

    def lock(self, locked: bool, seed: str, owner: str) -> str:
        """The locked seed: the field's value or the last take's; empty when unlocked."""
        if not locked:
            return ""
        last = self._studio.takes.search(owner=owner, limit=1) if owner and not seed.strip() else []
        return str(last[0].seed) if last else seed

    def roll(self) -> tuple[str, bool]:
        """A random seed, locked."""
        return draw_seed(), True

    # Speaking.

    async def press(self, owner: str, *fields: Any) -> AsyncIterator[Payload]:
        """Payloads for the player after Speak was pressed."""
        text, voice, language, instruct, seed, *others = fields
        advanced, extra = others[: len(ADVANCED)], others[len(ADVANCED) :]
        if self._refusal(voice or ""):
            instruct = ""  # the field may hold the instruction for another voice
        asking = partial(read, text, voice, language, instruct, seed, advanced, *extra)
        form = SpeechForm(text, voice or "")
        if unknown := form.unknown(self._studio.choices()):
            warn(Message(UNKNOWN, tags=", ".join(unknown)))
        cues = form.dropped(self._studio.choices())
        if cues:
            listed = ", ".join(f"[{cue}]" for cue in cues)
            warn(Message(LEFT_OUT, cues=listed))
        async for payload in self._play(asking, owner):
            yield payload

    async def sample(self, voice: str | None) -> AsyncIterator[Payload]:
        """A short sample of a voice; not saved."""
        async for payload in self._play(lambda: SpeechForm(SAMPLE, voice or ""), None):
            yield payload

    async def welcome(self, owner: str, voice: str | None) -> AsyncIterator[Payload]:
        async for payload in self._play(lambda: SpeechForm(WELCOME, voice or ""), owner):
            yield payload

    # Showing.

    def keep(
        self, owner: str, keep_seed: bool, seed: str, event: gr.EventData
    ) -> tuple[Update, ...]:
        """Show a finished take: the list, the seed if it is locked, and the card."""
        number = detail(event).get("take")
        if not number:
            return (gr.skip(),) * KEPT_OUTPUTS
        take = self._studio.takes.find(number)
        pair = shown(self._studio, newest(self._studio.takes, number), FILL)
        return self.last(owner), str(take.seed) if keep_seed else seed, *pair

    def act(self, owner: str, ids: Shown, event: gr.EventData) -> tuple[Update, ...]:
        """Handle a button of the list or of a card."""
        takes, data = self._studio.takes, detail(event)
        with errors_shown():
            ids = act(takes, ids, str(data.get("do")), str(data.get("take")))
        return self.last(owner), *shown(self._studio, ids, FILL)

    def fill(self, event: gr.EventData) -> tuple[Update, ...]:
        """Load a take's settings into the fields and lock its seed; other buttons do nothing."""
        if detail(event).get("do") != FILL[0]:
            return (gr.skip(),) * (FIELDS + len(ADVANCED) + EXTRA)
        with errors_shown():
            kept = asked_for(self._studio.takes.get(str(detail(event).get("take"))))
        numbers = {**kept.sampling.model_dump(), "longest": kept.longest}
        advanced = [_written(numbers[field.name]) for field in ADVANCED]
        spoken = (kept.text, kept.voice, kept.language, kept.instruct, str(kept.seed))
        mood = kept.mood if self._studio.choices().moods.find(kept.mood) else ""
        model = models_now(self.models(kept.voice), kept.model)
        rest = (kept.speed, kept.spellings, gr.skip(), mood, kept.strength, model)
        return *spoken, *advanced, *rest, True

    def last(self, owner: str) -> str:
        """The latest takes of a browser, or the empty state."""
        takes = self._studio.takes.search(owner=owner, limit=SHOWN) if owner else []
        named = named_now(takes, self._studio.choices())
        listed = with_waves(self._studio.takes, named)
        return take_card.rows(listed) if takes else take_card.EMPTY

    def arrived(self, owner: str, known: list[str] | None) -> str:
        """The list; takes that only the browser knew are assigned to it."""
        for number in known or []:
            self._studio.takes.adopt(str(number), owner)
        return self.last(owner)

    def _play(self, asking: Callable[[], SpeechForm], owner: str | None) -> AsyncIterator[Payload]:
        """`owner` None: not saved."""
        try:
            request = asking()
        except TimbreError as error:
            return _refused(error.message)
        if owner is not None:
            return speak(self._studio, request, owner)
        studio = self._studio
        return studio.live.play(
            lambda: request.submit(studio.engine, studio.choices()), about=about(studio, request)
        )

    def _refusal(self, name: str) -> Message:
        """Why a voice ignores instructions; empty if it follows them or is unknown."""
        return self._studio.choices().refusal(name) if name else Message("")

    def _there(self, name: str) -> bool:
        """Whether all voices it names exist; empty is valid if there are none."""
        choices = self._studio.choices()
        try:
            return choices.read(name) is not None if name else not choices.list()
        except TimbreError:
            return False

    def _described(self, name: str) -> str:
        choices = self._studio.choices()
        if not name:
            return both("The model's default voice")
        known = {voice.key: voice for voice in choices.list()}
        choice = known.get(choices.key(name))
        if choice is None and any(mark in name for mark in BLEND_MARKS):
            choices.blend(name)
            return escape(_mixture(choices.shown(name) or name))
        if choice is None:
            choices.named(name)
            return both("A saved voice")
        kinds = {
            "preset": "A preset voice",
            "saved": "A saved voice",
            "design": "A designed voice",
        }
        kind = both(kinds[choice.kind])
        stranger = tell(choices.stranger(choices.named(name)))
        note = both(choice.note) if described(choice.name) == choice.note else escape(choice.note)
        text = f"{kind}: {note}" if choice.note else kind
        return f"{text}<br>⚠️ {escape(stranger)}" if stranger else text


def read(
    text: str,
    voice: str | None,
    language: str | None,
    instruct: str,
    seed: str,
    advanced: Sequence[str],
    speed: float | None = None,
    spellings: str = "",
    start: EarlyStart = "off",
    mood: str | None = "",
    strength: float | None = 1.0,
    model: str | None = "",
) -> SpeechForm:
    """Parse the fields. Raises InvalidSetting."""
    written = zip(ADVANCED, advanced, strict=True)
    numbers = {field.name: _number(field.label, text) for field, text in written}
    longest = numbers.pop("longest")
    return SpeechForm(
        text=text,
        voice=voice or "",
        language=language or "auto",
        instruct=instruct,
        seed=read_seed(seed),
        sampling=checked(SamplingParams, **numbers),
        longest=longest,
        speed=1.0 if speed is None else float(speed),
        spellings=spellings,
        early_start=start,
        mood=mood or "",
        strength=1.0 if strength is None else float(strength),
        model=model or "",
    )


def _speaks(engine: SpeechEngine, voice: Voice, model: str) -> bool:
    try:
        engine.resolve(voice, model)
    except RequestError:
        return False
    return True


def _number(label: str, written: str) -> float | None:
    try:
        return float(written.replace(",", ".")) if written.strip() else None
    except ValueError as error:
        raise InvalidSetting("{label} must be a number, or empty.", label=label) from error


def _written(number: float | None) -> str:
    return "" if number is None else f"{number:g}"


async def _refused(message: str) -> AsyncIterator[Payload]:
    yield refusal(message)


def _mixture(recipe: str) -> str:
    parts = parse_blend(recipe)
    total = sum(weight for _, weight in parts)
    shares = (f"{name} {weight / total:.0%}" for name, weight in parts)
    return tell(Message("A blend: {shares}.", shares=", ".join(shares)))
