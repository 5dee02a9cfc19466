"""From a file to a sound with subtitles, by the package's public names alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import soundfile

from engine import SAMPLE_RATE, Preset
from engine.testing import FakeEngine
from studio import scripts as sc
from studio.scripts import edits

BOOK = b"""# The Key

Anna: Where have you been all this time?
Ben: I paid $12 for the key, and I found nothing. [pause 1.5s]

# The Door

And so they went home, and said no more about it.
"""


def test_a_book_becomes_a_sound_with_subtitles_and_chapters(tmp_path: Path) -> None:
    projects = sc.Projects(tmp_path / "scripts")
    script = sc.script_of_file("book.md", BOOK)
    there = {name: name for name in ("ryan", "vivian", "anna")}
    casting = sc.suggest(script.speakers, there, "ryan")
    number = projects.create(sc.Project(title="Book", script=script, casting=casting))
    project, sounds = projects.open(number), projects.sounds(number)
    voices = sc.resolve_cast(script.speakers, project.casting, lambda _: Preset("ryan"))
    jobs = sc.plan(script, voices, project.delivery)
    asked = [job.request.text for job in jobs if job.request]
    assert any("twelve dollars" in text for text in asked)

    async def speak() -> list[sc.Row]:
        with FakeEngine() as engine:
            async with sc.BatchSynthesis(engine, jobs, sounds) as rendering:
                assert {row.status for row in sc.sheet(script, jobs, sounds, rendering)} == {
                    "waiting"
                }
                await rendering.wait()
                return sc.sheet(script, jobs, sounds, rendering)

    rows = asyncio.run(speak())
    assert rows == sc.sheet(script, jobs, sounds)
    assert {row.status for row in rows} == {"done"}
    assert [row.speaker for row in rows] == ["", "Anna", "Ben", "", ""]
    assert [row.chapter for row in rows] == ["The Key"] * 3 + ["The Door"] * 2
    assert rows[2].text.endswith("[pause 1.5s]")

    timeline = sc.build_timeline(script, jobs, sounds)
    path = sc.export_file(tmp_path / "book.wav", timeline, sounds)
    assert soundfile.info(path).frames == timeline.samples
    spoken = sum(row.seconds for row in rows)
    assert timeline.samples / SAMPLE_RATE > spoken + 1.5
    assert "Ben: I paid $12" in sc.srt(timeline)
    assert sc.chapter_list(timeline).splitlines()[0] == "0:00:00 The Key"

    redone = edits.redo(script, rows[1].line, 99)
    states = [
        row.status for row in sc.sheet(redone, sc.plan(redone, voices, sc.Delivery()), sounds)
    ]
    assert states == ["done", "waiting", "done", "done", "done"]
