"""From a file to a sound with subtitles, by the package's public names alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import soundfile

from engine import SAMPLE_RATE, Preset
from engine.testing import FakeEngine
from studio import scripts as sc
from studio.scripts import edits
from tests.support.script_makers import script_of_file

BOOK = b"""# The Key

Anna: Where have you been all this time?
Ben: I paid $12 for the key, and I found nothing. [pause 1.5s]

# The Door

And so they went home, and said no more about it.
"""


def test_a_book_becomes_a_sound_with_subtitles_and_chapters(tmp_path: Path) -> None:
    projects = sc.Projects(tmp_path / "scripts")
    script = script_of_file("book.md", BOOK)
    there = {name: name for name in ("ryan", "vivian", "anna")}
    casting = sc.suggest(script, there, "ryan")
    number = projects.create(sc.Project(title="Book", script=script, casting=casting))
    project, sounds = projects.open(number), projects.sounds(number)
    voices = sc.resolve_cast(script.speakers, project.casting, lambda _: Preset("ryan"))
    jobs = sc.plan(script, voices, project.delivery)
    requests = [job.request.text for job in jobs if job.request]
    assert any("$12" in text for text in requests)  # the engine spells it out

    def statuses() -> list[str]:
        return [sc.status_of(job, sounds) for job in jobs]

    async def speak() -> None:
        with FakeEngine() as engine:
            async with sc.BatchSynthesis(engine, jobs, sounds) as rendering:
                assert {rendering.status(line.id) for line in script.lines} == {"waiting"}
                await rendering.wait()
                assert {rendering.status(line.id) for line in script.lines} == {"done"}

    asyncio.run(speak())
    assert statuses() == ["done"] * 5
    assert [line.speaker for line in script.lines] == ["", "Anna", "Ben", "", ""]
    chapters = [script.chapters[line.chapter] for line in script.lines]
    assert chapters == ["The Key"] * 3 + ["The Door"] * 2
    assert edits.shown(script.lines[2]).endswith("[pause 1.5s]")

    timeline = sc.build_timeline(script, jobs, sounds)
    path = sc.export_file(tmp_path / "book.wav", timeline, sounds)
    assert soundfile.info(path).frames == timeline.samples
    spoken = sum(sounds.samples(job.key) for job in jobs) / SAMPLE_RATE
    assert timeline.samples / SAMPLE_RATE > spoken + 1.5
    assert "Ben: I paid $12" in sc.srt(sc.captions(timeline))
    assert sc.chapter_list(timeline).splitlines()[0] == "0:00:00 The Key"

    redone = edits.redo(script, script.lines[1].id, 99)
    jobs = sc.plan(redone, voices, sc.Delivery())
    assert statuses() == ["done", "waiting", "done", "done", "done"]
