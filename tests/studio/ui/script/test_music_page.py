"""Music in a browser, on the embedded model: dropped on a script, placed, heard, taken back by
Undo, exported, removed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile

from engine import SAMPLE_RATE, Library, open_engine
from studio.cli.app_context import MINI
from studio.context import Studio, open_studio
from studio.scripts.music.cue import PLAIN
from studio.scripts.timeline import build_timeline
from tests.support.browser import OpenPage, expect, open_tab, serve_page, wait_until
from tests.support.programs import CACHE
from tests.support.tab_makers import recording

TEXT = "# The Sea\n\nAnna: Good evening.\n\n# The Land\n\nBen: And to you."
# As a file manager drops a file.
DROP = """(zone, [name, sound]) => {
  const bytes = Uint8Array.from(atob(sound), (each) => each.charCodeAt(0))
  const dataTransfer = new DataTransfer()
  dataTransfer.items.add(new File([bytes], name, { type: 'audio/wav' }))
  for (const kind of ['dragenter', 'dragover', 'drop']) {
    zone.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer }))
  }
}"""


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with open_engine([MINI], "cpu", cache=CACHE) as engine:
        yield open_studio(engine, Library(tmp_path / "voices"))


@pytest.fixture
def url(browser: Any, studio: Studio) -> Iterator[str]:
    with serve_page(studio) as url:
        yield url


def test_music_is_dropped_placed_heard_taken_back_and_exported(
    open_page: OpenPage, url: str, studio: Studio, tmp_path: Path
) -> None:
    page = open_page(url)
    open_tab(page, "Script")
    page.locator("#script-text textarea").fill(TEXT)
    page.get_by_role("button", name="Split into lines").click()
    lines = page.locator("#script-lines")
    expect(lines.get_by_text("And to you.").first).to_be_visible()
    [number] = studio.scripts.titles()
    section = page.locator("#script-music")
    section.get_by_role("button", name="Music").first.click()
    sound = recording(tmp_path / "Rain.wav").read_bytes()
    zone = section.locator("#music-upload button").first
    zone.evaluate(DROP, ["Rain.wav", base64.b64encode(sound).decode()])
    expect(section.locator("#music-picked input")).to_have_value("Rain.wav")
    first = lines.locator("article").first
    expect(first).to_contain_text("♪ Rain.wav")

    def cue() -> Any:
        [cue] = studio.scripts.open(number).project.cues
        return cue

    section.get_by_role("radio", name="Chapter").check()
    expect(section.locator("#music-chapter input")).to_have_value("The Sea")
    section.locator("#music-chapter input").click()
    page.get_by_role("option", name="The Land").click()
    expect(lines.locator("article", has_text="♪")).to_contain_text("The Land")
    script = studio.scripts.open(number).script
    assert (cue().over, cue().first) == ("chapter", script.lines[2].id)

    level = section.get_by_role("slider", name="Level in dB")
    level.press("ArrowRight")
    wait_until(lambda: cue().level == PLAIN.level + 1)
    undo = lines.get_by_role("button", name="Undo")
    expect(undo).to_contain_text("Rain.wav")
    undo.click()
    expect(level).to_have_value(str(int(PLAIN.level)))
    undo.click()  # the chapter
    expect(section.locator("#music-chapter input")).to_have_value("The Sea")
    undo.click()  # that it is one
    expect(section.get_by_role("radio", name="Whole script")).to_be_checked()
    expect(section.locator("#music-chapter input")).to_be_hidden()

    page.get_by_role("button", name="Speak", exact=True).click()
    expect(lines).to_contain_text("4 lines · 4 rendered")
    total = "window.timbre.players.find(({ now }) => now)?.feed.total"
    wait_until(lambda: page.evaluate(total) is not None)
    heard = page.evaluate(total)
    opened = studio.scripts.open(number)
    assert opened.sounds is not None
    spoken = build_timeline(opened.script, opened.jobs, opened.sounds).heard[-1].end
    assert heard == spoken + PLAIN.fade_out * SAMPLE_RATE

    export = page.locator("#script-export")
    export.get_by_label("wav", exact=True).check()
    export.get_by_label("Loudness target").click()
    page.get_by_role("option", name="As spoken").click()
    export.get_by_role("button", name="Export", exact=True).last.click()
    with page.expect_download() as saved:
        export.locator("a[download$='.wav']").click()
    assert soundfile.info(saved.value.path()).frames == heard

    section.get_by_role("button", name="Remove the music").click()
    expect(section.get_by_role("button", name="Remove the music")).to_be_hidden()
    assert studio.scripts.open(number).project.cues == ()
