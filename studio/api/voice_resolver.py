"""Resolves the voice of a request body.

In this order: a vector, a reference recording, a description (task_type VoiceDesign), a name. A
name is a preset speaker, an uploaded voice's id or name, a blend like clara:0.7,robert:0.3, or a
voice of another service, each of which is mapped to one of these, so that clients with a fixed
voice work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio.to_thread
import numpy as np

from engine import (
    SAMPLE_RATE,
    Blend,
    Clone,
    Design,
    InvalidAudio,
    Library,
    Mood,
    Mooded,
    Pcm,
    Preset,
    SavedMood,
    SpeechEngine,
    Voice,
    Waveform,
    load_reference_audio,
)
from studio.api.bodies.inline_reference import audio_of, is_data_url, refuse_address
from studio.api.bodies.schemas import SpeechOptions, VoiceId
from studio.api.bodies.service_names import OPENAI_MODELS
from studio.api.errors import ApiError, explain
from studio.api.recording_queue import RecordingQueue
from studio.api.request_labels import report_ignored, report_warning
from studio.api.single_flight import SingleFlight
from studio.settings import ApiSettings
from studio.voices.consent import is_consent
from studio.voices.voice_catalog import Choices, Method

NO_NAMES = ("", "default")
Result = TypeVar("Result")


class VoiceResolver:
    """Resolves names and recordings to voices."""

    def __init__(self, engine: SpeechEngine, library: Library, settings: ApiSettings) -> None:
        self._engine, self._library, self._settings = engine, library, settings
        self._recordings = RecordingQueue()
        self._looked: SingleFlight[None] = SingleFlight()  # at the library
        self._known: tuple[object, Choices] | None = None  # with the checkpoints that it is of

    @property
    def _choices(self) -> Choices:
        """Of the models that are here now: the page adds and removes some."""
        checkpoints = self._engine.checkpoints()  # replaced, never modified
        if self._known is None or self._known[0] is not checkpoints:
            self._known = checkpoints, Choices(self._engine.capabilities(), self._library)
        return self._known[1]

    async def resolve(self, options: SpeechOptions) -> Voice:
        _check(options)
        voice = await self._by_kind(options)
        _check_task(options.task_type, voice)
        if not options.mood.strip():
            return voice
        moods = self._choices.moods
        return await anyio.to_thread.run_sync(
            moods.put_on, voice, options.mood, options.mood_strength
        )

    async def moods_in(self, text: str) -> Mapping[str, Mood]:
        """The moods that a text may name, if it has brackets; the library is read in a thread."""
        if "[" not in text and "(" not in text:
            return {}
        return await anyio.to_thread.run_sync(self._choices.moods.in_text, text)

    def moods(self) -> tuple[SavedMood, ...]:
        return self._choices.moods.list()

    def model(self, name: str) -> str | None:
        """A checkpoint's name; None for a name of another service: the voice picks one."""
        model = self._checkpoint(name)
        if model is None and name.strip() and name.lower() not in OPENAI_MODELS:
            report_ignored("model")
        return model

    async def with_voice(self, options: SpeechOptions) -> SpeechOptions:
        """The same options; without a voice, a model that is one's name is the voice (LocalAI)."""
        name = options.model.strip()
        described = (
            options.ref_audio or options.speaker_embedding or options.task_type == "VoiceDesign"
        )
        if not name or described or _name(options).lower() not in NO_NAMES:
            return options
        if name.lower() in OPENAI_MODELS or self._checkpoint(name):
            return options
        if not await anyio.to_thread.run_sync(self._choices.knows, name):
            return options
        return options.model_copy(update={"voice": name, "model": ""})

    def _checkpoint(self, name: str) -> str | None:
        wanted = name.rstrip("/").rpartition("/")[2].casefold()
        every = self._engine.capabilities()
        return next(
            (speaker for speaker in every if speaker.casefold() in (wanted, name.casefold())), None
        )

    def speakers(self) -> tuple[str, ...]:
        return self._choices.speakers()

    def aliases(self) -> Mapping[str, str]:
        return self._choices.aliases()

    def blend_parts(self, recipe: str) -> Sequence[str]:
        return self._choices.blend_parts(recipe)

    def named(self, name: str, instruct: str = "", method: Method = "linear") -> Voice:
        """A speaker, an uploaded voice, a blend, or a name of another service."""
        voice = self._choices.requested(name, instruct, method)
        if other := self._choices.unlike(name):
            _warn(name, other)
        return voice

    def blend(self, recipe: str, method: Method) -> Clone:
        """A written blend as a vector."""
        voice = self._engine.resolve(self._choices.blend(recipe, method)).voice
        assert isinstance(voice, Clone)  # blends are vectors
        return voice

    async def clone(
        self, recording: bytes, transcript: str, model: str | None, param: str = "audio"
    ) -> Clone:
        """A voice from an audio file sent as `param`; it waits its turn."""
        return await self._in_turn(partial(self._clone, recording, transcript, model), param)

    async def waveform(self, recording: bytes, param: str) -> Waveform:
        """A recording, checked as one that is cloned; it waits its turn."""
        return (await self._in_turn(partial(load_reference_audio, recording), param)).waveform

    async def clone_take(self, pcm: Pcm, text: str) -> Clone:
        """A voice from speech that was made here; it waits its turn."""

        def work() -> Clone:
            waveform = load_reference_audio((pcm, SAMPLE_RATE)).waveform
            return self._engine.clone(waveform, text)

        return await self._in_turn(work, "prompt")

    async def _in_turn(self, work: Callable[[], Result], param: str) -> Result:
        try:
            return await self._recordings.run(work)
        except InvalidAudio as error:
            raise replace(explain(error), param=param) from error

    def check_consent(self, given: object) -> None:
        """Require consent for a recording sent with a request. Raises ApiError."""
        if self._settings.reference_consent != "operator" and not is_consent(given):
            message = (
                "Only send a recording whose owner has agreed that the voice is copied, "
                "and say so in the request: consent: true."
            )
            raise ApiError(400, message, "consent_missing", "consent")

    async def reference_voice(
        self, source: str, transcript: str, model: str | None, param: str, consent: object = None
    ) -> Clone:
        """The voice of a data: URL, or the uploaded voice with this id."""
        if is_data_url(source):
            self.check_consent(consent)
            limit = self._settings.audio_bytes
            recording = await anyio.to_thread.run_sync(audio_of, source, limit, param)
            return await self.clone(recording, transcript, model, param)
        refuse_address(source, param)
        saved = await anyio.to_thread.run_sync(self._library.find, source)
        if not saved or not isinstance(saved.voice, Clone):
            message = (
                f"No uploaded voice is called '{source[:200]}'. Upload it, or send a data: URL."
            )
            raise ApiError(404, message, "voice_not_found", param)
        return saved.voice

    def _clone(self, recording: bytes, transcript: str, model: str | None) -> Clone:
        reference = load_reference_audio(recording)
        if transcript and reference.flaw:
            report_warning(
                f"ref_text is not used ({reference.flaw}): the voice is made from the recording's "
                "speaker embedding alone."
            )
        return self._engine.clone(reference.waveform, reference.continued(transcript), model)

    async def _by_kind(self, options: SpeechOptions) -> Voice:
        if options.speaker_embedding is not None:
            self._check_width(len(options.speaker_embedding), options.model)
            return Clone(np.asarray(options.speaker_embedding, np.float32))
        if options.ref_audio is not None:
            return await self._by_reference(options)
        if options.task_type == "VoiceDesign":
            return Design(options.instructions)
        name = _name(options)
        if isinstance(options.voice, VoiceId):
            name = await anyio.to_thread.run_sync(self._by_id, name)
        named = name.lower() not in NO_NAMES
        voice = await (self._by_name(name, options) if named else self._default(options))
        if options.x_vector_only_mode and isinstance(voice, Clone):
            return voice_alone(voice)
        return voice

    def _check_width(self, count: int, model: str) -> None:
        """Refuse a vector that no model here, or not this one, can take."""
        able, named = self._engine.capabilities(), self.model(model)
        widths = {model.width for name, model in able.items() if named in (None, name)}
        if count not in widths:
            wanted = " or ".join(map(str, sorted(widths)))
            problem = f"speaker_embedding has {count} dimensions, expected {wanted}."
            raise ApiError(400, problem, "invalid_value", "speaker_embedding")

    def _by_id(self, voice_id: str) -> str:
        """A key for the voice with this id, even if another voice has the id as its name."""
        exact = f"#{voice_id}"
        return exact if self._library.find(exact) else voice_id

    async def _by_name(self, name: str, options: SpeechOptions) -> Voice:
        """Find a named voice; the library is read in a thread."""
        choices = self._choices
        if choices.is_speaker(name):
            return self.named(name, options.instructions)
        if (other := choices.stand_in(name)) and await self._is_free(name):
            if not choices.is_like(other, name):
                _warn(name, other)
            return choices.named(other, options.instructions)
        arguments = (name, options.instructions, options.blend_method)
        return await anyio.to_thread.run_sync(self.named, *arguments)

    async def _is_free(self, name: str) -> bool:
        """Whether no saved voice has a name; a crowd that asks has the library looked at once."""
        if self._library.is_free(name) is None:
            await self._looked(self._library.look)
        return self._library.is_free(name) or False

    async def _by_reference(self, options: SpeechOptions) -> Clone:
        transcript = "" if options.x_vector_only_mode else (options.ref_text or "").strip()
        model = self.model(options.model)
        source = options.ref_audio or ""
        voice = await self.reference_voice(source, transcript, model, "ref_audio", options.consent)
        return voice_alone(voice) if options.x_vector_only_mode else voice

    async def _default(self, options: SpeechOptions) -> Voice:
        """The voice of a request without one."""
        model = self.model(options.model)
        capabilities = self._engine.capabilities()
        able = Choices({model: capabilities[model]} if model else capabilities, self._library)
        if not able.speakers() and not options.instructions:
            choices = await anyio.to_thread.run_sync(able.list)
            names = ", ".join(choice.name for choice in choices[:40])
            there = f"There are: {names}." if names else "Upload one: POST /v1/audio/voices."
            raise ApiError(400, f"Name a voice. {there}", "voice_missing", "voice")
        return able.default(options.instructions)


def _name(options: SpeechOptions) -> str:
    voice = options.voice
    return (voice.id if isinstance(voice, VoiceId) else voice or "").strip()


def _warn(name: str, other: str) -> None:
    report_warning(f"No voice here is known to be like '{name}'; '{other}' speaks.")


def _check(options: SpeechOptions) -> None:
    """Refuse contradictory fields."""
    if options.speaker_embedding is not None and options.ref_audio is not None:
        raise _clash(
            "speaker_embedding and ref_audio are mutually exclusive. Send one of them.",
            "speaker_embedding",
        )
    inline = options.ref_audio is not None and is_data_url(options.ref_audio)
    if options.ref_text is not None and not inline:
        raise _clash("ref_text belongs to a ref_audio with a data: URL.", "ref_text")
    if inline and options.x_vector_only_mode is False and not (options.ref_text or "").strip():
        raise _clash("Without x_vector_only_mode a ref_audio needs its ref_text.", "ref_text")
    cloned = options.speaker_embedding is not None or options.ref_audio is not None
    if cloned and options.instructions:
        raise _clash("A cloned voice takes no instructions. Leave them out.", "instructions")


def _check_task(task: str | None, voice: Voice) -> None:
    voice = voice.voice if isinstance(voice, Mooded) else voice
    kinds = {"CustomVoice": (Preset, Blend), "Base": (Clone, Blend), "VoiceDesign": (Design,)}
    if task and not isinstance(voice, kinds[task]):
        message = f"task_type {task} does not fit this voice. Leave task_type out."
        raise ApiError(422, message, "not_capable", "task_type")


def voice_alone(voice: Clone) -> Clone:
    """The voice without transcript and codes."""
    return replace(voice, transcript="", codes=None)


def _clash(message: str, param: str) -> ApiError:
    return ApiError(400, message, "invalid_value", param)
