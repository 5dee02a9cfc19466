"""Where speech is made slower than it plays, Speak offers when to begin as soon as it opens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import Library, SpeechRequest, SpeechStream
from engine.testing import FakeEngine
from studio.context import open_studio
from tests.support.browser import OpenPage, expect, serve_page, wait_until

CHOICES = {
    "Wait, then without a pause": "off",
    "Start now, with pauses between sentences": "pauses",
    "Start at once, with pauses anywhere": "pieces",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    """It is slow, and goes on saying so when it has spoken: an answer to the page's opening may
    come as late as that."""
    with FakeEngine() as engine:
        engine.loop.scheduler.step_cost.decode.anchor({1: 0.2})
        stats, slow = engine.stats, engine.stats().speed
        engine.stats = lambda: replace(stats(), speed=slow)  # type: ignore[method-assign]
        yield engine


@pytest.fixture(scope="module")
def url(
    browser: Any, engine: FakeEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    library = Library(Path(tmp_path_factory.mktemp("slow")) / "voices")
    with serve_page(open_studio(engine, library)) as url:
        yield url


def test_a_choice_is_offered_when_the_page_opens_and_is_followed(
    engine: FakeEngine, url: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, asked, submit = open_page(url), list[SpeechRequest](), engine.submit

    def noted(request: SpeechRequest) -> SpeechStream:
        asked.append(request)
        return submit(request)

    monkeypatch.setattr(engine, "submit", noted)
    choices = page.locator("#speak-start").get_by_role("radio")
    expect(choices).to_have_count(len(CHOICES))
    expect(page.get_by_label(next(iter(CHOICES)))).to_be_checked()
    page.get_by_label("Text", exact=True).fill("Good evening, everybody.")
    for number, (label, name) in enumerate(CHOICES.items(), 1):
        page.get_by_label(label).check()
        page.get_by_role("button", name="Speak", exact=True).click()
        wait_until(lambda number=number: len(asked) == number)
        assert asked[-1].early_start == name
