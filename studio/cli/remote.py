"""`say` and `voices` on a Timbre server (docs/api.md)."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import InvalidAudio, Pcm
from studio.cli.app_context import AppContext
from studio.cli.connection import Connection, ServerError
from studio.cli.console import Reporter
from studio.cli.say_options import SayOptions, check_options
from studio.cli.speech_output import Speech, Take, speak
from studio.voices.moods import split_mood

PATH = "/v1/audio/speech"


class HttpSpeech:
    """Speaks a complete text: POST /v1/audio/speech with server-sent events.

    The request is sent when iteration starts; `held` closes the connection.
    """

    def __init__(self, connection: Connection, body: dict[str, Any], held: ExitStack) -> None:
        self._connection, self._held = connection, held
        self._body = {**body, "stream_format": "sse"}
        self.seed: int | None = body.get("seed")
        self.reason = "cancelled"

    def __iter__(self) -> Iterator[Pcm]:
        with self._connection.explained_errors():
            client = self._held.enter_context(self._connection.client())
            answer = self._held.enter_context(client.stream("POST", PATH, json=self._body))
            self._connection.check(answer)
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                raise self._connection.not_timbre(answer.status_code)
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield from self._read_event(json.loads(line[6:]))
        if self.reason == "cancelled":
            raise self._connection.interrupted()

    def _read_event(self, event: dict[str, Any]) -> Iterator[Pcm]:
        if event["type"] == "speech.audio.delta":
            yield np.frombuffer(b64decode(event["audio"]), "<i2").astype(np.int16)
        elif event["type"] == "speech.audio.done":
            self.seed, self.reason = event["seed"], event["finish_reason"]
        elif event["type"] == "speech.audio.error":
            raise ServerError(event["error"]["message"])


@dataclass(frozen=True)
class Server:
    """A server's engine and voices."""

    connection: Connection
    tell: Reporter

    @contextmanager
    def open(self, options: SayOptions) -> Iterator[Speech]:
        """The speech for these options; the request is sent when iteration starts."""
        fields = _voice_fields(options)
        with ExitStack() as held:
            if options.words is None:
                yield HttpSpeech(self.connection, {"input": options.text, **fields}, held)
            else:
                from studio.cli.websocket_speech import WebSocketSpeech

                yield WebSocketSpeech(self.connection, fields, options.words, held, self.tell)

    def voices(self) -> Iterator[str]:
        """A line for each voice of the server."""
        with self.connection.explained_errors(), self.connection.client() as client:
            answer = client.get("/v1/audio/voices")
            self.connection.check(answer)
        try:
            yield from _listed(answer.json())
        except (ValueError, KeyError, TypeError) as error:
            raise self.connection.not_timbre(answer.status_code) from error


def server_of(context: AppContext) -> Server:
    """The server that the settings name."""
    settings = context.settings
    return Server(Connection(settings.server, settings.key.get_secret_value()), context.tell)


def say_there(options: SayOptions, context: AppContext) -> Take:
    check_options(options)
    return speak(options, server_of(context).open(options), context.tell)


def _listed(listing: Any) -> list[str]:
    lines = [f"{name}\tpreset" for name in listing["presets"]]
    for voice in listing["uploaded_voices"]:
        kind = "design" if voice["kind"] == "design" else "saved"
        lines.append(f"{voice['name']}\t{kind}\t{voice['speaker_description'] or ''}".rstrip())
    return lines


def _voice_fields(options: SayOptions) -> dict[str, Any]:
    """The options except the text in the API's names, without those that were not given."""
    mood, strength = split_mood(options.mood) if options.mood else ("", None)
    fields = {
        "mood": mood,
        "mood_strength": strength,
        "response_format": "pcm",
        "voice": options.voice or options.blend,
        "blend_method": "spherical" if options.spherical else "",
        "instructions": options.instruct,
        "ref_audio": _recording(options),
        "ref_text": options.transcript.strip(),
        "consent": options.consent or None,
        "language": options.language,
        "seed": options.seed,
        "max_new_tokens": options.max_frames,
        "early_start": options.early_start,
        "do_sample": False if options.greedy else None,
        "spell_out": None if options.spell_out else False,
    }
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _recording(options: SayOptions) -> str:
    if options.reference is None:
        return ""
    try:
        data = options.reference.read_bytes()
    except OSError as error:
        raise InvalidAudio(f"There is no file {options.reference} that can be read.") from error
    return f"data:application/octet-stream;base64,{b64encode(data).decode()}"
