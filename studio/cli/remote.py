"""`say` and `voices` on a Timbre server (docs/api.md)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from engine import InvalidAudio
from studio.cli.connection import Connection
from studio.cli.console import Reporter
from studio.cli.http_speech import HttpSpeech
from studio.cli.say_options import SayOptions
from studio.cli.speech_output import Speech
from studio.cli.websocket_speech import WebSocketSpeech


@dataclass(frozen=True)
class Server:
    """A server's engine and voices."""

    connection: Connection
    tell: Reporter

    @contextmanager
    def open(self, options: SayOptions) -> Iterator[Speech]:
        """The speech for these options; the request is sent when iteration starts."""
        manner = _manner(options)
        with ExitStack() as held:
            if options.words is None:
                yield HttpSpeech(self.connection, {"input": options.text, **manner}, held)
            else:
                yield WebSocketSpeech(self.connection, manner, options.words, held, self.tell)

    def voices(self) -> Iterator[str]:
        """A line for each voice of the server."""
        with self.connection.plainly(), self.connection.client() as client:
            answer = client.get("/v1/audio/voices")
            self.connection.check(answer)
        listing = answer.json()
        for name in listing["presets"]:
            yield f"{name}\tpreset"
        for voice in listing["uploaded_voices"]:
            kind = "design" if voice["kind"] == "design" else "saved"
            yield f"{voice['name']}\t{kind}\t{voice['speaker_description'] or ''}".rstrip()


def _manner(options: SayOptions) -> dict[str, Any]:
    """The options except the text in the API's names, without those that were not given."""
    said = {
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
        "do_sample": False if options.greedy else None,
    }
    return {name: value for name, value in said.items() if value not in ("", None)}


def _recording(options: SayOptions) -> str:
    if options.reference is None:
        return ""
    try:
        data = options.reference.read_bytes()
    except OSError as error:
        raise InvalidAudio(f"There is no file {options.reference} that can be read.") from error
    return f"data:application/octet-stream;base64,{b64encode(data).decode()}"
