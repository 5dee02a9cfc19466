"""A take as the request of a program that makes it again, and the link to it.

`{page}` stands for the address of the page, which knows it. Pronunciations are the studio's alone.
"""

from __future__ import annotations

import json
import shlex
from typing import Any, Final

from studio.takes.take_store import Take

PATH: Final = "/v1/audio/speech"
SAMPLING: Final = {  # ours, and as the API has it
    "predictor_temperature": "subtalker_temperature",
    "predictor_top_k": "subtalker_top_k",
    "predictor_top_p": "subtalker_top_p",
}


def codes_of(take: Take) -> dict[str, str]:
    """What can be copied, by its label."""
    body = body_of(take)
    data = json.dumps(body, ensure_ascii=False)
    header = "Content-Type: application/json"
    python = (
        "import requests\n\n"
        f'sound = requests.post("{{page}}{PATH}", json={body!r})\n'
        "sound.raise_for_status()\n"
        'open("speech.wav", "wb").write(sound.content)\n'
    )
    curl = f"curl {{page}}{PATH} -H {shlex.quote(header)} -d {shlex.quote(data)} -o speech.wav"
    return {
        "Copy as curl": curl,
        "Copy as Python": python,
        "Copy link": f"{{page}}/#take={take.id}",
    }


def body_of(take: Take) -> dict[str, Any]:
    """The body of the request: what differs from the defaults."""
    settings = take.settings
    sampling = settings.get("sampling") or {}
    mood, _, strength = str(settings.get("mood") or "").partition(":")
    body = {
        "input": take.text,
        "voice": (take.voice_key or take.voice).removeprefix("#"),
        "language": settings.get("language"),
        "instructions": settings.get("instruct"),
        "seed": take.seed,
        "speed": settings.get("speed"),
        "mood": mood,
        "model": settings.get("model"),
        "blend_method": settings.get("interpolation"),
        "mood_strength": float(strength) if strength and float(strength) != 1 else None,
        **{SAMPLING.get(name, name): value for name, value in sampling.items()},
        "response_format": "wav",
    }
    kept = {name: value for name, value in body.items() if value not in (None, "", "auto")}
    return {"input": take.text, **kept}
