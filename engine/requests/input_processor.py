"""From a request to a sequence: everything that can be refused is refused here.

Runs in the caller's thread, so a bad request costs the engine nothing. Knows checkpoints and
routing; no slots, no threads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Literal

from engine.config import EngineSettings
from engine.errors import InvalidSetting, InvalidText
from engine.plan import Checkpoint, Prompt, ResolvedSampling
from engine.requests.sequence import Sequence
from engine.requests.streaming_text import StreamingText, check_text
from engine.types import Blend, Clone, Design, Preset, SamplingParams, SpeechRequest
from engine.voices.routing import route

LARGEST_SEED = 2**63 - 1
DRAWN_SEEDS = 2**31  # short enough to be read out and typed in again
LEAST_FRAMES = 2  # a token, at the very fastest: a slot must have room for the text at that


@dataclass(frozen=True)
class AcceptedRequest:
    """A request that can be served, and the way to add to its text if it is open."""

    sequence: Sequence
    text: StreamingText | None
    text_room: int  # ids that may still be added


class InputProcessor:
    """Makes sequences."""

    def __init__(
        self,
        checkpoints: Mapping[str, Checkpoint],
        settings: EngineSettings,
        clock: Callable[[], float],
    ) -> None:
        self.checkpoints = checkpoints  # replaced, never changed: callers read it meanwhile
        self._settings = settings
        self._clock = clock
        self._numbers = count(1)

    def take(self, request: SpeechRequest) -> AcceptedRequest:
        """Raises RequestError."""
        check_request(request, self._settings)
        checkpoints = self.checkpoints
        routed = route(request, checkpoints)
        checkpoint = checkpoints[routed.checkpoint]
        text = StreamingText(checkpoint, self._settings.max_text) if request.open_text else None
        ids = text.first(request.text) if text else checkpoint.text_ids(request.text)
        prompt = checkpoint.prompt(
            ids, routed.voice, request.language, layout_of(request), request.open_text
        )
        behind = checkpoint.max_positions - len(prompt)
        check_room(prompt, behind, request.max_frames)
        frames = min(behind, request.max_frames or self._settings.max_frames)
        sequence = self._sequence(
            request, routed.checkpoint, prompt, checkpoint.draw(request.sampling), frames
        )
        return AcceptedRequest(sequence, text, behind - text_rows(prompt))

    def _sequence(
        self,
        request: SpeechRequest,
        talker: str,
        prompt: Prompt,
        draw: ResolvedSampling,
        frames: int,
    ) -> Sequence:
        return Sequence(
            id=next(self._numbers),
            talker=talker,
            prompt=prompt,
            draw=draw,
            seed=random.randrange(DRAWN_SEEDS) if request.seed is None else request.seed,
            arrived=self._clock(),
            language=request.language,
            room=frames,
            live=request.live,
            guarded=self._settings.stop_degeneration and not request.ignore_end,
            ignore_end=request.ignore_end,
            patience=0.0 if request.live else self._settings.file_patience,
        )


def check_request(request: SpeechRequest, settings: EngineSettings) -> None:
    """What can be said without a checkpoint."""
    check_text(request.text, settings.max_text, empty=request.open_text)
    if not isinstance(request.voice, Preset | Clone | Design | Blend):
        raise InvalidSetting("The voice must be a Preset, a Clone, a Design or a Blend.")
    if not isinstance(request.sampling, SamplingParams):
        raise InvalidSetting("The sampling must be a Sampling.")
    if isinstance(request.voice, Preset | Design):
        check_text(request.voice.instruct, settings.max_text, empty=True)
    _check_number("seed", request.seed, 0, LARGEST_SEED)
    _check_number("max_frames", request.max_frames, 1, settings.max_frames)
    if request.ignore_end and request.max_frames is None:
        raise InvalidSetting("ignore_end never ends by itself: set max_frames too.")
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
    """As asked, or the voice's own. A blend is a vector, so it is spoken as a kept one would be."""
    if request.layout:
        return request.layout
    streamed = request.open_text or isinstance(request.voice, Clone | Blend)
    return "streamed" if streamed else "whole"


def text_rows(prompt: Prompt) -> int:
    """Rows of text that a streamed prompt keeps beside the frames at most."""
    reference = len(prompt.reference.text_ids) if prompt.reference else 0
    return len(prompt.text_ids) + reference + 2


def check_room(prompt: Prompt, behind: int, max_frames: int | None) -> None:
    """The prompt fits into a slot, and speech at its fastest behind it. Raises InvalidText."""
    needed = LEAST_FRAMES * len(prompt.text_ids)
    needed = max(1, min(needed, max_frames or needed))
    if prompt.layout == "streamed":
        needed = max(needed, text_rows(prompt))
    if behind < needed:
        raise InvalidText("The text is too long to be spoken at once. Speak it in parts.")
