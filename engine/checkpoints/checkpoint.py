"""A checkpoint folder as the host reads it: capabilities, tokenizer, special ids, defaults.

Prompts are laid out here as ids and vectors; the worker embeds them. No weights are loaded: a
preset speaker's vector is one row read from the file. No torch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from engine.checkpoints.config_file import read_model_config
from engine.checkpoints.files import Table, read_json, read_row, weights_digest
from engine.checkpoints.tokens import Tokens
from engine.errors import CheckpointError, InvalidVoice, NotCapable, UnknownVoice
from engine.messages import Message, misfit
from engine.plan import Prompt, ReferencePrompt, ResolvedSampling
from engine.types import (
    CODEBOOKS,
    MAX_LEARNED_ROWS,
    Capabilities,
    Clone,
    Codes,
    Design,
    Preset,
    Rows,
    SamplingParams,
    Vector,
)
from engine.voices.routing import TRAINED_ELSEWHERE, describe, no_language

KINDS = ("custom_voice", "base", "voice_design")
TEXT_FORMS = ("written", "spoken")
DESCRIPTION = "description"  # the entry of tts_instructions with the words of designs
MOST_CODES = 1 << 15  # ids of codes are kept in 16 bits
LARGEST = 1 << 20  # above every vocabulary, width or length of a real checkpoint
MIN_LETTERS, MAX_LETTERS = 40, 1_800  # of one run; up to two minutes are spoken well
RESERVED_CODES = 1024  # the end of the talker's vocabulary holds special ids and speakers
_EMBEDDING = "talker.model.codec_embedding.weight"

# Values for keys that generation_config.json leaves out.
_DEFAULTS: dict[str, float] = {"temperature": 0.9, "top_k": 50, "top_p": 1.0}
_PENALTY = 1.05


@dataclass(frozen=True)
class SpecialIds:
    """Control ids of a checkpoint, first in its text vocabulary, then among its codes."""

    im_start: int
    im_end: int
    tts_pad: int
    tts_bos: int
    tts_eos: int
    codec_pad: int
    codec_bos: int
    codec_eos: int
    think: int
    nothink: int
    think_bos: int
    think_eos: int

    @classmethod
    def read(cls, config: Table, talker: Table, text_vocab: int, codes: int) -> SpecialIds:
        text = {
            name: config.integer(f"{name}_token_id", 0, text_vocab - 1)
            for name in ("im_start", "im_end", "tts_pad", "tts_bos", "tts_eos")
        }
        think = {
            name: talker.integer(f"codec_{name}_id", 0, codes - 1)
            for name in ("think", "nothink", "think_bos", "think_eos")
        }
        return cls(
            **text,
            **think,
            codec_pad=talker.integer("codec_pad_id", 0, codes - 1),
            codec_bos=talker.integer("codec_bos_id", 0, codes - 1),
            codec_eos=talker.integer("codec_eos_token_id", 0, codes - 1),
        )


class LocalCheckpoint:
    """A checkpoint folder in the published layout. `positions`: the upper limit for a slot.

    `reads_text` False: texts come as ids, so its tokenizer is neither read nor checked.
    """

    def __init__(
        self,
        folder: Path | str,
        positions: int = LARGEST,
        name: str = "",
        reads_text: bool = True,
    ) -> None:
        self.folder = Path(folder)
        config = Table(read_model_config(self.folder), str(self.folder / "config.json"))
        _check_frame_rate(config)
        talker = config.table("talker_config")
        self._width = talker.integer("hidden_size", 1, LARGEST)
        self._codes = talker.integer("vocab_size", RESERVED_CODES + 1, MOST_CODES)
        predictor = talker.table("code_predictor_config")
        self._entries = predictor.integer("vocab_size", 1, MOST_CODES)  # of codebooks 1–15
        if talker.integer("num_code_groups", 1, LARGEST) != CODEBOOKS:
            raise talker.wrong("num_code_groups", str(CODEBOOKS))
        text_vocab = talker.integer("text_vocab_size", 1, LARGEST)
        self.ids = SpecialIds.read(config, talker, text_vocab, self._codes)
        self.max_positions = min(positions, talker.integer("max_position_embeddings", 1, 1 << 30))
        self._languages = talker.numbers("codec_language_id", self._codes)
        self._speakers = _lowered(talker.numbers("spk_id", self._codes))
        self._speaker_vectors: dict[int, Vector] = {}  # by row
        self.capabilities = self._read_capabilities(config, talker, name or self.folder.name)
        self._defaults = _read_sampling(self.folder / "generation_config.json")
        self._tokens, self._talker = Tokens(self.folder), talker
        if reads_text:
            self.check_text()

    def check_text(self) -> None:
        """Read the tokenizer. Raises CheckpointError where it is damaged or has too many words."""
        if self._tokens.size > self._talker.integer("text_vocab_size", 1, LARGEST):
            raise self._talker.wrong(
                "text_vocab_size",
                Message("at least the tokenizer's {size}", size=self._tokens.size),
            )

    def text_ids(self, text: str) -> tuple[int, ...]:
        return self._tokens.encode(text)

    def language_id(self, language: str, speaker: str | None) -> int | None:
        wanted, able = language.strip().lower(), self.capabilities
        dialect = able.dialects.get((speaker or "").lower())
        if dialect and wanted in ("chinese", "auto"):
            return self._languages[dialect]
        if wanted == "auto":
            return None
        if wanted not in able.languages:
            raise no_language(language, able)
        return self._languages[wanted]

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
            role_ids=(self.ids.im_start, *self._words.assistant),
            **self._spoken_by(voice),
            language_id=self.language_id(language, speaker),
        )

    def resolve_sampling(self, sampling: SamplingParams) -> ResolvedSampling:
        chosen = {key: value for key, value in sampling if value is not None}
        chosen["greedy"] = sampling.greedy or self._defaults["greedy"]
        if sampling.predictor_greedy is None:
            chosen["predictor_greedy"] = sampling.greedy or self._defaults["predictor_greedy"]
        return ResolvedSampling(**{**self._defaults, **chosen})

    def speaker_vector(self, name: str) -> Vector:
        """Read once: a blend or a mood asks for it at every request."""
        row = self._speaker_id(name)
        if row not in self._speaker_vectors:
            self._speaker_vectors[row] = self._read_vector(name, row)
        return self._speaker_vectors[row]

    def _read_vector(self, name: str, row: int) -> Vector:
        vector = read_row(self.folder, _EMBEDDING, row)
        if len(vector) != self._width or not np.isfinite(vector).all():
            raise CheckpointError(
                "The voice '{name}' is damaged in {folder}.", name=name, folder=self.folder
            )
        return vector

    def _spoken_by(self, voice: Preset | Clone | Design) -> dict[str, Any]:
        """The prompt's fields that depend on the voice."""
        if isinstance(voice, Preset):
            instruct = self._instruct_ids(voice.instruct, self.capabilities.instruct)
            return {"speaker_id": self._speaker_id(voice.name), "instruct_ids": instruct}
        if isinstance(voice, Design):
            self._require(self.capabilities.design, Message("design voices"))
            return {"instruct_ids": self._instruct_ids(voice.instruct, True)}
        self._require(
            self.capabilities.clone or self.capabilities.preset, Message("take a speaker vector")
        )
        return {
            "vector": self._vector(voice.vector),
            "rows": self._learned(voice),
            "reference": self._reference(voice),
        }

    def _speaker_id(self, name: str) -> int:
        self._require(self.capabilities.preset, Message("speak with preset voices"))
        if name.lower() not in self._speakers:
            there = ", ".join(self.capabilities.speakers)
            raise UnknownVoice(
                "No voice is called '{name}'. There are: {there}.", name=name[:80], there=there
            )
        return self._speakers[name.lower()]

    def _instruct_ids(self, instruct: str, allowed: bool) -> tuple[int, ...]:
        if not instruct:
            return ()
        self._require(allowed, Message("follow instructions"))
        words = self._tokens.encode(f"user\n{instruct}")  # one text: a token may span the newline
        return (self.ids.im_start, *words, self.ids.im_end, *self._words.newline)

    def _vector(self, vector: Vector) -> Vector:
        if vector.shape != (self._width,) or not np.isfinite(vector).all():
            raise InvalidVoice(
                "{name} takes speaker vectors of {width} finite numbers, "
                "not of {size}. Make the voice again with this model.",
                name=self.capabilities.name,
                width=self._width,
                size=vector.size,
            )
        return vector.astype(np.float32)

    def _learned(self, voice: Clone) -> Rows | None:
        """A trained voice's rows, which mean something to the weights they were learned for."""
        if voice.rows is None:
            return None
        able, rows = self.capabilities, voice.rows
        if voice.digest != able.digest:
            raise InvalidVoice(TRAINED_ELSEWHERE, model=voice.model or "?", there=able.name)
        shaped = rows.ndim == 2 and rows.shape[1] == self._width
        if not shaped or not 1 <= len(rows) <= MAX_LEARNED_ROWS or not np.isfinite(rows).all():
            raise InvalidVoice("This trained voice is damaged. Train it again.")
        return rows.astype(np.float32)

    def _reference(self, voice: Clone) -> ReferencePrompt | None:
        if voice.codes is None or not voice.transcript:
            return None
        self._require(self.capabilities.clone, Message("continue a recording"))
        codes = self._checked(voice.codes)
        key = hashlib.sha256(codes.tobytes()).hexdigest()
        return ReferencePrompt(key, self._tokens.encode(voice.transcript), codes)

    def _checked(self, codes: Codes) -> Codes:
        entries = min(self._entries, self._codes - RESERVED_CODES)
        shaped = codes.ndim == 2 and codes.shape[1] == CODEBOOKS and len(codes) > 0
        if not shaped or codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= entries:
            raise InvalidVoice("This voice's recording is damaged. Make the voice again.")
        return np.ascontiguousarray(codes, np.int64)

    def _require(self, able: bool, what: Message) -> None:
        if not able:
            mine = self.capabilities
            raise NotCapable(
                "{name} cannot {what}. It has: {has}. Use another model.",
                name=mine.name,
                what=what,
                has=describe(mine),
            )

    @cached_property
    def _words(self) -> _Words:
        return _Words(self._tokens.encode("assistant\n"), self._tokens.encode("\n"))

    def _read_capabilities(self, config: Table, talker: Table, name: str) -> Capabilities:
        kinds, size = _kinds(config), config.text("tts_model_size", "")
        spoken = tuple(key for key in self._languages if "dialect" not in key)
        preset, taught = "custom_voice" in kinds, _taught(config)
        return Capabilities(
            name=name,
            size=size,
            width=self._width,
            speakers=tuple(self._speakers) if preset else (),
            languages=spoken,
            dialects=_dialects(talker, self._languages) if preset else {},
            preset=preset,
            clone="base" in kinds,
            design="voice_design" in kinds,
            instruct=preset and size != "0b6",  # the small model was not trained for it
            styles={name: words for name, words in taught.items() if name != DESCRIPTION},
            described=taught.get(DESCRIPTION, ()),
            spoken_form=_text_form(config) == "spoken",
            max_letters=config.integer("tts_max_letters", MIN_LETTERS, LARGEST, MAX_LETTERS),
            digest=weights_digest(self.folder),
        )


@dataclass(frozen=True)
class _Words:
    assistant: tuple[int, ...]  # "assistant\n"
    newline: tuple[int, ...]


def _check_frame_rate(config: Table) -> None:
    kind = config.raw.get("tokenizer_type")
    if isinstance(kind, str) and "25hz" in kind.lower():
        raise CheckpointError(
            "{source} is a 25 Hz checkpoint ({kind}). Timbre speaks with the 12 Hz ones, like "
            "Qwen/Qwen3-TTS-12Hz-0.6B-Base.",
            source=config.source,
            kind=kind,
        )


def _kinds(config: Table) -> list[str]:
    """What the checkpoint was trained for: one or several of KINDS."""
    kinds = config.raw.get("tts_capabilities") or [config.raw.get("tts_model_type")]
    if not isinstance(kinds, list) or not all(kind in KINDS for kind in kinds):
        raise config.wrong("tts_model_type", Message("one of {there}", there=", ".join(KINDS)))
    return kinds


def _taught(config: Table) -> dict[str, tuple[str, ...]]:
    """The instructions that the checkpoint was taught, if its config lists them."""
    listed = config.raw.get("tts_instructions") or {}
    if not isinstance(listed, dict) or not all(isinstance(each, str) for each in listed.values()):
        raise config.wrong("tts_instructions", Message("words by instruction"))
    return {taught: tuple(words.lower().split()) for taught, words in listed.items()}


def _text_form(config: Table) -> str:
    """How its texts are given: as they are written, as for all published models, or as words."""
    form = config.text("tts_text_form", "written")
    if form not in TEXT_FORMS:
        raise config.wrong("tts_text_form", Message("one of {there}", there=", ".join(TEXT_FORMS)))
    return form


def _dialects(talker: Table, languages: dict[str, int]) -> dict[str, str]:
    """Dialect by speaker; false means none."""
    if talker.raw.get("spk_is_dialect") is None:
        return {}
    table = talker.table("spk_is_dialect")
    spoken = {name.lower(): dialect for name, dialect in table.raw.items() if dialect}
    for name, dialect in spoken.items():
        if not isinstance(dialect, str) or dialect not in languages:
            raise table.wrong(name, Message("false or a language"))
    return spoken


def _lowered(table: dict[str, int]) -> dict[str, int]:
    return {name.lower(): number for name, number in table.items()}


def _read_sampling(path: Path) -> dict[str, Any]:
    """The checkpoint's sampling defaults, checked like a user's."""
    raw = read_json(path) if path.is_file() else {}
    values = {key: raw.get(key, value) for key, value in _DEFAULTS.items()}
    values |= {f"predictor_{key}": raw.get(f"subtalker_{key}", _DEFAULTS[key]) for key in _DEFAULTS}
    values["repetition_penalty"] = raw.get("repetition_penalty", _PENALTY)
    try:
        checked = SamplingParams(**values).model_dump(exclude={"greedy", "predictor_greedy"})
    except ValidationError as error:
        first = error.errors()[0]
        raise CheckpointError(
            "{path}: {field}: {problem}.", path=path, field=first["loc"][0], problem=misfit(first)
        ) from error
    if None in checked.values():
        raise CheckpointError("{path}: a sampling number is null. Download it again.", path=path)
    greedy = {"greedy": "do_sample", "predictor_greedy": "subtalker_dosample"}
    return checked | {name: raw.get(key, True) is False for name, key in greedy.items()}
