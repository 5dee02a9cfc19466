"""The JSON bodies of the API.

Field names are OpenAI's where it has them, else those of other Qwen3-TTS servers. `voice_resolver`
and the routes interpret them.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from engine import MAX_STRENGTH, EarlyStart, SamplingParams, format_blend
from studio.api.bodies.format_names import read_format
from studio.api.bodies.references import with_reference
from studio.api.bodies.service_names import language_name
from studio.api.errors import ApiError
from studio.api.request_labels import report_ignored
from studio.api.responses.audio_output import Output
from studio.api.responses.encoding import (
    OPUS_RATES,
    WHOLE,
    Format,
    SampleRate,
    bit_rates,
    default_rate,
)

MISTYPED = 0.8  # similarity of an unknown key to a field's name from which it is refused
Language = Annotated[str, Field(max_length=64)]
Number = Annotated[float, Field(ge=-1e6, le=1e6)]
Numbers = Annotated[list[Number], Field(min_length=1, max_length=8192, fail_fast=True)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Consent = bool | Annotated[str, Field(max_length=64)] | None  # what counts: studio.voices.consent


class Body(BaseModel):
    """Null counts as missing. An unknown key is ignored and reported, unless it resembles a
    field's name: then it is refused as a typing error, and told which it may be.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )
    OTHERS: ClassVar[frozenset[str]] = frozenset()  # keys of other services that resemble a field's

    @model_validator(mode="before")
    @classmethod
    def _keys_of_others(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        known = cls._names()
        kept: dict[str, Any] = {}
        for key, value in values.items():
            if key in known:
                kept |= {} if value is None else {key: value}
            elif key in cls.OTHERS or not (close := cls._close_to(key)):
                report_ignored(str(key)[:64])
            else:
                raise _mistyped(str(key)[:64], known[close[0]])
        return kept

    @classmethod
    def _close_to(cls, key: object) -> list[str]:
        return get_close_matches(str(key)[:64], cls._names(), 1, MISTYPED)

    @classmethod
    @cache
    def _names(cls) -> dict[str, str]:
        """All names and aliases of fields, and the field of each."""
        names = {name: name for name in cls.model_fields}
        for name, field in cls.model_fields.items():
            if isinstance(field.validation_alias, AliasChoices):
                aliases = field.validation_alias.choices
                names |= {each: name for each in aliases if isinstance(each, str)}
        return names

    @classmethod
    def by_field(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Values under the fields' names; where a field is named twice, as they are."""
        names = cls._names()
        renamed = {names.get(key, key): value for key, value in values.items()}
        return renamed if len(renamed) == len(values) else values


def _mistyped(key: str, known: str) -> ApiError:
    problem = f"Unknown key '{key}'. Did you mean '{known}'? Correct it, or leave it out."
    return ApiError(400, problem, "unknown_key", key)


def refused(param: str, message: str) -> ApiError:
    """Raised while a body is validated, it passes through pydantic as it is."""
    return ApiError(400, message, "invalid_value", param)


class VoiceId(Body):
    """OpenAI's form of a voice as an object."""

    id: Name


class SpeechOptions(Body):
    """All options of a request except its text, shared by all routes."""

    model: Annotated[str, Field(max_length=512)] = ""
    voice: Annotated[str, Field(max_length=4096)] | VoiceId | None = Field(
        None,
        validation_alias=AliasChoices("voice", "speaker", "speaker_id", "voice_id", "reference_id"),
    )
    blend_method: Literal["linear", "spherical"] = "linear"  # for blends
    mood: Annotated[str, Field(max_length=80)] = ""  # of GET /v1/audio/moods
    mood_strength: float = Field(1.0, ge=0, le=MAX_STRENGTH)
    instructions: str = Field(
        "",
        max_length=4000,
        validation_alias=AliasChoices("instructions", "instruct", "instruction"),
    )
    response_format: Format = Field(
        "mp3", validation_alias=AliasChoices("response_format", "output_format", "format")
    )
    sample_rate: SampleRate | None = None  # None: 8000 of telephony's formats, 24000 of others
    bit_rate: int | None = Field(
        None,
        ge=1,
        le=512_000,
        validation_alias=AliasChoices("bit_rate", "bitrate", "mp3_bitrate", "opus_bitrate"),
    )  # kbit/s; from 1000 on bit/s
    speed: float = Field(1.0, ge=0.25, le=4.0)
    language: Language = "auto"
    task_type: Literal["CustomVoice", "VoiceDesign", "Base"] | None = None
    # a data: URL, or the id of an uploaded voice; `references` and `ref_audio_url` become this
    ref_audio: str | None = None
    ref_text: str | None = Field(None, max_length=4000)
    consent: Consent = None  # of the speaker in ref_audio
    x_vector_only_mode: bool | None = None
    speaker_embedding: Numbers | None = None
    seed: int | None = Field(None, ge=0, lt=2**63)
    do_sample: bool = True
    temperature: float | None = Field(None, ge=0, le=5)
    top_k: int | None = Field(None, ge=0, le=4096)
    top_p: float | None = Field(None, gt=0, le=1)
    repetition_penalty: float | None = Field(None, ge=1, le=5)
    subtalker_dosample: bool | None = None
    subtalker_temperature: float | None = Field(None, ge=0, le=5)
    subtalker_top_k: int | None = Field(None, ge=0, le=4096)
    subtalker_top_p: float | None = Field(None, gt=0, le=1)
    max_new_tokens: int | None = Field(
        None, ge=1, le=2**31, validation_alias=AliasChoices("max_new_tokens", "max_tokens")
    )
    ignore_eos: bool = False
    early_start: EarlyStart | None = None  # where speech is made slower than it plays
    spell_out: bool = True  # figures and abbreviations as words, for a model that needs it
    initial_codec_chunk_frames: int = Field(0, ge=0, le=1024)  # 0: send audio at once
    word_timestamps: bool = False  # the times of words: see docs/api.md
    non_streaming_mode: bool | None = None  # the prompt's layout; audio is streamed in either case

    @field_validator("language")
    @classmethod
    def _language(cls, language: str) -> str:
        return language_name(language)

    @model_validator(mode="before")
    @classmethod
    def _references_of_others(cls, values: Any) -> Any:
        return with_reference(values) if isinstance(values, dict) else values

    @model_validator(mode="before")
    @classmethod
    def _format_of_others(cls, values: Any) -> Any:
        """Formats under other services' names, which may say rates too."""
        values = cls.by_field(values) if isinstance(values, dict) else {}
        name = values.get("response_format")
        if not isinstance(name, str):
            return values
        try:
            named = read_format(name)
        except ValueError as error:
            raise refused("response_format", str(error)) from None
        values = {**values, "response_format": named.format}
        for field in ("sample_rate", "bit_rate"):
            value = getattr(named, field)
            if value and values.get(field) not in (None, value):
                raise refused(field, f"{name} has a {field} of {value}. Leave one of both out.")
            values |= {field: value} if value else {}
        return values

    @field_validator("bit_rate")
    @classmethod
    def _in_kbit(cls, rate: int | None) -> int | None:
        return rate // 1000 if rate and rate >= 1000 else rate

    @model_validator(mode="after")
    def _rates_of_the_format(self) -> Self:
        format, rate = self.response_format, self.output.sample_rate
        if format == "opus" and rate not in OPUS_RATES:
            rates = ", ".join(map(str, OPUS_RATES))
            raise refused("sample_rate", f"opus has a sample_rate of {rates}.")
        there = bit_rates(format, rate)
        if self.bit_rate and self.bit_rate not in there:
            listed = f"{there[0]} to {there[-1]}" if isinstance(there, range) else str(there)[1:-1]
            has = f"has a bit_rate of {listed} kbit/s" if there else "has no bit_rate to choose"
            raise refused("bit_rate", f"{format} at {rate} Hz {has}.")
        return self

    @property
    def output(self) -> Output:
        rate = self.sample_rate or default_rate(self.response_format)
        return Output(self.response_format, self.speed, rate, self.bit_rate)

    def sampling(self) -> SamplingParams:
        """Sampling parameters; a temperature of 0 means greedy, as in other APIs."""
        return _sampling(
            greedy=not self.do_sample or self.temperature == 0,
            temperature=self.temperature or None,
            top_k=self.top_k,
            top_p=self.top_p,
            repetition_penalty=self.repetition_penalty,
            predictor_greedy=self._predictor_greedy(),
            predictor_temperature=self.subtalker_temperature or None,
            predictor_top_k=self.subtalker_top_k,
            predictor_top_p=self.subtalker_top_p,
        )

    def _predictor_greedy(self) -> bool | None:
        if self.subtalker_temperature == 0:
            return True
        return None if self.subtalker_dosample is None else not self.subtalker_dosample

    @property
    def layout(self) -> Literal["whole", "streamed"] | None:
        if self.non_streaming_mode is None:
            return None
        return "whole" if self.non_streaming_mode else "streamed"


@lru_cache(64)
def _sampling(**values: Any) -> SamplingParams:
    """Most requests have the same ones."""
    return SamplingParams(**values)


class BatchItem(SpeechOptions):
    """One text with its options."""

    input: str = Field(validation_alias=AliasChoices("input", "inputs", "text"))


class SpeechBody(BatchItem):
    """POST /v1/audio/speech."""

    stream: bool | None = Field(None, validation_alias=AliasChoices("stream", "streaming"))
    stream_format: Literal["audio", "sse"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _parameters_of_hugging_face(cls, values: Any) -> Any:
        """Its clients send `inputs`, and all else in an object beside."""
        if isinstance(values, dict) and isinstance(values.get("parameters"), dict):
            given = values["parameters"]
            return {**given, **{key: value for key, value in values.items() if key != "parameters"}}
        return values

    @model_validator(mode="after")
    def _timed_when_whole(self) -> Self:
        if self.word_timestamps and (self.stream or self.stream_format == "sse"):
            raise ValueError(
                "word_timestamps are told with a whole answer: leave stream out, or use the "
                "WebSocket /v1/audio/speech/stream"
            )
        return self

    @property
    def delivery(self) -> Literal["whole", "audio", "sse"]:
        """How the audio is sent: streamed by default, but for `WHOLE` formats and word times."""
        if self.word_timestamps:
            return "whole"
        if self.stream_format:
            return self.stream_format
        streams = self.response_format not in WHOLE if self.stream is None else self.stream
        return "audio" if streams else "whole"


class BatchBody(SpeechOptions):
    """POST /v1/audio/speech/batch; fields outside `items` are defaults of all items."""

    items: list[dict[str, Any]] = Field(min_length=1, fail_fast=True)

    def bodies(self) -> list[dict[str, Any]]:
        shared = self.model_dump(exclude={"items"}, exclude_unset=True)
        given = (
            {name: value for name, value in item.items() if value is not None}
            for item in self.items
        )
        return [{**shared, **BatchItem.by_field(item)} for item in given]


class Share(Body):
    voice: Name
    weight: float = Field(1.0, ge=0)


class BlendBody(Body):
    """POST /v1/audio/voices/blend."""

    name: Name
    voices: (
        Annotated[list[Share], Field(max_length=64, fail_fast=True)] | str
    )  # or written as clara:0.7,robert:0.3
    method: Literal["linear", "spherical"] = "linear"

    @property
    def recipe(self) -> str:
        if isinstance(self.voices, str):
            return self.voices
        return format_blend(tuple((share.voice, share.weight) for share in self.voices))


class DescribedVoice(Body):
    """POST /v1/audio/voices with `type` prompt: a voice out of a description."""

    type: Literal["prompt"] = "prompt"
    name: Name
    prompt: str = Field(min_length=1, max_length=2000)
    script_hint: str = Field("", max_length=1000)  # what it says while it is made
    model: Annotated[str, Field(max_length=512)] = ""

    @field_validator("prompt")
    @classmethod
    def _says_something(cls, prompt: str) -> str:
        if not prompt.strip():
            raise ValueError("describe the voice")
        return prompt.strip()


class ConsentName(Body):
    """POST /v1/audio/voice_consents/{id}."""

    name: Name


class Configuration(SpeechOptions):
    """The `session.config` message of the WebSocket; it applies from the next utterance on."""

    type: Literal["session.config"]
    response_format: Format = "pcm"
    # A clause is spoken with its sentence.
    split_granularity: Literal["none", "sentence", "clause"] = "none"
    stream_audio: bool = True  # false: each part in one piece
