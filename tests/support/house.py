"""A studio that a test restarts, behind a connection that it cuts, and a page of it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import fastapi
from gradio.context import Context

from engine import Library
from engine.testing import Costs, FakeEngine
from studio.takes.take_store import Takes
from studio.ui.page import mount_page
from tests.support.browser import OpenPage, Server, Tap
from tests.support.cuttable import Wire


class House:
    """Servers on one data folder, and the wire that leads to one of them."""

    def __init__(self, folder: Path, stack: ExitStack, guests: bool = True) -> None:
        self.takes = Takes(folder / "takes")
        self._folder, self._stack, self._guests = folder, stack, guests
        self._engine: FakeEngine | None = None
        self.wire = Wire(self.start())
        stack.callback(self.wire.close)

    def start(self) -> str:
        application = fastapi.FastAPI()
        Context.id = 0  # as in a process of its own
        engine = self._stack.enter_context(FakeEngine(costs=Costs(step=0.02)))
        mount_page(
            application, engine, Library(self._folder / "voices"), self.takes, guests=self._guests
        )
        return self._stack.enter_context(Server(application))


def opened(open_page: OpenPage, url: str) -> Tap:
    page = open_page(url)
    tap = Tap(page, 0)
    page.wait_for_function("document.querySelector('.timbre-unseen :is(input, textarea)')?.value")
    return tap


def fill(page: Any, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).locator("visible=true").fill(text)
