"""What arrives at a player, put together once and in order: a network that a test plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from studio.ui.player.player import FOLDER

# A listener that writes down what it is told.
LISTENING = """
function listening() {
  const told = [];
  const listener = {
    begin() {},
    news() {},
    audio: (samples) => told.push(`heard ${samples.length}`),
    whole: (total) => told.push(`whole ${total}`),
    lost: () => told.push('lost'),
  };
  return { told, listener };
}
"""

# The raw route brings `raw` samples and ends; only then the event tells that `made` were made.
RAW_FIRST = """
async ({ raw, made }) => {
  window.fetch = async () => new Response(new Int16Array(raw).buffer);
  const { told, listener } = listening();
  const rest = btoa('\\0'.repeat(2 * (made - raw)));
  const feed = new Feed(listener, async (id, start) => ({ start, pcm: rest }));
  const payload = { id: 'take', start: 0, pcm: '', raw: 'http://studio/raw' };
  feed.take({ ...payload, seq: 1, made: 0 });
  const before = performance.now();
  while (!told.length || feed.raw) {
    if (performance.now() - before > 60000) throw new Error('the raw route never ended');
    await new Promise((go) => setTimeout(go, 5));
  }
  const early = [...told];
  feed.take({ ...payload, seq: 2, start: raw, made, ended: { reason: 'finished' } });
  while (feed.asking) await new Promise((go) => setTimeout(go, 5));
  return { early, late: told.slice(early.length) };
}
"""

# The page has `sent` samples and is told that `made` were made; `ask` answers what is missing.
GAP = """
async ({ sent, made, ask, stop }) => {
  let asked = 0, settled = 0, answer;
  const { told, listener } = listening();
  const asking = async () => {
    asked += 1;
    return stop ? new Promise((go) => (answer = go)) : ask;
  };
  const feed = new Feed(listener, asking);
  const settle = feed.settle.bind(feed);
  feed.settle = () => (settled++, settle());
  const payload = { id: 'take', start: 0, pcm: btoa('\\0'.repeat(2 * sent)) };
  feed.take({ ...payload, seq: 1, made: sent });
  feed.take({ ...payload, seq: 9, made, ended: { reason: 'finished' } });
  if (stop) {
    feed.drop();
    answer(ask);
  }
  await new Promise((go) => setTimeout(go, 600));
  return { asked, settled, told };
}
"""

# The raw route ends after `raw` samples, as if they were all; the event brings what follows.
REOPENED = """
async ({ raw, made }) => {
  window.fetch = async () => new Response(new Int16Array(raw).buffer);
  const { told, listener } = listening();
  const feed = new Feed(listener, async () => null);
  const payload = { id: 'take', start: 0, pcm: '', raw: 'http://studio/raw' };
  feed.take({ ...payload, seq: 1, made: 0 });
  while (!told.includes(`whole ${raw}`)) await new Promise((go) => setTimeout(go, 5));
  const pcm = btoa('\\0'.repeat(2 * (made - raw)));
  feed.take({ ...payload, seq: 2, start: raw, pcm, made });
  feed.take({ ...payload, seq: 3, start: made, made, ended: { reason: 'finished' } });
  return told;
}
"""


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    page = browser.new_page()
    page.add_script_tag(content=Path(FOLDER, "feed.js").read_text(encoding="utf-8") + LISTENING)
    yield page
    page.close()


def test_the_raw_route_tells_the_end_before_the_event(page: Any) -> None:
    told = page.evaluate(RAW_FIRST, {"raw": 480, "made": 480})
    assert told == {"early": ["heard 480", "whole 480"], "late": []}


def test_a_raw_route_that_was_cut_off_loses_nothing(page: Any) -> None:
    told = page.evaluate(RAW_FIRST, {"raw": 480, "made": 960})
    assert told["early"] == ["heard 480", "whole 480"]
    assert told["late"] == ["heard 480", "whole 960"]


def test_a_raw_route_that_seemed_to_end_is_not_the_end(page: Any) -> None:
    told = page.evaluate(REOPENED, {"raw": 480, "made": 960})
    assert told == ["heard 480", "whole 480", "whole null", "heard 480", "whole 960"]


def test_what_the_server_has_let_go_is_asked_for_once(page: Any) -> None:
    done = page.evaluate(GAP, {"sent": 480, "made": 960, "ask": None, "stop": False})
    assert (done["asked"], done["told"]) == (1, ["heard 480", "lost"])


def test_a_stop_while_a_gap_is_asked_for_ends_it(page: Any) -> None:
    done = page.evaluate(GAP, {"sent": 480, "made": 960, "ask": None, "stop": True})
    assert (done["asked"], done["told"]) == (1, ["heard 480"])
    assert done["settled"] <= 2
