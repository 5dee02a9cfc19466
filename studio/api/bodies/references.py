"""Recordings to speak like, in the forms of other services, as `ref_audio` and `ref_text`.

Fish Speech and SGLang send `references: [{"audio" | "audio_path", "text"}]`, others a list of one
recording or an address. A recording comes with the request; nothing is fetched from an address or
read from a path. Knows no audio: `bodies.inline_reference` decodes it.
"""

from __future__ import annotations

from typing import Any, Final

from studio.api.bodies.inline_reference import is_data_url, refuse_address
from studio.api.errors import ApiError

_AUDIO: Final = ("audio", "audio_path", "ref_audio", "audio_url")
_TEXT: Final = ("text", "ref_text", "transcript")
_ADDRESSED: Final = ("audio_path", "audio_url")
_SHORTEST: Final = 64  # characters of a recording in base64; what is shorter is a name


def with_reference(values: dict[str, Any]) -> dict[str, Any]:
    """The fields with their recording as `ref_audio`. Raises ApiError."""
    values = dict(values)
    address, references = values.pop("ref_audio_url", None), values.pop("references", None)
    given = [name for name in ("ref_audio",) if values.get(name) is not None]
    if address is not None:
        given.append("ref_audio_url")
        values["ref_audio"] = _data_url(address, "ref_audio_url", addressed=True)
    if references:
        given.append("references")
        values |= _reference(references)
    if len(given) > 1:
        raise _refused(f"Send one of {' and '.join(given)}.", given[-1])
    for name in ("ref_audio", "ref_text"):
        if isinstance(values.get(name), list):
            values[name] = _only(values[name], name)
    return values


def _reference(references: Any) -> dict[str, Any]:
    one = _only(references, "references") if isinstance(references, list) else references
    if not isinstance(one, dict):
        raise _refused('references is a list of one {"audio": …, "text": …}.', "references")
    sent = [name for name in _AUDIO if one.get(name) is not None]
    if len(sent) != 1:
        raise _refused("A reference has one recording, as 'audio'.", "references")
    audio = _data_url(one[sent[0]], f"references.{sent[0]}", sent[0] in _ADDRESSED)
    text = next((one[name] for name in _TEXT if one.get(name) is not None), None)
    return {"ref_audio": audio, **({} if text is None else {"ref_text": text})}


def _data_url(audio: Any, param: str, addressed: bool = False) -> str:
    """A recording in base64 as a data: URL; paths and addresses are refused."""
    if not isinstance(audio, str):
        raise _refused("Send the recording as a data: URL or in base64.", param)
    if is_data_url(audio):
        return audio
    if addressed or "://" in audio or len(audio) < _SHORTEST:
        refuse_address(audio, param)
        raise _refused(
            "No file of the server is opened and no address is fetched. Send the recording as a "
            "data: URL (data:audio/wav;base64,…) in 'audio'.",
            param,
            "address_refused",
        )
    return f"data:;base64,{audio}"


def _only(values: list[Any], name: str) -> Any:
    if len(values) != 1:
        raise _refused(f"A voice is made from one recording: '{name}' has {len(values)}.", name)
    return values[0]


def _refused(message: str, param: str, code: str = "invalid_value") -> ApiError:
    return ApiError(400, message, code, param)
