"""Which of Gradio's routes a visitor may reach, and how much may be sent to each.

Gradio serves more than this page uses: recordings converted by ffmpeg, code written by a model, a
proxy, a dashboard. What is not listed here does not exist. A test holds the list against the routes
of the Gradio that is installed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from studio.imports.projects.project_uploads import MOST_FILE

UPLOAD_BYTES: Final = 101 << 20  # a file of the largest size and its form
EVENT_BYTES: Final = 8 << 20  # the values of a tab: the longest script is 2,000,000 characters
EVENT_SEPARATORS: Final = 200_000
NOTE_BYTES: Final = 16 << 10


@dataclass(frozen=True)
class Route:
    """`path` is a pattern of the whole path; `body` the most bytes that may be sent to it.

    `quota`: they count for what an address may send in an hour, as Gradio keeps files that long.
    """

    methods: tuple[str, ...]
    path: str
    body: int = 0
    quota: bool = True

    def matches(self, method: str, path: str) -> bool:
        return method in self.methods and re.fullmatch(self.path, path) is not None


READ: Final = ("GET", "HEAD")
OPEN: Final = (
    Route(READ, r"/|/config/?|/theme\.css|/favicon\.ico|/robots\.txt|/manifest\.json"),
    Route(READ, r"/(static|assets|svelte)/.*|/pwa_icon(/.*)?"),
    Route(READ, r"/gradio_api/(info|user|login_check|token|app_id|openapi\.json)/?"),
    Route(READ, r"/gradio_api/(startup-events|theme\.css|queue/data|queue/status)"),
    Route(READ, r"/gradio_api/(upload_progress|heartbeat/[^/]+)"),
    Route(READ, r"/gradio_api/file[=/].+"),
    Route(READ, r"/gradio_api/call/(v2/)?[^/]+/[^/]+"),
    Route(("POST",), r"/gradio_api/(queue/join|component_server/?)", EVENT_BYTES),
    Route(("POST",), r"/gradio_api/(api|run|call|call/v2)/[^/]+/?", EVENT_BYTES),
    Route(("POST",), r"/gradio_api/(cancel|reset/?)", NOTE_BYTES),
    Route(("POST",), r"/gradio_api/upload", UPLOAD_BYTES),
    Route(("POST",), r"/login/?", NOTE_BYTES),
    Route(READ, r"/logout"),
    Route(READ, r"/timbre/.+"),  # live audio and downloads, beside the page
    # Few lie there, for minutes: a second try of a large one must not lock its sender out.
    Route(("POST",), r"/timbre/projects", MOST_FILE, quota=False),
    Route(("POST",), r"/timbre/live/[^/]+/leave"),
)
LOGIN: Final = re.compile(r"/login/?")
