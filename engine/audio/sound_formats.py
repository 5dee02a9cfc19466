"""The audio files that are written, by file ending: the one list of them.

Takes, exports, the command line and the API read this table. It loads neither numpy nor libsndfile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class SoundFormat:
    """A container and an encoding, as libsndfile calls them, and the media type of HTTP."""

    container: str
    encoding: str
    media_type: str


SOUND_FORMATS: Final[dict[str, SoundFormat]] = {
    "wav": SoundFormat("WAV", "PCM_16", "audio/wav"),
    "mp3": SoundFormat("MP3", "MPEG_LAYER_III", "audio/mpeg"),
    "ogg": SoundFormat("OGG", "VORBIS", "audio/ogg"),
    "flac": SoundFormat("FLAC", "PCM_16", "audio/flac"),
    "aiff": SoundFormat("AIFF", "PCM_16", "audio/aiff"),
}
