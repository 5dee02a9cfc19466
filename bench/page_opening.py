"""How long the studio's page takes until it can be used, in headless Chromium on this machine.

`python -m bench.page_opening http://HOST:PORT` visits with an empty cache each time, `--again` with
a filled one. Ready: the page is shown, its layout stands still and the text field has the keyboard.
Knows the page's marks (studio/ui/static/opening.js), no engine. Needs playwright and Chromium.
"""

from __future__ import annotations

import json
import shutil
import statistics
from typing import Annotated, Any

import typer

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
WATCH = """
window.opening = { shifted: 0, blocked: 0 };
const watch = (type, note) => new PerformanceObserver((list) => list.getEntries().forEach(note))
  .observe({ type, buffered: true });
watch('layout-shift', (each) => { if (!each.hadRecentInput) opening.shifted += each.value; });
watch('longtask', (each) => { opening.blocked += each.duration; });
"""
TOLD = """
() => {
  const [visit] = performance.getEntriesByType('navigation');
  const loaded = performance.getEntriesByType('resource');
  const ready = performance.getEntriesByName('timbre-ready')[0].startTime;
  const early = loaded.filter((each) => each.startTime < ready);
  return {
    ready,
    html: visit.responseEnd,
    painted: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
    requests: early.length + 1,
    bytes: early.reduce((sum, each) => sum + each.transferSize, visit.transferSize),
    ...opening,
  };
}
"""


def main(
    url: str,
    visits: Annotated[int, typer.Option(min=1)] = 7,
    again: Annotated[bool, typer.Option(help="With a filled cache.")] = False,
    trace: Annotated[str, typer.Option(help="A file for Chromium's trace of the last visit.")] = "",
) -> None:
    """Print each visit, and their medians as the last line."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        context: Any = None
        timings: list[dict[str, float]] = []
        for number in range(visits + again):
            if context is None or not again:
                context = chromium.new_context(viewport={"width": 1280, "height": 800})
                context.add_init_script(WATCH)
            page = context.new_page()
            traced = trace and number == visits + again - 1
            if traced:
                chromium.start_tracing(page=page, path=trace, categories=CATEGORIES)
            timings.append(_visit(page, url))
            if traced:
                chromium.stop_tracing()
            print(json.dumps(timings[-1]), flush=True)
            page.close()
            if not again:
                context.close()
        chromium.close()
    rows = timings[again:]
    print(
        json.dumps(
            {name: round(statistics.median(row[name] for row in rows), 4) for name in rows[0]}
        )
    )


CATEGORIES = [
    "devtools.timeline",
    "disabled-by-default-v8.cpu_profiler",
    "blink.user_timing",
    "loading",
]


def _visit(page: Any, url: str) -> dict[str, float]:
    page.goto(url, wait_until="commit")
    page.wait_for_function(
        "performance.getEntriesByName('timbre-ready').length > 0", timeout=60_000
    )
    page.get_by_role("button", name="Hear a welcome").wait_for(timeout=60_000)
    assert page.evaluate("document.activeElement.closest('#speak-text') !== null")
    times: dict[str, float] = page.evaluate(TOLD)
    return times


if __name__ == "__main__":
    typer.run(main)
