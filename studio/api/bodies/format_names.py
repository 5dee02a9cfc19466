"""Names of audio formats in other services, as in `mp3_44100_128`: kind, rate and bit rate.

Telephony has several names for G.711, ElevenLabs writes rates into the name, some send media types.
Knows no encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from studio.api.responses.encoding import Format, SampleRate

_OTHER_NAMES: Final[dict[str, Format]] = {
    "mulaw": "ulaw",
    "mu-law": "ulaw",
    "u-law": "ulaw",
    "g711_ulaw": "ulaw",
    "g711_mulaw": "ulaw",
    "pcm_ulaw": "ulaw",
    "pcm_mulaw": "ulaw",
    "pcmu": "ulaw",
    "a-law": "alaw",
    "g711_alaw": "alaw",
    "pcm_alaw": "alaw",
    "pcma": "alaw",
    "pcm16": "pcm",
    "pcm_s16le": "pcm",
    "linear16": "pcm",
    "ogg": "opus",
    "ogg_opus": "opus",
    "mpeg": "mp3",
    "aif": "aiff",
    "x-aiff": "aiff",
}
_FORMATS: Final[dict[str, Format]] = {name: name for name in get_args(Format)} | _OTHER_NAMES
_RATES: Final[dict[str, SampleRate]] = {str(rate): rate for rate in get_args(SampleRate)}


@dataclass(frozen=True)
class NamedFormat:
    """A format, with the rate and bit rate that its name includes; None: it includes none."""

    format: Format
    sample_rate: SampleRate | None = None
    bit_rate: int | None = None  # kbit/s


def read_format(name: str) -> NamedFormat:
    """Raises ValueError, which says what there is."""
    plain = name.strip().lower().removeprefix("audio/")
    if plain in _FORMATS:
        return NamedFormat(_FORMATS[plain])
    kind, *numbers = plain.split("_")
    named = kind in _FORMATS and 1 <= len(numbers) <= 2 and numbers[0] in _RATES
    if not named or not all(number.isascii() and number.isdecimal() for number in numbers):
        formats, rates = ", ".join(get_args(Format)), ", ".join(_RATES)
        raise ValueError(
            f"A format is one of {formats}, alone or with a rate of {rates}, "
            f"as in pcm_16000 or mp3_44100_128; not {name[:64]}."
        )
    bit_rate = int(numbers[1][:4]) if len(numbers) == 2 else None
    return NamedFormat(_FORMATS[kind], _RATES[numbers[0]], bit_rate)
