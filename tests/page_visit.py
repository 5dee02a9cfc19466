"""A visit to the page over HTTP, in a process of its own: Gradio leaves loops and sockets behind.

Serves the page on an engine without a model, presses Speak through Gradio's client, and prints
what came back as JSON.
"""

from __future__ import annotations

import json
import sys
import threading

from fastapi import FastAPI
from gradio_client import Client

from engine import FakeEngine, Library
from studio import page


def visit(data: str) -> list[tuple[object, ...]]:
    with FakeEngine() as engine:
        application, address = FastAPI(), page.listen("127.0.0.1", 0)
        page.mount_page(application, engine, Library(data))
        threading.Thread(target=page.serve, args=(application, address), daemon=True).start()
        client = Client(f"http://127.0.0.1:{address.getsockname()[1]}", verbose=False)
        job = client.submit("Good evening.", "ryan", "auto", "3", "", api_name="/speak")
        job.result(timeout=30)
        return job.outputs()


if __name__ == "__main__":
    print(json.dumps(visit(sys.argv[1]), default=str))
