"""Attacks by voices: uploads, imports, blends and batches that are wrong, large or many.

Each is a coroutine that does its worst once. Knows docs/api.md and the page's import of a voice.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import random
import secrets
import struct
from collections.abc import Callable
from typing import Any, Final

import httpx
import numpy as np
import soundfile

from bench.stress.target import Tally, Target

VOICES: Final = "/v1/audio/voices"
BLEND: Final = "/v1/audio/voices/blend"
EMBEDDINGS: Final = "/v1/audio/embeddings"
BATCH: Final = "/v1/audio/speech/batch"
UPLOAD: Final = "/gradio_api/upload"
MIB: Final = 1 << 20
RATE: Final = 24_000
TAKEN: Final = (200, 409)  # statuses of uploads of one name


async def name_races(target: Target, tally: Tally) -> None:
    """Four uploads of one name at once: one voice at most, and the others are told 409."""
    name = f"Race {random.randrange(50)}"
    numbers = json.dumps([0.1] * target.width)
    form = {"name": name, "consent": "true", "embedding": numbers}
    files = {field: (None, value) for field, value in form.items()}
    async with target.http() as http:
        answers = await asyncio.gather(*(http.post(VOICES, files=files) for _ in range(4)))
        for answer in answers:
            tally.note(answer.status_code)
            if answer.status_code not in TAKEN:
                tally.fault(f"an upload of a name that others upload: {answer.text[:200]}")
        if sum(answer.status_code == 200 for answer in answers) > 1:
            tally.fault("one name was given twice")
        if random.random() < 0.5:
            tally.note((await http.delete(f"{VOICES}/{name}")).status_code)


async def upload_floods(target: Target, tally: Tally) -> None:
    """Eight recordings at once: bombs, lies, noise, a minute of sound, forms without an end."""
    async with target.http() as http:
        sent = [_upload(http, tally, random.choice(RECORDINGS)()) for _ in range(7)]
        await asyncio.gather(*sent, _endless_form(target, tally))
        if target.cookie:
            file = {"files": ("x.wav", secrets.token_bytes(20 * MIB))}
            tally.note((await http.post(UPLOAD, files=file)).status_code)


async def crafted_imports(target: Target, tally: Tally) -> None:
    """Voice files that lie, imported on the page; without a page they are sent as recordings."""
    data = random.choice(list(crafted_voices(target.width).values()))
    async with target.http() as http:
        form = {"name": "x", "consent": "true"}
        answer = await http.post(VOICES, data=form, files={"audio": ("x.wav", data)})
        tally.note(answer.status_code)
        if answer.status_code == 200:
            tally.fault("a crafted file became a voice")
        if target.imports is not None:
            await _import(http, target.imports, data, tally)
            listed = await http.get(VOICES)
            tally.note(f"list {listed.status_code}")
            if listed.status_code != 200:
                tally.fault(f"the list of voices after an import: {listed.status_code}")


async def bad_blends(target: Target, tally: Tally) -> None:
    """Blends of nobody, of too many, with weights that are none."""
    for body in BLENDS:
        status = await target.ask(target.post(BLEND, json.dumps(body).encode()))
        tally.note(status)
        if status == 200:
            tally.fault(f"blended {json.dumps(body)[:200]}")


async def bad_batches(target: Target, tally: Tally) -> None:
    """A batch of wrong items with one that is right; one of things that are no items; too many."""
    items: list[Any] = [random.choice(ITEMS) for _ in range(31)]
    items.append({"input": "Hi.", "max_new_tokens": 5})
    async with target.http() as http:
        for batch in (items, [*items[:-2], 1, None]):
            answer = await http.post(BATCH, json={"items": batch})
            tally.note(answer.status_code)
            if answer.status_code == 200 and answer.json()["failed"] < 31:
                tally.fault(f"a wrong item was spoken: {answer.text[:200]}")
        too_many = await http.post(BATCH, json={"items": items * 20})
        tally.note(too_many.status_code)
        if too_many.status_code == 200:
            tally.fault("a batch of 640 items was taken")


def crafted_voices(width: int) -> dict[str, bytes]:
    """Voice files (safetensors with a card) of which none may be imported."""
    card = {"name": "Crafted", "kind": "clone", "width": width, "consent": True}
    numbers = np.full(width, 0.1, "<f4").tobytes()
    cards: dict[str, dict[str, Any]] = {
        "no consent": {"consent": False},
        "created yesterday": {"created": "yesterday"},
        "created in a million years": {"created": "1e18"},
        "a path as its name": {"name": "../../evil", "id": "../../evil"},
        "ten thousand tags": {"tags": ["x"] * 10_000},
        "a width of its own": {"width": 10**9},
        "a name that nobody sees": {"name": "\u200b"},
    }
    files = {what: _voice_file({**card, **wrong}, numbers) for what, wrong in cards.items()}
    return {
        **files,
        "not a number": _voice_file(card, np.full(width, np.nan, "<f4").tobytes()),
        "a header of 2^63": struct.pack("<Q", 2**63) + b"{}",
        "a deep header": struct.pack("<Q", 300_001) + b'{"a":' * 60_000 + b"1",
        "a pickle": b"\x80\x04\x95" + bytes(1000),
        "two megabytes": _voice_file(card, numbers) + bytes(2 * MIB),
    }


def _voice_file(card: dict[str, Any], numbers: bytes) -> bytes:
    vector = {"dtype": "F32", "shape": [len(numbers) // 4], "data_offsets": [0, len(numbers)]}
    header = json.dumps({"__metadata__": {"timbre_voice": json.dumps(card)}, "vector": vector})
    return struct.pack("<Q", len(header)) + header.encode() + numbers


async def _import(http: httpx.AsyncClient, event: int, data: bytes, tally: Tally) -> None:
    """One event of the page with an uploaded file, as a browser sends it."""
    stored = await http.post(UPLOAD, files={"files": ("x.voice.safetensors", data)})
    if stored.status_code != 200:
        return tally.note(f"page upload {stored.status_code}")
    (path,) = stored.json()
    file = {"path": path, "orig_name": "x.voice.safetensors", "meta": {"_type": "gradio.FileData"}}
    session = secrets.token_hex(8)
    body = {"data": [file], "fn_index": event, "session_hash": session, "event_data": None}
    joined = await http.post("/gradio_api/queue/join", json=body)
    if joined.status_code != 200:
        return tally.note(f"event {joined.status_code}")
    asking = http.stream("GET", "/gradio_api/queue/data", params={"session_hash": session})
    async with asking as answer:
        async for line in answer.aiter_lines():
            if '"process_completed"' in line:
                outcome = json.loads(line.removeprefix("data:"))
                return tally.note("import answered" if outcome["success"] else "import failed")
    return tally.note("import unanswered")


async def _upload(http: httpx.AsyncClient, tally: Tally, recording: bytes) -> None:
    path = random.choice((VOICES, EMBEDDINGS))
    form = {"consent": "true"}
    form |= {"name": f"Flood {random.randrange(40)}"} if path == VOICES else {}
    try:
        answer = await http.post(path, data=form, files={"audio": ("x.wav", recording)})
    except httpx.HTTPError as error:  # refused while it was sent
        return tally.note(type(error).__name__)
    return tally.note(answer.status_code)


async def _endless_form(target: Target, tally: Tally) -> None:
    """A thousand parts and no end."""
    part = b'--b\r\nContent-Disposition: form-data; name="x%d"\r\n\r\ny\r\n'
    body = b"".join(part % number for number in range(1000))
    tally.note(await target.ask(target.post(VOICES, body, "multipart/form-data; boundary=b")))


def _noise(seconds: float, loudness: float = 0.1) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng().normal(0, loudness, int(seconds * RATE)).astype(np.float32)


def _sound(wave: np.ndarray[Any, np.dtype[np.float32]], format: str = "WAV") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, wave, RATE, format=format)
    return file.getvalue()


def _lie(at: int, value: int) -> bytes:
    """A WAV with another number in its header."""
    sound = _sound(_noise(3))
    return sound[:at] + struct.pack("<I", value) + sound[at + 4 :]


RECORDINGS: Final[tuple[Callable[[], bytes], ...]] = (
    lambda: _sound(_noise(3)),  # new each time, since equal ones are encoded once
    lambda: _sound(_noise(59)),
    lambda: _sound(_noise(300, 0.0), "FLAC"),  # a bomb: silence is small
    lambda: _sound(_noise(20), "FLAC")[:-1000],
    lambda: _lie(24, 1),  # one sample a second
    lambda: _lie(24, 2**31),
    lambda: _lie(40, 2**32 - 1),
    lambda: secrets.token_bytes(9 * MIB),
    lambda: secrets.token_bytes(11 * MIB),
)
BLENDS: Final[tuple[Any, ...]] = (
    {"name": "x", "voices": [{"voice": f"nobody {number}", "weight": 1} for number in range(500)]},
    {"name": "x", "voices": [{"voice": "clara", "weight": 1}] * 8000},
    {"name": "x", "voices": [{"voice": "clara", "weight": math.nan}]},
    {"name": "x", "voices": [{"voice": "clara", "weight": 1e308}] * 2},
    {"name": "x" * 100_000, "voices": [{"voice": "clara", "weight": 1}]},
    {"name": "x", "voices": "clara:" + "9" * 5000 + ",robert"},
    {"name": "x", "voices": "a:1," * 20_000},
)
ITEMS: Final[tuple[Any, ...]] = (
    {},
    {"input": ""},
    {"input": 7},
    {"input": "Hi.", "voice": "nobody"},
    {"input": "Hi.", "temperature": -1},
    {"input": "\u200b"},
    {"input": "Hi.", "speaker_embedding": [0.1] * 5},
    {"input": "Hi.", "ref_audio": "file:///etc/passwd", "ref_text": "x"},
    {"input": "Hi.", "voice": {"id": ["x"]}},
)
ATTACKS: Final = (name_races, upload_floods, crafted_imports, bad_blends, bad_batches)
