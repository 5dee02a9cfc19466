"""A voice as bytes: a card in JSON, and a safetensors file with its vector and codes.

An exported voice is one safetensors file with the card in its metadata; imports are checked
strictly. No pickle.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, StringConstraints, ValidationError, field_validator, model_validator
from safetensors import SafetensorError
from safetensors.numpy import load, save

from engine.errors import InvalidVoice
from engine.messages import Message, misfit
from engine.types import CODEBOOKS, MAX_LEARNED_ROWS, Clone, Design, Settings

Kind: TypeAlias = Literal["clone", "trained", "blend", "design", "mood"]
Tag: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=40)]

FIRST_YEAR = 1970
MAX_BYTES = 1 << 20  # a voice has about ten thousand bytes, a trained one up to half a million
MAX_CARD_BYTES = 64 << 10
MAX_DEPTH = 4
MAX_WIDTH = 16_384
MAX_FRAMES = 1_024  # a minute, and some silence
MAX_CODE = 65_535
MAX_REFERENCES = 12  # of one person, by mood
MOOD_NAME = r"[^\x00-\x1f+,:()\[\]/#]{1,40}"  # what can be written in a text or a voice
_CARD = "timbre_voice"  # the metadata key of a packed card
_REFERENCE = re.compile(r"[0-9a-f]{8}\.(vector|codes)")  # a tensor of another reference
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")  # bidirectional controls


MoodName: TypeAlias = Annotated[str, StringConstraints(pattern=rf"^{MOOD_NAME}$")]


class ReferenceCard(Settings):
    """Another recording of the same person, in a mood."""

    mood: MoodName
    key: str = Field(pattern=r"^[0-9a-f]{8}$")  # of its tensors
    transcript: str = Field("", max_length=4_000)


class MoodCard(Settings):
    """What a mood has besides a voice's card; its shift is the vector."""

    space: str = Field("", max_length=64)  # see engine.voices.mood.speaker_space
    words: tuple[MoodName, ...] = Field((), max_length=40)  # other names in texts
    pairs: int = Field(1, ge=1, le=1_000_000)
    spread: float = Field(0.0, ge=0, le=1e6)
    agreement: float = Field(1.0, ge=-1.001, le=1.001)


class VoiceCard(Settings):
    """The data of a saved voice or mood besides its tensors."""

    name: str = Field(min_length=1, max_length=80)
    kind: Kind
    transcript: str = Field("", max_length=4_000)
    instruct: str = Field("", max_length=4_000)
    note: str = Field("", max_length=2_000)
    colour: str = Field("", pattern=r"^(#[0-9a-fA-F]{6})?$")
    tags: tuple[Tag, ...] = Field((), max_length=20)
    created: str = Field("", max_length=40)  # ISO 8601, UTC
    consent: bool = False  # the recorded person has agreed
    made_from: str = Field("", max_length=400)  # a file's name, a blend's formula
    model: str = Field("", max_length=255)  # whose speaker space the vector belongs to
    digest: str = Field("", max_length=64)  # of the weights that a trained voice belongs to
    width: int | None = Field(None, ge=1, le=MAX_WIDTH)  # None: a description without a vector
    references: tuple[ReferenceCard, ...] = Field((), max_length=MAX_REFERENCES)
    mood: MoodCard | None = None  # of a mood, and of nothing else

    @property
    def described(self) -> bool:
        """Whether a voice is only a description; a design that was heard and kept has a vector."""
        return self.kind == "design" and self.width is None

    @field_validator("name")
    @classmethod
    def _legible(cls, name: str) -> str:
        """Names have visible characters, and no control characters."""
        kinds = {unicodedata.category(mark) for mark in name}
        if "Cc" in kinds or _TURNING.search(name) or kinds <= {"Cf", "Mn", "Zs"}:
            raise ValueError("use letters, digits or signs that can be seen")
        return name

    @model_validator(mode="after")
    def _mood_or_voice(self) -> VoiceCard:
        if (self.kind == "mood") != (self.mood is not None):
            raise ValueError("a mood, and nothing else, says what it was learned from")
        if self.mood and not re.fullmatch(MOOD_NAME, self.name):
            raise ValueError("a mood's name is short, without any of + , : ( ) [ ] / #")
        if len({each.mood.casefold() for each in self.references}) != len(self.references):
            raise ValueError("a voice has one recording in each mood")
        return self

    @field_validator("created")
    @classmethod
    def _a_time(cls, created: str) -> str:
        if created and not _is_time(created):
            raise ValueError("write a time like 2026-11-23T21:00:00+00:00")
        return created


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).year >= FIRST_YEAR
    except ValueError:
        return False


def read_card(data: bytes) -> VoiceCard:
    """A checked card. Raises InvalidVoice."""
    if len(data) > MAX_CARD_BYTES:
        raise InvalidVoice(
            "Its card has {count:,} bytes; at most {most:,} are.",
            count=len(data),
            most=MAX_CARD_BYTES,
        )
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidVoice("Its card is not readable JSON.") from error
    if not isinstance(raw, dict) or _depth(raw) > MAX_DEPTH:
        raise InvalidVoice("Its card is not a voice's card.")
    try:
        return VoiceCard(**raw)
    except (ValidationError, TypeError) as error:
        raise InvalidVoice("Its card is not valid: {problem}.", problem=_first(error)) from error


def write_card(card: VoiceCard) -> bytes:
    """Without empty fields, so that older versions can read cards that don't use new ones."""
    later = ("model", "digest", "references", "mood")
    empty = {name for name in later if not getattr(card, name)}
    fields = card.model_dump(exclude=empty)
    return json.dumps(fields, ensure_ascii=False, indent=2).encode()


def read_numbers(card: VoiceCard, data: bytes) -> Clone:
    """Read a card's vector, its codes or learned rows, and other references. Raises InvalidVoice.

    Tensors of references that the card does not name are left: they were added or removed when
    something ended the program.
    """
    tensors = _tensors(data)
    vector, codes, rows = (tensors.pop(name, None) for name in ("vector", "codes", "rows"))
    references = tuple((each.mood, _reference(card, each, tensors.get)) for each in card.references)
    if vector is None or not all(map(_REFERENCE.fullmatch, tensors)):
        raise InvalidVoice("It must hold a 'vector', and at most 'codes' or 'rows' beside it.")
    if codes is not None and rows is not None:
        raise InvalidVoice("It must hold a 'vector', and at most 'codes' or 'rows' beside it.")
    vector = _checked_vector(vector, card.width)
    if (rows is not None) != (card.kind == "trained") or (rows is not None and not card.digest):
        raise InvalidVoice("It is no complete trained voice: train or export it again.")
    if rows is not None:
        learned = _checked_rows(rows, len(vector))
        return Clone(
            vector, model=card.model, rows=learned, digest=card.digest, references=references
        )
    checked = None if codes is None else _checked(codes)
    return Clone(vector, card.transcript, checked, card.model, references=references)


def _reference(card: VoiceCard, part: ReferenceCard, tensor: Callable[[str], Any]) -> Clone:
    vector, codes = tensor(f"{part.key}.vector"), tensor(f"{part.key}.codes")
    if vector is None:
        raise InvalidVoice("Its recording in the mood '{mood}' is missing.", mood=part.mood)
    checked = None if codes is None else _checked(codes)
    return Clone(_checked_vector(vector, card.width), part.transcript, checked, card.model)


def _checked_vector(vector: Any, width: int | None) -> Any:
    if vector.dtype != np.float32 or vector.shape != (width,):
        raise InvalidVoice(
            "Its vector must be {width} float32 numbers, as its card says.", width=width
        )
    if not np.isfinite(vector).all() or not vector.any():
        raise InvalidVoice("Its vector is not finite, or all zeros.")
    return vector


def write_numbers(voice: Clone, card: VoiceCard | None = None) -> bytes:
    """The safetensors bytes of a vector and its codes or rows, with the card inside if given."""
    tensors: dict[str, Any] = {"vector": np.ascontiguousarray(voice.vector, np.float32)}
    if voice.codes is not None:
        tensors["codes"] = np.ascontiguousarray(voice.codes, np.int32)  # [frames, 16]
    if voice.rows is not None:
        tensors["rows"] = np.ascontiguousarray(voice.rows, np.float32)  # [rows, width]
    for mood, other in voice.references:
        key = reference_key(mood)
        tensors[f"{key}.vector"] = np.ascontiguousarray(other.vector, np.float32)
        if other.codes is not None:
            tensors[f"{key}.codes"] = np.ascontiguousarray(other.codes, np.int32)
    return bytes(save(tensors, {_CARD: write_card(card).decode()} if card else None))


def reference_key(mood: str) -> str:
    """The key of the tensors of a recording in a mood."""
    return hashlib.sha256(mood.casefold().encode()).hexdigest()[:8]


def pack(card: VoiceCard, voice: Clone | Design) -> bytes:
    """A voice as one file."""
    if isinstance(voice, Design):
        empty = {"vector": np.zeros(0, np.float32)}
        return bytes(save(empty, {_CARD: write_card(card).decode()}))
    return write_numbers(voice, card)


def unpack(data: bytes) -> tuple[VoiceCard, Clone | Design]:
    """Read an untrusted file that `pack` made. Raises InvalidVoice."""
    card = read_card(_metadata(data).get(_CARD, "").encode())
    if card.described:
        return card, design(card)
    return card, read_numbers(card, data)


def design(card: VoiceCard) -> Design:
    """The voice of a card without tensors."""
    if not card.instruct.strip():
        raise InvalidVoice("Its card describes no voice.")
    return Design(card.instruct)


def _tensors(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_BYTES:
        raise InvalidVoice(
            "It has {count:,} bytes; a voice has at most {most:,}.",
            count=len(data),
            most=MAX_BYTES,
        )
    try:
        return dict(load(data))
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise InvalidVoice("It is no safetensors file, or it is damaged.") from error


def _metadata(data: bytes) -> dict[str, str]:
    """The metadata in the file's header: 8 bytes of length, then JSON."""
    _tensors(data)  # safetensors checks lengths, offsets and types
    size = int.from_bytes(data[:8], "little")
    try:
        found = json.loads(data[8 : 8 + size]).get("__metadata__")
    except (ValueError, RecursionError) as error:
        raise InvalidVoice("It is no safetensors file, or it is damaged.") from error
    if not isinstance(found, dict) or _CARD not in found:
        raise InvalidVoice("It is no voice that was exported here: it has no card.")
    return found


def _checked(codes: Any) -> Any:
    shaped = codes.ndim == 2 and codes.shape[1] == CODEBOOKS and 1 <= len(codes) <= MAX_FRAMES
    if codes.dtype.kind not in "iu" or not shaped:
        raise InvalidVoice(
            "Its codes must be 1 to {most} rows of {columns} integers.",
            most=MAX_FRAMES,
            columns=CODEBOOKS,
        )
    if codes.min() < 0 or codes.max() > MAX_CODE:
        raise InvalidVoice("Its codes are out of range.")
    return codes.astype(np.int64)


def _checked_rows(rows: Any, width: int) -> Any:
    shaped = rows.ndim == 2 and 1 <= len(rows) <= MAX_LEARNED_ROWS and rows.shape[1] == width
    if rows.dtype != np.float32 or not shaped or not np.isfinite(rows).all():
        raise InvalidVoice(
            "Its learned rows must be 1 to {most} rows of {width} finite float32 numbers.",
            most=MAX_LEARNED_ROWS,
            width=width,
        )
    return rows


def _depth(value: Any, above: int = 0) -> int:
    if above > MAX_DEPTH or not isinstance(value, dict | list):
        return above
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(each, above + 1) for each in inner), default=above + 1)


def _first(error: Exception) -> Message:
    if not isinstance(error, ValidationError):
        return Message("a key is wrong")
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    return Message("{field}: {problem}", field=field, problem=misfit(first))
