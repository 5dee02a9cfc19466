"""Twenty-four faults in one session of work: nothing typed and nothing spoken is lost.

Each fault comes at four moments: while a text is written, just after Speak was pressed, while it is
heard, and when it is finished.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.support.browser import FULL_STORAGE, OpenPage, Tap, expect, open_tab, wait_until
from tests.support.cuttable import Servers, fill, opened

pytestmark = pytest.mark.slow
WORDS = "and the words go on for a while " * 6
MOMENTS = ("writing", "asked", "heard", "finished")
EMPTY = """
() => Object.keys(localStorage)
  .filter((key) => key.startsWith('full-'))
  .forEach((key) => localStorage.removeItem(key))
"""
KEPT = "(text) => Object.values(sessionStorage).some((draft) => draft.includes(text))"
PRESSED = "now && now.id !== player.before"


@pytest.fixture
def servers(browser: Any, tmp_path: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(tmp_path, stack)


class Work:
    """Somebody who writes and listens, and what happens meanwhile."""

    def __init__(self, servers: Servers, tap: Tap) -> None:
        self.servers, self.tap, self.page = servers, tap, tap.page

    # The faults.

    def cut(self) -> None:
        self.servers.wire.cut()
        self.page.wait_for_timeout(1500)
        self.servers.wire.mend()

    def restart(self) -> None:
        self.servers.wire.cut()
        self.servers.wire.mend(self.servers.start())

    def reload(self) -> None:
        self.page.reload()

    def full(self) -> None:
        """The browser's storage for good is full, and the page is loaded again."""
        self.page.evaluate(FULL_STORAGE)
        self.page.reload()
        self.page.evaluate(EMPTY)

    def tab(self) -> None:
        """A second tab of the same browser writes and speaks something else."""
        other = self.page.context.new_page()
        other.goto(self.servers.wire.url)
        tap = Tap(other, 0)
        fill(other, "Text", "From the other tab.")
        other.get_by_role("button", name="Speak", exact=True).click()
        tap.wait("now?.made")
        other.close()

    def slow(self) -> None:
        self.servers.wire.delay = 0.2
        self.page.wait_for_timeout(1500)
        self.servers.wire.delay = 0.0

    # The work.

    def speak(self) -> None:
        self.tap.page.evaluate("timbre.players[0].before = timbre.players[0].now?.id")
        self.page.get_by_role("button", name="Speak", exact=True).click()

    def until(self, moment: str, text: str) -> int:
        """Work on a text up to a moment; the samples that were heard by then."""
        fill(self.page, "Text", text)
        self.page.wait_for_function(KEPT, arg=text)  # some frames later
        if moment == "writing":
            return 0
        self.speak()
        if moment == "asked":
            return 0
        self.tap.wait(f"{PRESSED} && now.report?.played > 4800")
        if moment == "finished":
            self.tap.wait(f"{PRESSED} && now.made")
        return int(self.tap.state()["report"]["played"])

    def recovered(self, text: str, heard: int) -> None:
        """Page and text are there again, and what was heard is kept; the rest is spoken now."""
        self.page.locator(".timbre-connection").wait_for(state="hidden")
        self.page.wait_for_function("window.timbre?.players[0]?.speaker.node")
        expect(self.page.get_by_label("Text", exact=True).first).to_have_value(text)
        takes = self.servers.takes
        if heard:
            wait_until(lambda: takes.search(text))
            assert len(takes.pcm(takes.search(text)[0].id)) >= heard
        with suppress(AssertionError):
            expect(self.page.locator(".timbre-empty, .timbre-history").first).to_be_attached()
        if not any(not take.stopped for take in takes.search(text)):
            self.speak()
            wait_until(lambda: any(not take.stopped for take in takes.search(text)))


FAULTS: tuple[Callable[[Work], None], ...] = (
    Work.cut,
    Work.restart,
    Work.reload,
    Work.full,
    Work.tab,
    Work.slow,
)


def test_twenty_four_faults_lose_nothing(open_page: OpenPage, servers: Servers) -> None:
    work = Work(servers, opened(open_page, servers.wire.url))
    plan = [*itertools.product(MOMENTS, FAULTS)]
    assert len(plan) == 24
    for number, (moment, fault) in enumerate(plan):
        text = f"Number {number:02}: {WORDS}".strip()
        print(number, moment, fault.__name__, flush=True)  # where it stands, if it fails
        heard = work.until(moment, text)
        fault(work)
        work.recovered(text, heard)
    every = servers.takes.search()
    assert len({take.owner for take in every}) == 1  # all are this browser's
    whole = [take.text for take in every if not take.stopped]
    assert all(
        any(text.startswith(f"Number {number:02}:") for text in whole) for number in range(24)
    )
    work.page.reload()
    open_tab(work.page, "Library")
    rows = work.page.locator(".timbre-history:visible [data-do=pick]")
    rows.first.wait_for()
    more = work.page.get_by_role("button", name="Show more")
    while more.is_visible():
        shown = rows.count()
        more.click()
        expect(rows).not_to_have_count(shown)
    listed = {row.get_attribute("data-take") for row in rows.all()}
    assert listed == {take.id for take in every}


def test_a_full_disk_leaves_the_sound_in_the_page(
    open_page: OpenPage, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(servers, opened(open_page, servers.wire.url))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(servers.takes, "add", full)
    fill(work.page, "Text", WORDS)
    work.speak()
    work.tap.wait("now?.made && now.over")
    bar = work.page.get_by_role("region", name="Player")
    expect(bar.locator(".state")).to_have_text(re.compile("could not be saved"))
    with work.page.expect_download() as download:
        bar.get_by_label("Download").click()
    pcm, _ = soundfile.read(download.value.path(), dtype="int16")
    assert len(pcm) == work.tap.get("received")
    assert np.abs(pcm).max() > 0
    expect(work.page.get_by_label("Text", exact=True).first).to_have_value(WORDS)
