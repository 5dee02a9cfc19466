"""What arrives at a player, put together once and in order: a network that a test plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from studio.ui.player.player import FOLDER

# The raw route brings `raw` samples and ends; only then the event tells that `made` were made.
RAW_FIRST = """
async ({ raw, made }) => {
  window.fetch = async () => new Response(new Int16Array(raw).buffer);
  const told = [];
  const listener = {
    begin() {},
    news() {},
    audio: (samples) => told.push(`heard ${samples.length}`),
    whole: (total) => told.push(`whole ${total}`),
  };
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


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    page = browser.new_page()
    page.add_script_tag(content=Path(FOLDER, "feed.js").read_text(encoding="utf-8"))
    yield page
    page.close()


def test_the_raw_route_tells_the_end_before_the_event(page: Any) -> None:
    told = page.evaluate(RAW_FIRST, {"raw": 480, "made": 480})
    assert told == {"early": ["heard 480", "whole 480"], "late": []}


def test_a_raw_route_that_was_cut_off_loses_nothing(page: Any) -> None:
    told = page.evaluate(RAW_FIRST, {"raw": 480, "made": 960})
    assert told["early"] == ["heard 480", "whole 480"]
    assert told["late"] == ["heard 480", "whole 960"]
