"""The trainings of the Clone tab in a browser: what is told is of the one that is chosen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from engine import SAMPLE_RATE, Library
from engine.testing import FakeEngine
from studio.context import open_studio
from studio.ui.tabs.own_voice import tab as own_voice
from studio.ui.tabs.own_voice.tab import OwnVoiceTab
from studio.voices.voice_training import VoiceTraining
from tests.support.browser import (
    PATIENCE,
    Held,
    OpenPage,
    expect,
    open_tab,
    serve_page,
    until_answered,
    until_silent,
    wait_until,
)
from training.voice.job import Job, JobFolder, Status

NAMES, IDS = ("Ann", "Ben", "Cid"), ("00000000000a", "00000000000b", "00000000000c")
SHOWN = """() => {
  window.shown = [];
  const status = document.querySelector('#own-voice-status');
  const note = () => window.shown.push(status.textContent.includes('of Ann'));
  new MutationObserver(note).observe(status, { childList: true, subtree: true });
}"""


@pytest.fixture
def url(browser: Any, tmp_path: Path) -> Iterator[str]:
    trainings = VoiceTraining(tmp_path)
    for number, name in zip(IDS, NAMES, strict=True):
        folder = JobFolder(trainings.data / "training" / number)
        folder.write(Job(name=name, model="mini", consent=f"{name}, my own voice"))
        folder.tell(Status(phase="stopped", text=f"That of {name}"))
    library = Library(tmp_path / "voices")
    with (
        FakeEngine() as engine,
        serve_page(open_studio(engine, library, trainings=trainings)) as url,
    ):
        yield url


def choose(page: Any, name: str) -> None:
    page.get_by_label("Training", exact=True).click()
    page.get_by_role("option", name=name).click()


def test_a_look_at_a_training_that_was_left_shows_nothing(
    open_page: OpenPage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, may_answer, told = threading.Event(), threading.Event(), OwnVoiceTab.told
    looks, hold = list[str](), list[str]()

    def later(tab: OwnVoiceTab, training: str | None) -> str:
        if training in hold:
            asked.set()
            assert may_answer.wait(PATIENCE)
        looks.append(training or "")
        return told(tab, training)

    monkeypatch.setattr(OwnVoiceTab, "told", later)
    monkeypatch.setattr(own_voice, "REST", 0.5)
    page = open_page(url)
    open_tab(page, "Clone")
    page.get_by_text("Train a better one").click()
    status = page.locator("#own-voice-status")
    choose(page, "Ann")
    expect(status).to_contain_text("of Ann")
    page.evaluate(SHOWN)
    hold.append(IDS[0])
    wait_until(asked.is_set)
    with page.expect_response(lambda answer: IDS[1] in (answer.request.post_data or "")):
        choose(page, "Ben")
    page.wait_for_timeout(1000)  # Ben's look could be answered now, before Ann's
    before = looks.count(IDS[0])
    may_answer.set()
    wait_until(lambda: looks.count(IDS[0]) > before)
    expect(status).to_contain_text("of Ben")
    wait_until(lambda: looks[-3:] == [IDS[1]] * 3)
    shown = page.evaluate("window.shown")
    assert shown == sorted(shown, reverse=True)  # Ann's, then Ben's


def test_what_can_be_heard_is_shown_as_soon_as_a_line_is_taken(
    open_page: OpenPage, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next look at a training that rests is long after."""
    samples = JobFolder(VoiceTraining(tmp_path).data / "training" / IDS[0]).samples
    samples.mkdir()

    def learn(epoch: int) -> None:
        soundfile.write(samples / f"{epoch}-0.wav", np.zeros(2400), SAMPLE_RATE)

    learn(1)
    monkeypatch.setattr(own_voice, "REST", 1000.0)
    line = SimpleNamespace(file="0001.wav", source="one.wav", text="No")
    monkeypatch.setattr(VoiceTraining, "mendable", lambda *_: [line])
    monkeypatch.setattr(VoiceTraining, "mend", lambda *_: learn(2))
    page = open_page(url)
    open_tab(page, "Clone")
    page.get_by_text("Train a better one").click()
    choose(page, "Ann")
    page.get_by_text("Mend lines that are left out").click()
    requests = list[str]()
    page.on("request", lambda request: requests.append(request.url))
    page.get_by_role("button", name="Take it", exact=True).click()
    wait_until((samples / "2-0.wav").exists)
    until_silent(page, requests)
    page.get_by_label("Hear an epoch").click()
    page.get_by_role("option", name="2", exact=True).wait_for()


def test_why_nothing_is_trained_is_told_where_it_is_seen(open_page: OpenPage, url: str) -> None:
    page = open_page(url, viewport={"width": 1280, "height": 500})
    open_tab(page, "Clone")
    page.get_by_text("Train a better one").click()
    page.locator("#own-voice").get_by_role("button", name="Train", exact=True).click()
    refused = page.locator("#own-voice").get_by_text("Record a voice or drop a file first.")
    expect(refused).to_be_in_viewport()


def test_what_deleting_asks_is_asked_again_once_something_else_was_told(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(url)
    open_tab(page, "Clone")
    page.get_by_text("Train a better one").click()
    choose(page, "Ann")
    expect(page.locator("#own-voice-status")).to_contain_text("of Ann")
    own, answer = page.locator("#own-voice"), page.locator("#own-voice-answer")
    delete, train = (
        own.get_by_role("button", name=name, exact=True) for name in ("Delete", "Train")
    )
    delete.click()
    expect(answer).to_contain_text("Press Delete again")
    train.click()
    expect(answer).to_contain_text("Record a voice or drop a file first")
    delete.click()
    expect(answer).to_contain_text("Press Delete again")
    delete.click()
    expect(answer).to_contain_text("Deleted")


def test_a_training_that_is_looked_at_while_another_one_goes_stays_chosen(
    open_page: OpenPage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleting = Held(monkeypatch, "delete", VoiceTraining)
    page = open_page(url)
    open_tab(page, "Clone")
    page.get_by_text("Train a better one").click()
    status, answer = page.locator("#own-voice-status"), page.locator("#own-voice-answer")
    choose(page, "Ann")
    expect(status).to_contain_text("of Ann")
    button = page.locator("#own-voice").get_by_role("button", name="Delete", exact=True)
    button.click()
    expect(answer).to_contain_text("Press Delete again")
    button.click()
    wait_until(deleting.begun.is_set)
    choose(page, "Ben")
    expect(status).to_contain_text("of Ben")
    until_answered(page, deleting.may_end.set)
    expect(answer).to_contain_text("Deleted")
    page.get_by_label("Training", exact=True).click()
    expect(page.get_by_role("option", name="Ben")).to_be_visible()
    expect(page.get_by_role("option", name="Ann")).to_have_count(0)
    expect(page.get_by_label("Training", exact=True)).to_have_value("Ben")
    expect(status).to_contain_text("of Ben")
