"""Fixtures of the studio's tests. A file whose studio or tab is another has its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import Library
from engine.testing import FakeEngine
from studio.context import Studio
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.view import EXAMPLE
from tests.support.browser import browser, chromium, open_page, open_pages, visitors
from tests.support.tab_makers import make_studio

__all__ = ["browser", "chromium", "open_page", "open_pages", "visitors"]


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with FakeEngine() as engine:
        yield engine


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "voices")


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    made = make_studio(tmp_path)
    with made.engine:
        yield made


@pytest.fixture
def tab(studio: Studio) -> ScriptTab:
    return ScriptTab(studio)


@pytest.fixture
def number(tab: ScriptTab) -> str:
    """The number of the example script, as the Script tab has read it."""
    return tab.store.read("", EXAMPLE).number
