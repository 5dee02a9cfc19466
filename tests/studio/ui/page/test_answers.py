"""A press is answered whenever it comes, also while Gradio's stream of answers is being closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import Library
from engine.testing import FakeEngine
from studio.context import open_studio
from tests.support.browser import OpenPage, open_tab, serve_page

# A network that brings the last word of the first stream after the answer to the second press.
CLOSED_LATE = """
(() => {
  const native = window.fetch;
  const sleep = (ms) => new Promise((go) => setTimeout(go, ms));
  let taken = 0; // presses
  const late = () => new TransformStream({
    async transform(piece, stream) {
      const text = new TextDecoder().decode(piece);
      const [before, after] = text.split('data: {"msg":"close_stream"');
      stream.enqueue(new TextEncoder().encode(before));
      if (after === undefined) return;
      while (taken < 2) await sleep(20);
      await sleep(500);
      stream.enqueue(new TextEncoder().encode(text.slice(before.length)));
    },
  });
  window.fetch = async (request, ...rest) => {
    const answer = await native(request, ...rest);
    const url = request.url ?? String(request);
    if (url.includes('/queue/join')) taken++;
    if (!url.includes('/queue/data')) return answer;
    return new Response(answer.body.pipeThrough(late()), answer);
  };
})();
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with (
        FakeEngine() as engine,
        serve_page(open_studio(engine, Library(tmp_path / "voices"))) as url,
    ):
        yield url


def opened(open_page: OpenPage, url: str, network: str) -> Any:
    page = open_page("about:blank")
    page.add_init_script(network)
    page.goto(url)
    return page


def test_a_press_is_answered_while_the_stream_is_closed(open_page: OpenPage, url: str) -> None:
    page = opened(open_page, url, CLOSED_LATE)
    open_tab(page, "Design")
    make = page.get_by_role("button", name="Make three takes")
    make.click()
    page.get_by_text("Describe a voice first").wait_for()
    page.get_by_label("The voice").fill("A calm old man.")
    make.click()
    page.get_by_text("Listen, pick one").wait_for()


# A network that brings the answer to every press but the first when its event is long over.
TAKEN_LATE = """
(() => {
  const native = window.fetch;
  window.joined = 0;
  window.fetch = async (request, ...rest) => {
    const answer = await native(request, ...rest);
    if ((request.url ?? String(request)).includes('/queue/join') && joined++) {
      await new Promise((go) => setTimeout(go, 1000));
    }
    return answer;
  };
})();
"""


def test_an_event_that_is_over_before_it_was_taken_is_not_waited_for(
    open_page: OpenPage, url: str
) -> None:
    """While the page waits in silence, it asks every two seconds whether the server lives."""
    page = opened(open_page, url, TAKEN_LATE)
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    open_tab(page, "Library")  # its lists are asked for one after the other
    page.wait_for_function("window.joined > 2")
    page.wait_for_timeout(8000)
    lives = [each for each in requested if "app_id" in each]
    assert len(lives) < 2, lives
