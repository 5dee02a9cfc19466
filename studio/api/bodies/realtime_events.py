"""Events that a client of OpenAI's Realtime sends, and the session that they set.

What these models cannot do is refused: tools, text as an answer, listening. What they do not need
(`audio.input`, `reasoning`, `truncation`, …) is ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator

from studio.api.bodies.schemas import Body, VoiceId

Id = Annotated[str, Field(min_length=1, max_length=128)]
VoiceName = Annotated[str, Field(max_length=4096)] | VoiceId
# By media type: our format and its rate.
FORMATS: Final[dict[str, tuple[str, int]]] = {
    "audio/pcm": ("pcm", 24_000),
    "audio/pcmu": ("ulaw", 8_000),
    "audio/pcma": ("alaw", 8_000),
}


class AudioFormat(Body):
    type: Literal["audio/pcm", "audio/pcmu", "audio/pcma"] = "audio/pcm"
    rate: int | None = None

    @field_validator("rate")
    @classmethod
    def _only(cls, rate: int | None) -> int | None:
        if rate not in (None, 8_000, 24_000):
            raise ValueError("audio/pcm has 24000 samples a second, audio/pcmu and audio/pcma 8000")
        return rate


class AudioOutput(Body):
    format: AudioFormat | None = None
    voice: VoiceName | None = None
    speed: float | None = Field(None, ge=0.25, le=4.0)


class Audio(Body):
    output: AudioOutput = AudioOutput()
    input: dict[str, Any] | None = None  # of no use: nothing is heard here


class Spoken(Body):
    """Fields that a session and a response share."""

    audio: Audio = Audio()
    instructions: str | None = Field(None, max_length=100_000)
    output_modalities: list[Literal["audio", "text"]] | None = Field(None, max_length=2)
    max_output_tokens: int | Literal["inf"] | None = None  # frames of 80 ms
    tools: list[Any] | None = Field(None, max_length=0)
    language: Annotated[str, Field(max_length=64)] | None = None  # ours
    seed: int | None = Field(None, ge=0, lt=2**63)  # ours

    @field_validator("output_modalities")
    @classmethod
    def _is_heard(cls, kinds: list[str] | None) -> list[str] | None:
        if kinds is not None and kinds != ["audio"]:
            raise ValueError('answers are spoken: send ["audio"], which has its text beside it')
        return kinds


class Session(Spoken):
    type: Literal["realtime"] = "realtime"
    model: Annotated[str, Field(max_length=512)] | None = None


class Content(Body):
    type: Literal["input_text", "output_text", "text"]
    text: str = ""


class Item(Body):
    """A message. Other items of OpenAI's (calls of functions, sounds) have no use here."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system"] = "user"
    id: Id | None = None
    content: list[Content] = Field(min_length=1, max_length=64)

    @property
    def text(self) -> str:
        return " ".join(part.text.strip() for part in self.content if part.text.strip())


class ItemReference(Body):
    type: Literal["item_reference"]
    id: Id


class ResponseOptions(Spoken):
    conversation: Literal["auto", "none"] = "auto"
    input: list[Item | ItemReference] | None = Field(None, max_length=64)
    metadata: dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]] | (
        None
    ) = Field(None, max_length=16)


class Event(Body):
    event_id: Id | None = None


class SessionUpdate(Event):
    type: Literal["session.update"]
    session: Session


class ItemCreate(Event):
    type: Literal["conversation.item.create"]
    item: Item
    previous_item_id: Id | None = None


class ItemDelete(Event):
    type: Literal["conversation.item.delete"]
    item_id: Id


class ItemRetrieve(Event):
    type: Literal["conversation.item.retrieve"]
    item_id: Id


class ItemTruncate(Event):
    type: Literal["conversation.item.truncate"]
    item_id: Id
    content_index: Literal[0] = 0
    audio_end_ms: int = Field(ge=0, le=2**40)


class ResponseCreate(Event):
    type: Literal["response.create"]
    response: ResponseOptions = ResponseOptions()


class ResponseCancel(Event):
    type: Literal["response.cancel"]
    response_id: Id | None = None


ClientEvent = (
    SessionUpdate
    | ItemCreate
    | ItemDelete
    | ItemRetrieve
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
)
EVENTS: Final[dict[str, type[ClientEvent]]] = {
    "session.update": SessionUpdate,
    "conversation.item.create": ItemCreate,
    "conversation.item.delete": ItemDelete,
    "conversation.item.retrieve": ItemRetrieve,
    "conversation.item.truncate": ItemTruncate,
    "response.create": ResponseCreate,
    "response.cancel": ResponseCancel,
}
NOT_OFFERED: Final = {
    "input_audio_buffer.": "This server speaks and does not listen. Send text: "
    "conversation.item.create, then response.create.",
    "output_audio_buffer.": "Audio is not kept here once it was sent. Use response.cancel.",
}
