"""The tree of exceptions. Each message says what to do next.

TimbreError
├── RequestError            the request cannot be served as it is
│   ├── InvalidText         empty, too long, not text
│   ├── InvalidSetting      an unknown key, a value out of range
│   ├── UnknownVoice        no checkpoint has this speaker, no saved voice has this name
│   ├── UnknownLanguage     the checkpoint does not speak it
│   ├── NotCapable          the checkpoint cannot do this (and what it can do)
│   ├── InvalidAudio        a recording that cannot be used as a reference
│   └── InvalidVoice        a vector of the wrong width, a damaged voice file
│       ├── NameTaken       a saved voice has this name already
│       └── LibraryFull     it may not have more voices
├── Busy                    too many requests are waiting; retry after `retry_after` seconds
│   └── TooMany             one visitor has more requests than allowed
├── CheckpointError         a model folder that cannot be loaded
│   └── OtherCodec          its codec differs from that of the loaded models
├── NoLoudspeaker           this machine cannot play sound
├── NotSaved                the disk is full, or its folder may not be written
└── EngineError             the engine failed, not the request
    ├── StepFailed          a step raised; the engine keeps running
    ├── OutOfMemory         the device has too little memory
    └── EngineClosed        the engine has stopped

An error carries a key and values (engine/messages.py), so that a page can translate it. This module
knows nothing of HTTP, pages or devices.
"""

from __future__ import annotations

from engine.messages import Message


class TimbreError(Exception):
    """The root. `message` has the key and values for translation; `str` is the English text."""

    def __init__(self, key: str = "", /, **values: object) -> None:
        super().__init__(key if isinstance(key, Message) else Message(key, **values))

    @property
    def message(self) -> Message:
        sentence: Message = self.args[0]
        return sentence

    def __reduce__(self) -> tuple[object, ...]:
        """Copied as it is, also between processes: not every kind is made from its message."""
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[TimbreError], arguments: tuple[object, ...]) -> TimbreError:
    error = kind.__new__(kind)
    error.args = arguments
    return error


class RequestError(TimbreError):
    """The request cannot be served as it is."""


class InvalidText(RequestError): ...


class InvalidSetting(RequestError): ...


class UnknownVoice(RequestError): ...


class UnknownLanguage(RequestError): ...


class NotCapable(RequestError): ...


class InvalidAudio(RequestError): ...


class InvalidVoice(RequestError): ...


class NameTaken(InvalidVoice): ...


class LibraryFull(InvalidVoice): ...


class Busy(TimbreError):
    """The queue is full."""

    def __init__(self, waiting: int, retry_after: float) -> None:
        seconds = max(1, round(retry_after))
        if waiting:
            super().__init__(
                "{waiting} requests are waiting already. Try again in about {seconds} s.",
                waiting=waiting,
                seconds=seconds,
            )
        else:
            super().__init__(
                "Every place is taken by speech that is still long. Try again in about "
                "{seconds} s.",
                seconds=seconds,
            )
        self.waiting = waiting
        self.retry_after = retry_after


class TooMany(Busy):
    """One visitor has more requests than allowed, however short the queue is."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(0, retry_after)
        self.args = (message if isinstance(message, Message) else Message(message),)


class CheckpointError(TimbreError):
    """A model folder that cannot be loaded."""


class OtherCodec(CheckpointError):
    """A model whose codec differs from that of the loaded models; it can only replace them."""


class NoLoudspeaker(TimbreError):
    """This machine cannot play sound."""


class NotSaved(TimbreError):
    """The disk is full, or the folder is not writable. No partial file is left."""


class EngineError(TimbreError):
    """The engine failed, not the request."""


class StepFailed(EngineError): ...


class OutOfMemory(EngineError): ...


class EngineClosed(EngineError): ...
