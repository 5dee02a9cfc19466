"""A script written as text and read again is the same script."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import SAMPLE_RATE
from studio.scripts.line_audio import LineAudio
from studio.scripts.model import Script
from studio.scripts.rendering.batch_synthesis import BatchSynthesis
from studio.scripts.rendering.render_stream import ScriptStream
from studio.scripts.serializer import text_of
from studio.scripts.text.typed import script_of_text
from tests.support.script_makers import LINES, Unruly, jobs_of, run, script_of_file

SENTENCES = (
    "Where have you been all this time, my dear friend?",
    "I was looking for the old key, and found nothing.",
    "And so they went home and said no more about it.",
    "她昨天晚上没有回家，我们都很担心她，所以一直等到天亮。",
)
texts = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3).map(" ".join)
pauses = st.sampled_from(["", " [pause 0.5s]", " [pause 2s]"])
speakers = st.sampled_from(["", "Anna: ", "Ben (softly): ", "2nd guard: "])
paragraphs = st.builds("{}{}{}".format, speakers, texts, pauses)
headings = st.sampled_from(["# The Door", "# The End [silent]", "Chapter 2"])
scripts = st.lists(st.one_of(paragraphs, paragraphs, headings), min_size=1, max_size=8)


def content(script: Script) -> list[tuple[object, ...]]:
    """All that is spoken and how, without ids."""
    return [
        (line.text, line.speaker, line.direction, line.pause, script.chapters[line.chapter])
        for line in script.lines
    ]


def joints(script: Script) -> list[bool]:
    """Of each line but the last: does its paragraph go on?"""
    return [one.paragraph == two.paragraph for one, two in pairwise(script.lines)]


@given(scripts)
def test_what_is_written_reads_as_the_same_script(blocks: list[str]) -> None:
    script = script_of_text(
        "A first line, so there is one.\n\n" + "\n\n".join(blocks), speakers=["2nd guard"]
    )
    again = script_of_text(text_of(script), speakers=script.speakers)
    assert content(again) == content(script)
    assert text_of(again) == text_of(script)
    assert joints(again) == joints(script)


def test_chapters_of_a_table_stay_silent() -> None:
    table = b"chapter,speaker,text\nThe Door,Anna,Come in and sit down with us.\n"
    script = script_of_file("a.csv", table)
    assert text_of(script) == "# The Door [silent]\n\nAnna: Come in and sit down with us."
    assert content(script_of_text(text_of(script), speakers=["Anna"])) == content(script)


def test_nothing_is_written_of_nothing() -> None:
    assert text_of(Script()) == ""


@pytest.mark.parametrize("lead", [0.0, 0.3])
def test_a_listener_is_never_far_ahead(tmp_path: Path, lead: float) -> None:
    async def work() -> list[float]:
        ahead: list[float] = []
        async with BatchSynthesis(Unruly(1), jobs_of(LINES), LineAudio(tmp_path)) as rendering:
            await rendering.wait()
            began, given = monotonic(), 0
            async for chunk in ScriptStream(rendering, lead=lead):
                ahead.append(given / SAMPLE_RATE - (monotonic() - began))
                given += len(chunk.pcm)
                if given > 2 * SAMPLE_RATE:
                    break
        return ahead

    assert max(run(work())) <= lead + 0.05


def test_leaving_a_stream_that_owns_nothing_lets_the_others_go_on(tmp_path: Path) -> None:
    async def work() -> None:
        async with BatchSynthesis(Unruly(1), jobs_of(LINES), LineAudio(tmp_path)) as rendering:
            stream = ScriptStream(rendering, owner=False)
            async for chunk in stream:
                assert np.any(chunk.pcm)
                stream.cancel()
            assert stream.end
            assert stream.end.reason == "cancelled"
            assert (await asyncio.wait_for(rendering.wait(), 10)).failed == 0

    run(work())


@pytest.mark.parametrize("name", ["2nd guard", "Anna (old)", "Anna"])
@pytest.mark.parametrize("direction", ["", "angrily", "slowly, " * 24 + "sadly"])
def test_names_and_directions_of_a_table_come_back(name: str, direction: str) -> None:
    table = (
        f'speaker,direction,text\nAnna,,Who is there?\n{name},"{direction}",Nobody goes anywhere.'
    )
    script = script_of_file("play.csv", table.encode())
    again = script_of_text(text_of(script), speakers=script.speakers)
    for one, other in zip(script.lines, again.lines, strict=True):
        assert (one.speaker, one.direction, one.text) == (
            other.speaker,
            other.direction,
            other.text,
        )
    assert (again.lines[1].speaker, again.lines[1].direction) == (name, direction)
