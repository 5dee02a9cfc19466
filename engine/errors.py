"""Everything that can go wrong, as one tree. Each message says what to do next.

TimbreError
├── RequestError            the request cannot be served as it was asked
│   ├── InvalidText         empty, too long, not text
│   ├── InvalidSetting      an unknown key, a value out of range
│   ├── UnknownVoice        no checkpoint has this speaker, no saved voice has this name
│   ├── UnknownLanguage     the checkpoint does not speak it
│   ├── NotCapable          the checkpoint cannot do this (and what it can do)
│   ├── InvalidAudio        a reference that is no usable recording
│   └── InvalidVoice        a vector of the wrong width, a damaged voice file
├── Busy                    too many are waiting; come back after `retry_after` seconds
│   └── TooMany             one person asks for more than a share
├── CheckpointError         a model folder that cannot be loaded
│   └── OtherCodec          it cannot stand beside the models that are here
├── NoLoudspeaker           this machine cannot play sound
├── NotSaved                the disk is full, or its folder may not be written
└── EngineError             the engine failed, the request was fine
    ├── StepFailed          a step raised; the engine goes on
    ├── OutOfMemory         the device has no room for this
    └── EngineClosed        the engine has stopped

An error carries a key and values (said.py), so that a page can say it in another language.
This module knows nothing of HTTP, pages or devices.
"""

from __future__ import annotations

from engine.messages import Message


class TimbreError(Exception):
    """The root. `message` is a sentence for people, with key and values; `str` is its English."""

    def __init__(self, key: str = "", /, **values: object) -> None:
        super().__init__(key if isinstance(key, Message) else Message(key, **values))

    @property
    def message(self) -> Message:
        sentence: Message = self.args[0]
        return sentence


class RequestError(TimbreError):
    """The request cannot be served as it was asked."""


class InvalidText(RequestError): ...


class InvalidSetting(RequestError): ...


class UnknownVoice(RequestError): ...


class UnknownLanguage(RequestError): ...


class NotCapable(RequestError): ...


class InvalidAudio(RequestError): ...


class InvalidVoice(RequestError): ...


class Busy(TimbreError):
    """Refused for now: the queue is full."""

    def __init__(self, waiting: int, retry_after: float) -> None:
        seconds = max(1, round(retry_after))
        super().__init__(
            "{waiting} requests are waiting already. Try again in about {seconds} s.",
            waiting=waiting,
            seconds=seconds,
        )
        self.waiting = waiting
        self.retry_after = retry_after


class TooMany(Busy):
    """One person asks for more than a share, whatever the queue."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(0, retry_after)
        self.args = (message if isinstance(message, Message) else Message(message),)


class CheckpointError(TimbreError):
    """A model folder that cannot be loaded."""


class OtherCodec(CheckpointError):
    """Its codec differs from that of the models that are here; it can only replace them."""


class NoLoudspeaker(TimbreError):
    """This machine cannot play sound."""


class NotSaved(TimbreError):
    """The disk is full, or its folder may not be written. Nothing half-written is left."""


class EngineError(TimbreError):
    """The engine failed; the request was fine."""


class StepFailed(EngineError): ...


class OutOfMemory(EngineError): ...


class EngineClosed(EngineError): ...
