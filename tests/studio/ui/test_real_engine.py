"""Press Speak, hear it: the page on the real engine with the embedded model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine import SAMPLE_RATE, Library, open_engine
from studio.cli.app_context import MINI
from studio.context import open_studio
from studio.takes.take_store import Takes
from tests.support.browser import OpenPage, Tap, play_through, serve_page
from tests.support.player_stage import as_heard
from tests.support.programs import CACHE

LATE = 3000  # ms; some 100 on a machine at rest


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory) -> Takes:
    return Takes(tmp_path_factory.mktemp("real") / "takes")


@pytest.fixture(scope="module")
def url(browser: Any, takes: Takes, tmp_path_factory: Any) -> Iterator[str]:
    library = Library(tmp_path_factory.mktemp("voices"))
    with (
        open_engine([MINI], "cpu", cache=CACHE) as engine,
        serve_page(open_studio(engine, library, takes)) as url,
    ):
        yield url


def test_a_press_is_heard_as_it_was_made(
    open_page: OpenPage, url: str, takes: Takes, capsys: pytest.CaptureFixture[str]
) -> None:
    page = open_page(url)
    tap = Tap(page, 0)
    page.get_by_role("button", name="Hear a welcome").wait_for()
    page.get_by_label("Text", exact=True).fill("Good evening.")
    firsts = list[float]()
    while len(firsts) < 2 or (min(firsts) >= LATE and len(firsts) < 6):
        play_through([tap], lambda _: page.keyboard.press("Control+Enter"))
        firsts.append(tap.get("now.first"))
        kept = takes.pcm(takes.search()[0].id)
        assert tap.state()["report"]["played"] == len(kept)
        assert np.array_equal(tap.sound(), as_heard(np.trim_zeros(kept)))
        assert 0.6 < len(kept) / SAMPLE_RATE < 2.5  # two words, and it knows where they end
    with capsys.disabled():
        print(f"\npress to first sound on the real engine: {min(firsts):.0f} ms", end="")
    assert min(firsts) < LATE
