"""Events of a page that come in turn: one is answered before the next one is read, and meanwhile
those of other pages have their places."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import gradio as gr
import httpx
import pytest
from fastapi import FastAPI

from studio.ui.gradio_compat.queue_pace import pace
from studio.ui.gradio_compat.turns import IN_TURN, MOST_WAITING
from tests.support.browser import PATIENCE, Server, wait_until

PLACES = 2  # events that run at once
TURN, ALONE = 0, 1  # numbers of events


class Work:
    """What is done with a press. One called "held" waits at the gate; behind it it may fail."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.done: list[str] = []
        self.gate, self.fails = threading.Event(), False

    def __call__(self, name: str) -> str:
        self.begun.append(name)
        if name == "held":
            assert self.gate.wait(PATIENCE)
            assert not self.fails
        self.done.append(name)
        return name

    async def page(self) -> FastAPI:  # without a loop around it Gradio makes some, and leaves them
        with gr.Blocks(analytics_enabled=False) as blocks:
            field, button = gr.Textbox(), gr.Button()
            button.click(self, field, field, concurrency_limit=None, **IN_TURN)
            button.click(self, field, field, concurrency_limit=None)
        blocks.max_threads = PLACES
        blocks.queue(max_size=4 * MOST_WAITING)
        pace(blocks, lambda language: f"Too many, in {language}.")
        return gr.mount_gradio_app(FastAPI(), blocks, "/", run_history=False, ssr_mode=False)


class Visitor(httpx.Client):
    """A page, by the protocol of its script."""

    def __init__(self, url: str, page: str) -> None:
        language = {"accept-language": "zh"}
        super().__init__(base_url=f"{url}/gradio_api", timeout=PATIENCE, headers=language)
        self._page = page

    def press(self, name: str, event: int = TURN) -> httpx.Response:
        fields = {"data": [name], "fn_index": event, "session_hash": self._page}
        return self.post("/queue/join", json=fields)

    def answers(self) -> list[str]:
        """What the presses so far were answered, until all are."""
        return list(self._answers())

    def _answers(self) -> Iterator[str]:
        page = {"session_hash": self._page}
        with self.stream("GET", "/queue/data", params=page) as response:
            for line in response.iter_lines():
                word = json.loads(line.removeprefix("data:") or "{}")
                if word.get("msg") == "process_completed":
                    yield word["output"]["data"][0] if word["success"] else "failed"

    def leaves(self) -> None:
        """In the middle of an answer."""
        page = {"session_hash": self._page}
        with self.stream("GET", "/queue/data", params=page) as response:
            next(response.iter_lines())


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def visit(work: Work) -> Iterator[Callable[[str], Visitor]]:
    with Server(asyncio.run(work.page())) as url, ExitStack() as left:
        yield lambda page: left.enter_context(Visitor(url, page))
        work.gate.set()


def test_presses_wait_for_their_turn_and_take_no_place_of_others(work: Work, visit: Any) -> None:
    page, another = visit("a page"), visit("another")
    for name in ("held", *"abcd"):
        page.press(name)
    wait_until(lambda: work.begun)
    another.press("of another page")
    assert another.answers() == ["of another page"]
    page.press("without a turn", ALONE)
    wait_until(lambda: "without a turn" in work.done)
    assert work.begun == ["held", "of another page", "without a turn"]
    work.gate.set()
    assert page.answers() == ["without a turn", "held", *"abcd"]


def test_one_that_fails_lets_the_next_one_in(work: Work, visit: Any) -> None:
    page, another = visit("a page"), visit("another")
    work.fails = True
    for name in ("held", "next"):
        page.press(name)
    another.press("of another page")
    assert another.answers() == ["of another page"]
    assert "next" not in work.begun
    work.gate.set()
    assert page.answers() == ["failed", "next"]


def test_a_page_that_leaves_takes_its_waiting_presses_along(work: Work, visit: Any) -> None:
    page, another = visit("a page"), visit("another")
    for name in ("held", "waiting"):
        page.press(name)
    wait_until(lambda: work.begun)
    page.leaves()
    work.gate.set()
    another.press("of another page")
    assert another.answers() == ["of another page"]
    wait_until(lambda: "held" in work.done)
    assert "waiting" not in work.done


def test_what_a_page_may_have_waiting_is_bounded(work: Work, visit: Any) -> None:
    page, another = visit("a page"), visit("another")
    page.press("held")
    wait_until(lambda: work.begun)
    names = [f"{number}" for number in range(MOST_WAITING)]
    assert all(page.press(name).is_success for name in names)
    for event in (TURN, ALONE):
        refused = page.press("one more", event)
        assert refused.status_code == 400
        assert refused.json() == {"detail": "Too many, in zh."}
    assert another.press("of another page").is_success
    work.gate.set()
    assert page.answers() == ["held", *names]
    assert page.press("one more").is_success
