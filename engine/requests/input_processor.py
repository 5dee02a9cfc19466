"""Checks a request and turns it into a sequence; every refusal happens here.

Runs in the caller's thread, so an invalid request costs the engine nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, get_args

from engine.config import EngineSettings
from engine.errors import InvalidSetting, InvalidText
from engine.messages import Message
from engine.plan import Checkpoint, Prompt
from engine.requests.sequence import Sequence, TextPiece
from engine.requests.streaming_text import StreamingText, check_text
from engine.requests.text_groups import text_groups
from engine.requests.text_moods import TextMoods, recorded_moods
from engine.text.languages import written_in
from engine.text.mood_tags import MoodRun
from engine.text.sentences import letters
from engine.text.spoken_form import SpokenForm, as_sentence, foreign_alphabets, spoken_form
from engine.types import (
    Blend,
    Capabilities,
    Clone,
    Design,
    EarlyStart,
    Mooded,
    Preset,
    SamplingParams,
    SpeechRequest,
)
from engine.voices.instructions import understood
from engine.voices.routing import route

LARGEST_SEED = 2**63 - 1
RANDOM_SEEDS = 2**31  # short enough to retype
MIN_TOKEN_FRAMES = 2  # frames per token of the fastest possible speech, which must fit into a slot
# Positions per letter: slow speech takes 1.3 frames, the rest is for text rows.
LETTER_POSITIONS = 2
LARGEST_TEXT = 1 << 30  # letters
SHORTEST_GROUP = 40  # letters, however few positions a reference leaves


@dataclass(frozen=True)
class AcceptedRequest:
    """A request that can be served; `text` accepts more text if the request is open."""

    sequence: Sequence
    text: StreamingText | None


class InputProcessor:
    """Turns requests into sequences."""

    def __init__(
        self,
        checkpoints: Mapping[str, Checkpoint],
        settings: EngineSettings,
        clock: Callable[[], float],
    ) -> None:
        self.checkpoints = checkpoints  # replaced, never modified: other threads read it
        self._settings = settings
        self._clock = clock
        self._numbers = count(1)

    def process(self, request: SpeechRequest) -> AcceptedRequest:
        """Raises RequestError."""
        check_request(request, self._settings)
        checkpoints = self.checkpoints
        routed = route(request, checkpoints)
        checkpoint = checkpoints[routed.checkpoint]
        voice, notices = understood(routed.voice, checkpoint.capabilities)
        routed_request = _RoutedRequest(request, routed.checkpoint, checkpoint, voice, notices)
        if request.open_text:
            return self._open(routed_request)
        if request.moods or recorded_moods(request.voice) or "/" in request.text:
            moods = TextMoods(request, routed.checkpoint, checkpoints)
            return AcceptedRequest(self._complete(routed_request, moods.runs(), moods), None)
        return AcceptedRequest(self._complete(routed_request, [MoodRun(request.text)]), None)

    def adopt(self, sequence: Sequence) -> None:
        """Number and date a request that was checked elsewhere, where the clock may be another."""
        sequence.id = next(self._numbers)
        sequence.arrived = sequence.text_changed = self._clock()

    def _open(self, routed: _RoutedRequest) -> AcceptedRequest:
        """A sequence of the text so far, and what takes the rest."""
        request, checkpoint, empty = routed.request, routed.checkpoint, routed.prompt(())
        most_ids = checkpoint.max_positions - len(empty) - text_rows(empty)
        longest = _longest_group(request, checkpoint, len(empty))
        form = SpokenForm() if routed.spells_out else None
        text = StreamingText(checkpoint, self._settings.max_text, longest, most_ids, form)
        first = text.first(request.text)
        sequence = self._sequence(routed, routed.prompt(first.ids), first.letters)
        check_room(sequence.prompt, checkpoint.max_positions, request.max_frames)
        if first.ends_group:
            sequence.append(TextPiece((), ends_group=True), sequence.arrived)

        def notice(foreign: tuple[str, ...]) -> None:
            sequence.notices = routed.notices(foreign)

        text.notice = notice
        return AcceptedRequest(sequence, text)

    def _complete(
        self, routed: _RoutedRequest, text_runs: list[MoodRun], moods: TextMoods | None = None
    ) -> Sequence:
        """A sequence of the whole text, in groups."""
        request, checkpoint = routed.request, routed.checkpoint
        written = [
            (spoken_form(run.text) if routed.spells_out else run.text, run.spoken)
            for run in text_runs
        ]
        speaks = any(letters(text) for text, _ in written)
        if not speaks and routed.spells_out:
            raise _unreadable(routed.talker, checkpoint.capabilities)
        if not speaks and len(written[0][0]) < len(request.text):
            raise InvalidText("There is nothing to speak beside the moods. Type some text.")
        runs = [each for each in written if letters(each[0])] or written
        groups: list[tuple[_RoutedRequest, str]] = []
        for text, spoken in runs:
            voiced = replace(routed, voice=moods.voice(spoken)) if moods and spoken else routed
            longest = _longest_group(request, checkpoint, len(voiced.prompt(())))
            groups += [(voiced, group) for group in text_groups(text, longest, request.language)]
        if len(groups) > 1:  # one run alone has the ids that the reference package gives it
            groups = [(voiced, group.strip()) for voiced, group in groups]
        if routed.spells_out:
            groups = [(voiced, as_sentence(group)) for voiced, group in groups]
        prompts = [voiced.prompt(checkpoint.text_ids(group)) for voiced, group in groups]
        for each in prompts:
            check_room(each, checkpoint.max_positions, request.max_frames)
        if moods:
            routed = replace(routed, hints=(*routed.hints, *moods.notices))
        sequence = self._sequence(routed, prompts[0], letters(groups[0][1]))
        for each, (_, group) in zip(prompts[1:], groups[1:], strict=True):
            sequence.add_group(each, letters(group))
        return sequence

    def _sequence(self, routed: _RoutedRequest, prompt: Prompt, count: int) -> Sequence:
        request, checkpoint = routed.request, routed.checkpoint
        return Sequence(
            id=next(self._numbers),
            talker=routed.talker,
            prompt=prompt,
            sampling=checkpoint.resolve_sampling(request.sampling),
            seed=random.randrange(RANDOM_SEEDS) if request.seed is None else request.seed,
            arrived=self._clock(),
            language=request.language,
            max_frames=request.max_frames or self._settings.max_frames,
            letters=count,
            max_positions=checkpoint.max_positions,
            live=request.live,
            early_start=request.early_start or self._settings.early_start,
            stop_degeneration=self._settings.stop_degeneration and not request.ignore_end,
            ignore_end=request.ignore_end,
            patience=0.0 if request.live else self._settings.file_patience,
            notices=routed.notices(foreign_alphabets(request.text)),
        )


def spells_out(request: SpeechRequest, able: Capabilities) -> bool:
    """Whether the text is spoken in another form than it is written in."""
    english = request.language.strip().lower() in ("auto", "english")
    return request.spell_out and english and able.spoken_form


def check_readable(request: SpeechRequest, name: str, able: Capabilities) -> None:
    """Raises InvalidText where a checkpoint can read nothing of a text; it need not be loaded."""
    if spells_out(request, able) and not letters(spoken_form(request.text)):
        raise _unreadable(name, able)


def _unreadable(name: str, able: Capabilities) -> InvalidText:
    return InvalidText(
        "{name} can read none of this text: it speaks {spoken}.", name=name, spoken=_languages(able)
    )


def _languages(able: Capabilities) -> str:
    return ", ".join(each.capitalize() for each in able.languages)


@dataclass(frozen=True)
class _RoutedRequest:
    """A request with the checkpoint that speaks it, and the voice for that."""

    request: SpeechRequest
    talker: str
    checkpoint: Checkpoint
    voice: Preset | Clone | Design
    hints: tuple[Message, ...] = ()  # of the voice's instruction

    @property
    def spells_out(self) -> bool:
        return spells_out(self.request, self.checkpoint.capabilities)

    def languages(self) -> tuple[Message, ...]:
        """A notice for the listener where the model does not speak the text's language."""
        able = self.checkpoint.capabilities
        written = written_in(self.request.text)
        if written is None or not able.languages or written in able.languages:
            return ()
        return (
            Message(
                "{name} does not speak {written}: it reads this text by the rules of {spoken}.",
                name=self.talker,
                written=written.capitalize(),
                spoken=_languages(able),
            ),
        )

    def notices(self, foreign: tuple[str, ...]) -> tuple[Message, ...]:
        """What the listener should know. `foreign`: alphabets of the text."""
        every = (*self.languages(), *self.hints)
        if not self.spells_out or not foreign:
            return every
        there = ", ".join(foreign)
        left_out = Message(
            "{name} leaves out what it cannot read ({there}).", name=self.talker, there=there
        )
        return (*every, left_out)

    def prompt(self, ids: tuple[int, ...]) -> Prompt:
        request = self.request
        return self.checkpoint.prompt(
            ids, self.voice, request.language, layout_of(request), request.open_text
        )


def _longest_group(request: SpeechRequest, checkpoint: Checkpoint, rows: int) -> int:
    """Letters that the checkpoint speaks well in one run and that fit after the prompt's rows."""
    if request.ignore_end:  # its length is fixed, so it is one run
        return LARGEST_TEXT
    room = (checkpoint.max_positions - rows) // LETTER_POSITIONS
    return max(SHORTEST_GROUP, min(checkpoint.capabilities.max_letters, room))


def check_request(request: SpeechRequest, settings: EngineSettings) -> None:
    """The checks that need no checkpoint. Raises RequestError."""
    check_text(request.text, settings.max_text, empty=request.open_text)
    if not isinstance(request.voice, Preset | Clone | Design | Blend | Mooded):
        raise InvalidSetting("The voice must be a Preset, Clone, Design, Blend or Mooded.")
    if not isinstance(request.sampling, SamplingParams):
        raise InvalidSetting("The sampling must be SamplingParams.")
    if isinstance(request.voice, Preset | Design):
        check_text(request.voice.instruct, settings.max_text, empty=True)
    _check_number("seed", request.seed, 0, LARGEST_SEED)
    _check_number("max_frames", request.max_frames, 1, settings.max_frames)
    if request.ignore_end and request.max_frames is None:
        raise InvalidSetting("ignore_end never ends by itself: set max_frames too.")
    if request.early_start not in (None, *get_args(EarlyStart)):
        raise InvalidSetting("early_start must be off, pauses or pieces, or left out.")
    if request.layout not in (None, "whole", "streamed"):
        raise InvalidSetting("layout must be 'whole' or 'streamed', or left out.")
    if request.open_text and request.layout == "whole":
        raise InvalidSetting("An open text is streamed: leave the layout out.")


def _check_number(name: str, value: int | None, least: int, most: int) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidSetting(
            "{name} must be a whole number from {least} to {most}, not {value}.",
            name=name,
            least=least,
            most=most,
            value=value,
        )


def layout_of(request: SpeechRequest) -> Literal["whole", "streamed"]:
    """The requested layout or the voice's default; a blend is laid out like a clone, a voice in a
    mood like the voice."""
    if request.layout:
        return request.layout
    voice = request.voice.voice if isinstance(request.voice, Mooded) else request.voice
    streamed = request.open_text or isinstance(voice, Clone | Blend)
    return "streamed" if streamed else "whole"


def text_rows(prompt: Prompt) -> int:
    """Text rows of a streamed prompt that are not yet consumed by prompt rows."""
    reference = len(prompt.reference.text_ids) if prompt.reference else 0
    return len(prompt.text_ids) + reference + 2


def check_room(prompt: Prompt, positions: int, max_frames: int | None) -> None:
    """Check that the prompt fits into a slot at the fastest speech. Raises InvalidText."""
    needed = MIN_TOKEN_FRAMES * len(prompt.text_ids)
    needed = max(1, min(needed, max_frames or needed))
    if prompt.layout == "streamed":
        needed = max(needed, text_rows(prompt))
    if positions - len(prompt) < needed and prompt.reference:
        raise InvalidText(
            "With this voice's recording there is no room for so much text. Speak it in parts, or "
            "clone the voice from a shorter recording."
        )
    if positions - len(prompt) < needed:
        raise InvalidText("The text is too long to be spoken at once. Speak it in parts.")
