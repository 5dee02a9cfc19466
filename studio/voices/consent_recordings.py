"""Recordings in which somebody agrees that a voice is copied, as they are uploaded by programs.

They lie in a hidden folder of the library, so each visitor has their own. A voice that is made with
one takes a copy of it along: it stays with the voice when the upload is deleted, and goes with it.
"""

from __future__ import annotations

import io
import json
import re
import secrets
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import soundfile

from engine import (
    SAMPLE_RATE,
    InvalidVoice,
    Library,
    LibraryFull,
    SavedVoice,
    UnknownVoice,
    Waveform,
    explain_write_errors,
    write_atomic,
)

FOLDER: Final = ".consents"
MOST: Final = 200  # recordings of one library
SOUND_BYTES: Final = 4 << 20  # a minute of 24 kHz has 2.9 MB before it is packed
CARD_BYTES: Final = 4 << 10
CARD, SOUND = "consent.json", "consent.flac"  # beside a voice
_ID = re.compile(r"cons_[0-9a-f]{24}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}")
_NAME = re.compile(r"[^\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]{1,200}")


@dataclass(frozen=True)
class ConsentRecording:
    id: str
    name: str
    language: str  # BCP 47, as en-US
    created_at: int  # seconds since 1970


class ConsentRecordings:
    """The recordings of a library."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def add(self, name: str, language: str, waveform: Waveform) -> ConsentRecording:
        """Keep a recording that was checked already. Raises InvalidVoice or LibraryFull."""
        made = ConsentRecording(
            f"cons_{secrets.token_hex(12)}", _name(name), _language(language), int(time.time())
        )
        if len(self.list()) >= MOST:
            raise LibraryFull(
                "There are {most} consent recordings already. Delete one first.", most=MOST
            )
        place = self._place(made.id)
        with explain_write_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place.with_suffix(".flac"), _packed(waveform))
        write_atomic(place, _card(made))
        return made

    def list(self) -> list[ConsentRecording]:
        """All of them, the newest first."""
        with suppress(OSError):
            found = [self._read(path) for path in self._folder.glob("cons_*.json")]
            there = [each for each in found if each]
            return sorted(there, key=lambda each: (-each.created_at, each.id))
        return []

    def get(self, consent_id: str) -> ConsentRecording:
        """Raises UnknownVoice."""
        found = self._read(self._place(consent_id)) if _ID.fullmatch(consent_id) else None
        if found is None:
            raise UnknownVoice(
                "There is no consent recording '{consent_id}'.", consent_id=consent_id[:80]
            )
        return found

    def rename(self, consent_id: str, name: str) -> ConsentRecording:
        renamed = replace(self.get(consent_id), name=_name(name))
        write_atomic(self._place(consent_id), _card(renamed))
        return renamed

    def delete(self, consent_id: str) -> None:
        place = self._place(self.get(consent_id).id)
        with explain_write_errors(place):
            place.unlink(missing_ok=True)
            place.with_suffix(".flac").unlink(missing_ok=True)

    def files(self, consent_id: str) -> dict[str, bytes]:
        """What a voice that is made with it takes along."""
        recording = self.get(consent_id)
        try:
            sound = self._place(recording.id).with_suffix(".flac").read_bytes()
        except OSError:
            raise UnknownVoice(
                "The consent recording '{name}' is gone. Upload it again.", name=recording.name
            ) from None
        return {CARD: _card(recording), SOUND: sound}

    @property
    def _folder(self) -> Path:
        return self._library.folder / FOLDER

    def _place(self, consent_id: str) -> Path:
        return self._folder / f"{consent_id}.json"

    def _read(self, path: Path) -> ConsentRecording | None:
        """None for what is no card: it is left alone."""
        if path.is_symlink() or not path.is_file() or path.stat().st_size > CARD_BYTES:
            return None
        with suppress(OSError):
            read = _parsed(path.read_bytes())
            return read if read and read.id == path.stem else None
        return None


def consent_of(library: Library, voice: SavedVoice) -> ConsentRecording | None:
    """The consent recording that a voice was made with."""
    card = library.file_beside(voice.id, CARD, CARD_BYTES)
    return _parsed(card) if card else None


def consent_sound(library: Library, voice: SavedVoice) -> bytes | None:
    """The same as a FLAC file."""
    return library.file_beside(voice.id, SOUND, SOUND_BYTES)


def _packed(waveform: Waveform) -> bytes:
    """The recording in our file format, whatever was uploaded."""
    buffer = io.BytesIO()
    soundfile.write(buffer, waveform, SAMPLE_RATE, format="FLAC", subtype="PCM_16")
    return buffer.getvalue()


def _card(consent_recording: ConsentRecording) -> bytes:
    return json.dumps(asdict(consent_recording), ensure_ascii=False).encode()


def _parsed(card: bytes) -> ConsentRecording | None:
    try:
        fields: dict[str, Any] = json.loads(card)
        read = ConsentRecording(**fields)
        return ConsentRecording(
            str(read.id), _name(read.name), _language(read.language), int(read.created_at)
        )
    except (ValueError, TypeError, RecursionError, InvalidVoice):
        return None


def _name(name: str) -> str:
    plain = " ".join(str(name).split())
    if not _NAME.fullmatch(plain):
        raise InvalidVoice("name: use 1 to 200 letters, digits or signs that can be seen.")
    return plain


def _language(language: str) -> str:
    plain = str(language).strip()
    if not _LANGUAGE.fullmatch(plain):
        raise InvalidVoice("language: write a language tag like en-US.")
    return plain
