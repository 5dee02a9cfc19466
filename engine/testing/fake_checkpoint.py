"""A checkpoint without files: the fake of LocalCheckpoint, for tests and for trying pages.

Tokens are characters, and one token is one frame, which is about the speed of real speech.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.errors import InvalidVoice, NotCapable, UnknownVoice
from engine.plan import Prompt, ReferencePrompt, ResolvedSampling
from engine.types import Capabilities, Clone, Design, Preset, Rows, SamplingParams, Vector
from engine.voices.routing import TRAINED_ELSEWHERE, no_language

SPEAKERS = ("ryan", "vivian", "serena", "aiden", "eric", "dylan")
LANGUAGES = ("chinese", "english", "german", "french", "japanese")
ROLE = (1, 2, 3)


def fake_capabilities(name: str = "fake", **changes: object) -> Capabilities:
    """Presets, cloning and design in one; `changes` override fields."""
    values = {
        "name": name,
        "size": "1b7",
        "width": 16,
        "speakers": SPEAKERS,
        "languages": LANGUAGES,
        "dialects": {"eric": "sichuan_dialect", "dylan": "beijing_dialect"},
        "preset": True,
        "clone": True,
        "design": True,
        "instruct": True,
        "max_letters": 100_000,
        "digest": f"weights of {name}",
    }
    return Capabilities(**{**values, **changes})  # type: ignore[arg-type]


@dataclass(frozen=True)
class FakeCheckpoint:
    """The host's view of a model that does not exist."""

    capabilities: Capabilities = field(default_factory=fake_capabilities)
    max_positions: int = 4096

    def text_ids(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))

    def language_id(self, language: str, speaker: str | None) -> int | None:
        able, wanted = self.capabilities, language.strip().lower()
        if speaker in able.dialects and wanted in ("auto", "chinese"):
            return 100 + sorted(able.dialects).index(speaker)
        if wanted == "auto":
            return None
        if wanted not in able.languages:
            raise no_language(language, able)
        return able.languages.index(wanted)

    def prompt(
        self,
        text_ids: tuple[int, ...],
        voice: Preset | Clone | Design,
        language: str,
        layout: Literal["whole", "streamed"],
        open_text: bool,
    ) -> Prompt:
        speaker = voice.name if isinstance(voice, Preset) else None
        return Prompt(
            text_ids=text_ids,
            layout="streamed" if open_text else layout,
            open_text=open_text,
            instruct_ids=() if isinstance(voice, Clone) else self.text_ids(voice.instruct),
            role_ids=ROLE,
            language_id=self.language_id(language, speaker),
            speaker_id=self._speaker_id(speaker) if speaker is not None else None,
            vector=self._vector(voice) if isinstance(voice, Clone) else None,
            rows=self._learned(voice) if isinstance(voice, Clone) else None,
            reference=self._reference(voice) if isinstance(voice, Clone) else None,
        )

    def resolve_sampling(self, sampling: SamplingParams) -> ResolvedSampling:
        defaults = {
            "temperature": 0.9, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.05,
            "predictor_greedy": sampling.greedy, "predictor_temperature": 0.9,
            "predictor_top_k": 50, "predictor_top_p": 1.0,
        }  # fmt: skip
        chosen = {key: value for key, value in sampling if value is not None}
        return ResolvedSampling(**{**defaults, **chosen})

    def speaker_vector(self, name: str) -> Vector:
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
        random = np.random.default_rng(seed)
        return random.standard_normal(self.capabilities.width).astype(np.float32)

    def _speaker_id(self, name: str) -> int:
        if name not in self.capabilities.speakers:
            there = ", ".join(self.capabilities.speakers)
            raise UnknownVoice(
                "No voice is called '{name}'. There are: {there}.", name=name[:80], there=there
            )
        return 1000 + self.capabilities.speakers.index(name)

    def _vector(self, voice: Clone) -> Vector:
        if voice.vector.shape != (self.capabilities.width,):
            raise InvalidVoice(
                "This model takes vectors of {width} numbers.", width=self.capabilities.width
            )
        return voice.vector

    def _learned(self, voice: Clone) -> Rows | None:
        if voice.trained and voice.digest != self.capabilities.digest:
            name = self.capabilities.name
            raise InvalidVoice(TRAINED_ELSEWHERE, model=voice.model or "?", there=name)
        return voice.rows

    def _reference(self, voice: Clone) -> ReferencePrompt | None:
        if voice.codes is None or not voice.in_context:
            return None
        if not self.capabilities.clone:
            raise NotCapable("{name} cannot continue a recording.", name=self.capabilities.name)
        key = hashlib.sha256(voice.codes.tobytes()).hexdigest()
        return ReferencePrompt(key, self.text_ids(voice.transcript), voice.codes)
