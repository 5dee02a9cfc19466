"""The Blend tab: voices at the corners of a pad, a handle between them, and what it sounds like.

The written blend (`ryan(70)+vivian(30)`) is what counts: the pad writes it, a person may, and
it is what is spoken and saved. Knows no vectors; the engine mixes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import gradio as gr
from gradio.events import api

from engine import Clone, InvalidSetting, SavedVoice, SpeechRequest, TimbreError, parse_blend
from studio.context import Studio
from studio.pad.pad import Handle, blend_pad, handle, released
from studio.pad.weights import CENTRE, MOST, Point, percents, point_of, weights_at
from studio.player.player import live_player, plays
from studio.player.telling import Payload
from studio.tabs.parts import (
    QUIET,
    SAVED,
    Update,
    on_show,
    save_form,
    save_voice,
    speaking,
    told_to_programs,
    try_out,
)
from studio.tabs.passage import Passage
from studio.words import warning, word

Method: TypeAlias = Literal["linear", "spherical"]

STEPS: Final = 9
STEP_LABELS: Final = ["A", *(f"{step}/{STEPS - 1}" for step in range(1, STEPS - 1)), "B"]
PHRASE: Final = "Somewhere between us there is a new voice."
RESERVED: Final = frozenset("+,:()")  # names with these go by their id in a written blend
HELP: Final = (
    "Pick two to four voices and drag the handle between them. Let go, and you hear the blend. "
    "The arrow keys move the handle as well."
)


class BlendTab:
    """What the tab's controls do."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def voices(self) -> list[tuple[str, str]]:
        """Labels and written names of what can be blended."""
        speakers = self._studio.choices().speakers()
        taken = {name.casefold() for name in speakers}
        own = [
            (saved.name, saved.id if RESERVED & set(saved.name) else saved.name)
            for saved in self._studio.library.list()
            if isinstance(saved.voice, Clone)
        ]
        free = [(label, name) for label, name in own if name.casefold() not in taken]
        return [*((name, name) for name in speakers), *free]

    def refresh(self, picked: list[str]) -> Update:
        """The voices there are now; what was picked stays, if it is still there."""
        there = self.voices()
        names = {name for _, name in there}
        return gr.update(choices=there, value=[name for name in picked if name in names])

    def repick(self, picked: list[str]) -> tuple[Handle, str, Update]:
        """Other voices: the handle goes back to the middle."""
        return self._shown(picked, CENTRE)

    def let_go(self, picked: list[str], event: gr.EventData) -> tuple[Handle, str, Update]:
        """The handle stands elsewhere: write what that weighs."""
        return self._shown(picked, released(event))

    def type_in(self, recipe: str) -> tuple[Update, Update]:
        """Somebody wrote a blend: put its voices and the handle where it says.

        What the pad cannot show, or nobody can read, leaves it alone; the player tells why.
        """
        try:
            parts = dict(parse_blend(recipe))
            self._studio.choices().blend(recipe)
        except TimbreError:
            return gr.skip(), gr.skip()
        if len(parts) > MOST:
            return gr.skip(), gr.skip()
        names = self._picked(list(parts))
        at = point_of(list(parts.values()))
        return gr.update(choices=self.voices(), value=names), handle(self._labels(names), at)

    def take_step(self, picked: list[str], step: int) -> tuple[Handle, str]:
        """One of the steps from A to B."""
        if len(picked) < 2:
            return handle(self._labels(picked)), written(picked, [1.0] * len(picked))
        weights = [STEPS - 1 - step, step, *[0] * (len(picked) - 2)]
        return handle(self._labels(picked), point_of(weights)), written(picked, weights)

    async def speak(self, recipe: str, method: Method, phrase: str) -> AsyncIterator[Payload]:
        async for payload in speaking(self._studio, lambda: self._line(recipe, method, phrase)):
            yield payload

    async def speak_there(
        self, picked: list[str], method: Method, phrase: str, aloud: bool, event: gr.EventData
    ) -> AsyncIterator[Payload]:
        """Speak where the handle was let go; the text follows by an event of its own."""
        if not aloud or not picked:
            return
        recipe = written(picked, weights_at(released(event), len(picked)))
        async for payload in self.speak(recipe, method, phrase):
            yield payload

    async def speak_step(
        self, picked: list[str], step: int, method: Method, phrase: str
    ) -> AsyncIterator[Payload]:
        async for payload in self.speak(self.take_step(picked, step)[1], method, phrase):
            yield payload

    async def speak_all(
        self, picked: list[str], method: Method, phrase: str
    ) -> AsyncIterator[Payload]:
        """The same sentence at every step from A to B, as one take."""

        def passage() -> Passage:
            lines = [self._line(recipe, method, phrase) for recipe in path(picked)]
            return Passage(self._studio.engine, lines)

        async for payload in self._studio.live.play(passage):
            yield payload

    def save(self, name: str, colour: str, note: str, recipe: str, method: Method) -> str:
        """Keep the blend as a voice of its own. Says how it went."""
        try:
            saved = self._keep(name, colour, note, recipe, method)
        except TimbreError as error:
            return warning(error)
        return f"**{saved.name}** {word(SAVED)}"

    def program(
        self, name: str, blend: str, method: Literal["linear", "spherical"] = "linear"
    ) -> str:
        """Mix voices, as in ryan(2)+vivian(1), and keep the blend under a name. Returns its id."""
        with told_to_programs():
            return self._keep(name, "", "", blend, method).id

    def _keep(self, name: str, colour: str, note: str, recipe: str, method: Method) -> SavedVoice:
        voice = self._studio.engine.resolve(self._studio.choices().blend(recipe, method)).voice
        if not isinstance(voice, Clone):
            raise InvalidSetting("This blend has one voice only. Add a second one.")
        made_from = f"{method}: {recipe}"[:400]
        return save_voice(
            self._studio, name, colour, note, voice, kind="blend", made_from=made_from
        )

    def _line(self, recipe: str, method: Method, phrase: str) -> SpeechRequest:
        if not recipe.strip():
            raise InvalidSetting("Pick at least one voice first.")
        voice = self._studio.choices().blend(recipe, method)
        return try_out(phrase.strip() or PHRASE, voice, seed=0)  # one seed: only the voice changes

    def _shown(self, picked: list[str], at: Point) -> tuple[Handle, str, Update]:
        """Pad, text and step (none) for a place of the handle."""
        weights = weights_at(at, len(picked)) if picked else ()
        return handle(self._labels(picked), at), written(picked, weights), None

    def _picked(self, names: Sequence[str]) -> list[str]:
        """The list's own spelling of what was written."""
        known = {each.casefold(): name for label, name in self.voices() for each in (label, name)}
        return [known.get(name.casefold(), name) for name in names]

    def _labels(self, names: Sequence[str]) -> list[str]:
        labels = {name: label for label, name in self.voices()}
        return [labels.get(name, name) for name in names]


def written(names: Sequence[str], weights: Sequence[float]) -> str:
    """`ryan(70)+vivian(30)`; what weighs nothing is left out."""
    if not names:
        return ""
    parts = zip(names, percents(weights), strict=True)
    return "+".join(f"{name}({share})" for name, share in parts if share)


def path(picked: Sequence[str]) -> list[str]:
    """The written blends from the first voice to the second, both ends alone."""
    if len(picked) < 2:
        return []
    return [written(picked[:2], (STEPS - 1 - step, step)) for step in range(STEPS)]


class Controls(NamedTuple):
    voices: gr.Dropdown
    pad: gr.HTML
    aloud: gr.Checkbox
    recipe: gr.Textbox
    method: gr.Radio
    phrase: gr.Textbox
    speak: gr.Button
    player: gr.HTML
    step: gr.Radio
    every: gr.Button


def build(studio: Studio) -> None:
    """Lay out the tab and wire it."""
    tab = BlendTab(studio)
    there = tab.voices()
    gr.Markdown(word(HELP))
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            voices, pad, aloud = _pad(there)
        with gr.Column(scale=2, min_width=320):
            recipe, method, phrase, speak = _words([name for _, name in there[:MOST]])
    player = live_player(studio.live, elem_id="blend-player")
    step, every = _strip()
    gr.Markdown(word("### Keep it"))
    form = save_form()
    form.button.click(tab.save, [*form.fields, recipe, method], form.status, **QUIET)
    api(tab.program, api_name="blend", concurrency_limit=None)
    _wire(tab, Controls(voices, pad, aloud, recipe, method, phrase, speak, player, step, every))


def _pad(there: list[tuple[str, str]]) -> tuple[gr.Dropdown, gr.HTML, gr.Checkbox]:
    first = there[:MOST]
    voices = gr.Dropdown(
        there,
        value=[name for _, name in first],
        multiselect=True,
        max_choices=MOST,
        label=word("Voices"),
    )
    pad = blend_pad([label for label, _ in first], elem_id="blend-pad")
    return voices, pad, gr.Checkbox(value=True, label=word("Speak when I let go"))


def _words(first: list[str]) -> tuple[gr.Textbox, gr.Radio, gr.Textbox, gr.Button]:
    middle = weights_at(CENTRE, len(first)) if first else ()
    return (
        gr.Textbox(
            written(first, middle),
            label=word("The blend, written"),
            info=word("Change it and press Enter. Names and weights: ryan(2)+vivian(1)"),
            elem_id="blend-recipe",
        ),
        gr.Radio(
            [(word("Straight"), "linear"), (word("Along the sphere"), "spherical")],
            value="linear",
            label=word("Way between the voices"),
        ),
        gr.Textbox(PHRASE, label=word("What to say"), max_lines=3),
        gr.Button(word("Speak the blend"), variant="primary"),
    )


def _strip() -> tuple[gr.Radio, gr.Button]:
    gr.Markdown(
        word("### From A to B\nThe first two voices: one sentence, nine steps between them.")
    )
    with gr.Row():
        step = gr.Radio(
            list(zip(STEP_LABELS, range(STEPS), strict=True)),
            label=word("Step"),
            scale=4,
            min_width=300,
        )
        every = gr.Button(word("Speak all nine"), min_width=140)
    return step, every


def _wire(tab: BlendTab, on: Controls) -> None:
    """Each press both moves what is shown and speaks, by two events: speech waits for nothing."""
    shown = [on.pad, on.recipe, on.step]
    on_show(tab.refresh, [on.voices], [on.voices])
    on.voices.input(tab.repick, on.voices, shown, **QUIET)
    on.pad.release(tab.let_go, on.voices, shown, **QUIET)
    on.recipe.submit(tab.type_in, on.recipe, [on.voices, on.pad], **QUIET)
    on.step.input(tab.take_step, [on.voices, on.step], [on.pad, on.recipe], **QUIET)
    way = [on.method, on.phrase]
    plays(on.player, [on.speak.click, on.recipe.submit], tab.speak, [on.recipe, *way])
    plays(on.player, [on.pad.release], tab.speak_there, [on.voices, *way, on.aloud])
    plays(on.player, [on.step.input], tab.speak_step, [on.voices, on.step, *way])
    plays(on.player, [on.every.click], tab.speak_all, [on.voices, *way])
