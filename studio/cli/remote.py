"""`say` and `voices` on a Timbre server: the same orders, spoken elsewhere (docs/api.md)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from engine import InvalidAudio
from studio.cli.connection import Connection
from studio.cli.console import Teller
from studio.cli.http_speech import AnswerSpeech
from studio.cli.say_options import Order
from studio.cli.speech_output import Speech
from studio.cli.websocket_speech import SocketSpeech


@dataclass(frozen=True)
class Server:
    """Somebody else's engine and voices."""

    connection: Connection
    tell: Teller

    @contextmanager
    def open(self, order: Order) -> Iterator[Speech]:
        """The speech of an order; it is asked for when somebody listens."""
        manner = _manner(order)
        with ExitStack() as held:
            if order.words is None:
                yield AnswerSpeech(self.connection, {"input": order.text, **manner}, held)
            else:
                yield SocketSpeech(self.connection, manner, order.words, held, self.tell)

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


def _manner(order: Order) -> dict[str, Any]:
    """Everything but the text, as the API names it; what was not said is left out."""
    said = {
        "response_format": "pcm",
        "voice": order.voice or order.blend,
        "blend_method": "spherical" if order.spherical else "",
        "instructions": order.instruct,
        "ref_audio": _recording(order),
        "ref_text": order.transcript.strip(),
        "language": order.language,
        "seed": order.seed,
        "max_new_tokens": order.max_frames,
        "do_sample": False if order.greedy else None,
    }
    return {name: value for name, value in said.items() if value not in ("", None)}


def _recording(order: Order) -> str:
    if order.reference is None:
        return ""
    try:
        data = order.reference.read_bytes()
    except OSError as error:
        raise InvalidAudio(f"There is no file {order.reference} that can be read.") from error
    return f"data:application/octet-stream;base64,{b64encode(data).decode()}"
