"""A visit to the page over HTTP, in a process of its own: Gradio leaves loops and sockets behind.

Serves the page on an engine without a model, or takes the one at a given address, calls its
endpoints through Gradio's client, and prints what came back as JSON.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from fastapi import FastAPI
from gradio_client import Client, handle_file

from engine import Library, Preset, SpeechRequest
from engine.testing import FakeEngine
from studio.context import open_studio
from studio.server import serving
from studio.ui import page

TEXT = "Good evening."


def visit(data: Path, url: str = "") -> dict[str, Any]:
    with FakeEngine() as engine:
        url = url or served(engine, data)
        client = Client(url, verbose=False, download_files=str(data))
        expected = engine.submit(SpeechRequest(TEXT, Preset("ryan"), seed=3)).collect()
        requested = {"text": TEXT, "voice": "ryan", "seed": "3"}
        endpoints = client.view_api(return_format="dict")["named_endpoints"]
        return {
            "expected": expected.tobytes().hex(),
            "file": _samples(client.predict(**requested, api_name="/speak")),
            "others": {
                "no voice": _samples(
                    client.predict(text=TEXT, voice=None, seed=None, api_name="/speak")
                ),
                "alloy": _samples(
                    client.predict(**{**requested, "voice": "alloy"}, api_name="/speak")
                ),
                "alloy:0.5,nova:0.5": _samples(
                    client.predict(
                        **{**requested, "voice": "alloy:0.5,nova:0.5"}, api_name="/speak"
                    )
                ),
            },
            "stream": _joined(client.submit(TEXT, "ryan", api_name="/stream")),
            "voices": client.predict(api_name="/voices"),
            "script": _script(client.predict(text=f"{TEXT} [pause 1s] {TEXT}", api_name="/script")),
            "music": _script(
                client.predict(text=f"{TEXT} {TEXT}", music=_music(data), api_name="/script")
            ),
            "endpoints": endpoints,
            "refusal": _refusal(client),
            "opening": _opening(client),
        }


def served(engine: FakeEngine, data: Path) -> str:
    application, address = FastAPI(), serving.listen("127.0.0.1", 0)
    page.mount_page(application, open_studio(engine, Library(data / "voices")))
    threading.Thread(target=serving.serve, args=(application, address), daemon=True).start()
    return f"http://127.0.0.1:{address.getsockname()[1]}"


def _samples(file: Any) -> str:
    pcm, _ = soundfile.read(file, dtype="int16")
    return str(pcm.tobytes().hex())


def _script(answer: Any) -> dict[str, Any]:
    sound, captions = answer
    text = Path(captions).read_text(encoding="utf-8")
    return {"seconds": soundfile.info(sound).duration, "captions": text.count("-->")}


def _music(folder: Path) -> Any:
    """Two seconds of a tone."""
    path = folder / "tone.wav"
    tone = np.sin(np.arange(2 * 44_100) * 2 * np.pi * 220 / 44_100) / 4
    soundfile.write(path, tone, 44_100)
    return handle_file(str(path))


def _joined(job: Any) -> dict[str, Any]:
    chunks = list(job)
    pcm = b"".join(base64.b64decode(chunk["pcm"]) for chunk in chunks)
    return {"indexes": [chunk["index"] for chunk in chunks], "samples": len(pcm) // 2}


def _opening(client: Client) -> list[bool]:
    """Whether each event that a page opens with is queued."""
    events = client.config["dependencies"]
    return [each["queue"] for each in events if "load" in (name for _, name in each["targets"])]


def _refusal(client: Client) -> str:
    try:
        client.predict(text="", api_name="/speak")
    except Exception as error:
        return str(error)
    return ""


if __name__ == "__main__":
    folder, *addresses = sys.argv[1:]
    printed = json.dumps(visit(Path(folder), *addresses), default=str)
    print(printed, file=sys.__stdout__)  # what a server prints is in its log
