"""Event handlers of the Blend tab: they keep pad, formula and sound consistent.

One object for all visitors: what belongs to one of them travels through the page. Knows no layout
and no vectors; the engine mixes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Hashable, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

import gradio as gr
import numpy as np

from engine import (
    Clone,
    End,
    InvalidSetting,
    Pcm,
    SavedVoice,
    SpeechRequest,
    TimbreError,
    parse_blend,
)
from studio.context import Studio
from studio.ranged_response import RecentSounds
from studio.takes.event_transport import Payload, refusal
from studio.takes.joined_stream import PAUSE, JoinedStream
from studio.takes.live_take import About, Stream
from studio.ui.blend_pad.blend_pad import Handle, handle, released
from studio.ui.blend_pad.pad_weights import CENTRE, MOST, Point, percents, point_of, weights_at
from studio.ui.gradio_compat.events import detail
from studio.ui.i18n import errors_shown, warning, word
from studio.ui.sound_card import FinishedStream
from studio.ui.speech_form import SpeechForm
from studio.ui.tabs.take_compare import Shown, act, again, newest, shown
from studio.ui.tabs.voice_form import (
    SAVED,
    Update,
    models_now,
    save_voice,
    saved_line,
    try_out,
)
from studio.ui.voice_map import MapValue, formula_of, map_value
from studio.voices.consent import blend_consent
from studio.voices.voice_catalog import Menu
from studio.voices.voice_digest import voice_digest

Method: TypeAlias = Literal["linear", "spherical"]

STEPS: Final = 9
SEED: Final = 0  # of all blends: only the voice changes
SOUNDS: Final = 32 << 20  # bytes of what was spoken lately, some 200 sentences
MANY: Final = "The newest are listed. Type to find others."
PHRASE: Final = "Somewhere between us there is a new voice."


class BlendTab:
    """Event handlers."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._sounds = RecentSounds(SOUNDS)

    def voices(self, picked: Sequence[str] = ()) -> list[tuple[str, str]]:
        """Labels and names that the menu lists while `picked` are selected."""
        return _listed(self._menu("", picked))

    def hint(self) -> Any:
        """The hint of the menu where it lists few of many voices."""
        return _hint(self._menu("", ()))

    def speakers(self) -> tuple[str, ...]:
        """The models that take speaker embeddings."""
        return self._studio.choices().models(lambda delivery: delivery.clone or delivery.preset)

    def refresh(self, picked: list[str], model: str | None = None) -> tuple[Update, ...]:
        """The current models; voices, pad and formula where a selected voice is gone.

        Selected voices that still exist stay selected; if none does, the first ones are. An empty
        selection stays empty: the tab may have been emptied while it opened.
        """
        there, models = self.voices(picked), models_now(self.speakers(), model)
        names = [name for _, name in there]
        left = [name for name in picked if name in names] or names[:MOST]
        if not picked or left == picked:
            return gr.skip(), models, gr.skip(), gr.skip()
        pad, recipe, _ = self._shown(left, CENTRE)
        return gr.update(choices=there, value=left), models, pad, recipe

    def offer(self, words: str, picked: Sequence[str]) -> Update:
        """The menu's entries while `picked` are selected and `words` are typed into it."""
        menu = self._menu(words, picked)
        if words and menu.complete:
            return gr.skip()  # the browser searches in the list
        return gr.update(choices=_listed(menu), info=_hint(menu))

    def repick(
        self, picked: list[str], mood: str = "", strength: float = 1.0
    ) -> tuple[Handle, str, Update]:
        """Voices were selected: centre the handle."""
        return self._shown(picked, CENTRE, mood, strength)

    def moved(
        self, picked: list[str], event: gr.EventData, mood: str = "", strength: float = 1.0
    ) -> tuple[Handle, str, Update]:
        """The handle was moved: update the formula."""
        return self._shown(picked, released(event), mood, strength)

    def typed(self, recipe: str) -> tuple[Update, ...]:
        """A formula was typed: select its voices and its mood, and move the handle.

        Nothing changes if the formula is invalid or has more voices or moods than there are
        handles; the player shows the reason.
        """
        try:
            parts, moods = self._parts(recipe)
        except TimbreError:
            return (gr.skip(),) * 5
        if len(parts) > MOST or len(moods) > 1:
            return (gr.skip(),) * 5
        names = self._picked(list(parts))
        at = point_of(list(parts.values()))
        voices = gr.update(choices=self.voices(names), value=names)
        named, strength = next(iter(moods.items()), ("", 1.0))
        return voices, handle(self._labels(names), at), None, named, strength

    def _parts(self, recipe: str) -> tuple[dict[str, float], dict[str, float]]:
        """Voices by weight and moods by strength. Raises RequestError."""
        parts, moods = defaultdict[str, float](float), dict[str, float]()
        choices = self._studio.choices()
        choices.blend(recipe)
        for name, weight in parse_blend(recipe):
            if mood := choices.mood_of(name):
                moods[mood.name] = weight
            else:
                parts[choices.standing(name)] += weight
        return parts, moods

    def take_step(
        self, picked: list[str], step: int, mood: str = "", strength: float = 1.0
    ) -> tuple[Handle, str]:
        """Move to one of the steps from A to B."""
        weights = [STEPS - 1 - step, step, *[0] * (len(picked) - 2)]
        if len(picked) < 2:
            weights = [1] * len(picked)
        at = point_of(weights) if len(picked) > 1 else CENTRE
        return handle(self._labels(picked), at), written(picked, weights, mood, strength)

    # Moods.

    def remood(self, recipe: str, mood: str, strength: float) -> str:
        """The formula with another mood."""
        try:
            choices = self._studio.choices()
            parts = [part for part in parse_blend(recipe) if not choices.mood_of(part[0])]
        except TimbreError:
            return recipe
        voices = "+".join(f"{name}({weight:g})" for name, weight in parts)
        return f"{voices}{_in_mood(mood, strength)}"

    def speak_mood(
        self,
        recipe: str,
        method: Method,
        phrase: str,
        model: str,
        mood: str,
        strength: float,
        aloud: bool,
    ) -> AsyncIterator[Payload]:
        """Speak when the mood or its strength was changed; another event updates the formula."""
        if not aloud:
            return _silence()
        return self.speak(self.remood(recipe, mood, strength), method, phrase, model)

    # The map.

    def mapped(self, model: str | None = None) -> MapValue:
        """All voices of a model with their places."""
        return map_value(self._studio, model or "")

    def found(self, event: gr.EventData) -> tuple[Update, ...]:
        """The formula of a place on the map, and its mood where it has one or none."""
        try:
            recipe = formula_of(event)
            _, moods = self._parts(recipe)
        except TimbreError:
            return (gr.skip(),) * 3  # the player shows the reason
        if len(moods) > 1:
            return recipe, gr.skip(), gr.skip()
        return recipe, *next(iter(moods.items()), ("", 1.0))

    async def speak_found(
        self, method: Method, phrase: str, model: str, event: gr.EventData
    ) -> AsyncIterator[Payload]:
        """Speak the blend at a place on the map, or a voice that is pointed at."""
        try:
            recipe = formula_of(event)
        except InvalidSetting as error:
            yield refusal(error.message)
            return
        async for payload in self.speak(recipe, method, phrase, model):
            yield payload

    async def speak(
        self,
        recipe: str,
        method: Method,
        phrase: str,
        model: str = "",
        owner: str | None = None,
    ) -> AsyncIterator[Payload]:
        """A sentence that was spoken lately is played again. `owner`: the browser for which a new
        one is kept as a take."""
        known: list[Hashable] = []

        def submit() -> Stream:
            line = self._line(recipe, method, phrase, model)
            known.append((voice_digest(line.voice), line.text, model))
            sound = self._sounds.get(known[0])
            if sound is not None:
                return FinishedStream(np.frombuffer(sound, np.int16))
            return self._studio.engine.submit(line)

        def keep(pcm: Pcm, end: End, left: bool) -> str:
            if end.reason != "finished" or left:
                return ""
            new = self._sounds.get(known[0]) is None
            self._sounds.add(known[0], pcm.tobytes())
            return self._take(pcm, recipe, method, text, owner) if new and owner else ""

        text = phrase.strip() or PHRASE

        about = About(self._studio.choices().shown(recipe), text)
        async for payload in self._studio.live.play(submit, keep, about):
            yield payload

    def _take(self, pcm: Pcm, recipe: str, method: Method, text: str, owner: str) -> str:
        """Keep a sentence as a take, which can be regenerated; returns its id."""
        form = SpeechForm(text, recipe, seed=SEED, method=method)
        choices = self._studio.choices()
        key = choices.key(recipe)
        voice = choices.shown(key) or recipe
        take = self._studio.takes.add(
            pcm, text, voice, SEED, form.settings(), owner=owner, voice_key=key
        )
        return take.id

    def kept(self, ids: Shown, event: gr.EventData) -> tuple[Update, ...]:
        """Show a take beside the one before it, or beside the one that it was regenerated from."""
        number = str(detail(event).get("take") or "")
        if not number:
            return (gr.skip(),) * 5
        new, origin = newest(self._studio.takes, number)
        return shown(self._studio, (new, origin or ids[0]))

    def act(self, ids: Shown, event: gr.EventData) -> tuple[Update, ...]:
        """A button of a take's card was pressed."""
        sent = detail(event)
        with errors_shown():
            ids = act(self._studio.takes, ids, str(sent.get("do")), str(sent.get("take")))
        return shown(self._studio, ids)

    async def again(self, owner: str, event: gr.EventData) -> AsyncIterator[Payload]:
        async for payload in again(self._studio, event, owner):
            yield payload

    async def speak_there(
        self,
        picked: list[str],
        method: Method,
        phrase: str,
        model: str,
        aloud: bool,
        event: gr.EventData,
        mood: str = "",
        strength: float = 1.0,
        owner: str | None = None,
    ) -> AsyncIterator[Payload]:
        """Speak the blend at the handle's position; another event updates the formula."""
        if not aloud or not picked:
            return
        weights = weights_at(released(event), len(picked))
        recipe = written(picked, weights, mood, strength)
        async for payload in self.speak(recipe, method, phrase, model, owner):
            yield payload

    async def speak_step(
        self,
        picked: list[str],
        step: int,
        method: Method,
        phrase: str,
        model: str,
        mood: str = "",
        strength: float = 1.0,
    ) -> AsyncIterator[Payload]:
        recipe = self.take_step(picked, step, mood, strength)[1]
        async for payload in self.speak(recipe, method, phrase, model):
            yield payload

    async def speak_all(
        self,
        picked: list[str],
        method: Method,
        phrase: str,
        model: str = "",
        mood: str = "",
        strength: float = 1.0,
    ) -> AsyncIterator[Payload]:
        """Speak the sentence at every step from A to B, as one take."""

        def passage() -> JoinedStream:
            recipes = path(picked, mood, strength)
            lines = [self._line(recipe, method, phrase, model) for recipe in recipes]
            if not lines:
                raise InvalidSetting("Pick two voices first.")
            parts = [(line, PAUSE) for line in lines]
            return JoinedStream(self._studio.engine, parts, ahead=len(parts))

        async for payload in self._studio.live.play(
            passage, about=About(" → ".join(self._labels(picked[:2])), phrase)
        ):
            yield payload

    def save(
        self, name: str, colour: str, note: str, recipe: str, method: Method, model: str = ""
    ) -> str:
        """Save the blend as a voice; returns a status."""
        try:
            saved = self._keep(name, colour, note, recipe, method, model)
        except TimbreError as error:
            return warning(error)
        return saved_line(saved, SAVED)

    def program(
        self,
        name: str,
        blend: str,
        method: Literal["linear", "spherical"] = "linear",
        model: str = "",
    ) -> str:
        """Blend voices, as in clara(2)+robert(1), and save the result. Returns its id.
        The model is optional if one model speaks all of them."""
        with errors_shown(str):
            return self._keep(name, "", "", blend, method, model).id

    def _keep(
        self, name: str, colour: str, note: str, recipe: str, method: Method, model: str = ""
    ) -> SavedVoice:
        """Save the embedding of the model that speaks the blend, so it sounds the same."""
        blend = self._studio.choices().blend(recipe, method)
        voice = self._studio.engine.resolve(blend, model or None).voice
        if not isinstance(voice, Clone):
            raise InvalidSetting("This blend has one voice only. Add a second one.")
        made_from = f"{method}: {recipe}"[:400]
        parts = self._studio.choices().blend_parts(recipe)
        consent = blend_consent(parts, self._studio.library)
        return save_voice(
            self._studio,
            name,
            colour,
            note,
            voice,
            kind="blend",
            made_from=made_from,
            consent=consent,
        )

    def _line(self, recipe: str, method: Method, phrase: str, model: str) -> SpeechRequest:
        if not recipe.strip():
            raise InvalidSetting("Pick at least one voice first.")
        voice = self._studio.choices().blend(recipe, method)
        line = try_out(phrase.strip() or PHRASE, voice, seed=SEED)
        return replace(line, model=model or None)

    def _shown(
        self, picked: list[str], at: Point, mood: str = "", strength: float = 1.0
    ) -> tuple[Handle, str, Update]:
        """Pad, formula and step (none) for a position of the handle."""
        weights = weights_at(at, len(picked)) if picked else ()
        return handle(self._labels(picked), at), written(picked, weights, mood, strength), None

    def _menu(self, words: str, picked: Sequence[str]) -> Menu:
        return self._studio.choices().menu(words, picked, blends=True, as_long=True)

    def _picked(self, names: Sequence[str]) -> list[str]:
        """Names as the list spells them."""
        listed = self.voices(names)
        known = {each.casefold(): name for label, name in listed for each in (label, name)}
        return [known.get(name.casefold(), name) for name in names]

    def _labels(self, names: Sequence[str]) -> list[str]:
        labels = {name: label for label, name in self.voices(names)}
        return [labels.get(name, name) for name in names]


def _listed(menu: Menu) -> list[tuple[str, str]]:
    return [(voice.name, voice.written) for voice in menu.voices]


def _hint(menu: Menu) -> Any:
    return "" if menu.complete else word(MANY)


def written(
    names: Sequence[str], weights: Sequence[float], mood: str = "", strength: float = 1.0
) -> str:
    """`robert(70)+clara(30)+lower(0.5)`; weights of zero are omitted."""
    if not names:
        return ""
    parts = zip(names, percents(weights), strict=True)
    voices = "+".join(f"{name}({share})" for name, share in parts if share)
    return f"{voices}{_in_mood(mood, strength)}"


def _in_mood(mood: str | None, strength: float | None) -> str:
    dose = 1.0 if strength is None else float(strength)
    return f"+{mood}({dose:g})" if mood and dose else ""


def path(picked: Sequence[str], mood: str = "", strength: float = 1.0) -> list[str]:
    """Blend formulas from the first voice to the second, ends included."""
    if len(picked) < 2:
        return []
    shares = ((STEPS - 1 - step, step) for step in range(STEPS))
    return [written(picked[:2], weights, mood, strength) for weights in shares]


async def _silence() -> AsyncIterator[Payload]:
    return
    yield
