"""Texts that once took time growing with the square: twice of them takes about twice as long."""

from __future__ import annotations

import time

import pytest

from tests.support.script_makers import script_of_file

SIZE = 400_000  # characters
SOON = 12.0  # seconds of work; with the square each took minutes, on cores that others share
CAPTION = "{n}\n00:00:00,000 --> 00:00:01,000\nand then she said the same thing over again\n\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cues.txt", "Hello. " + "[laugh]" * (SIZE // 7)),
        ("pauses.txt", "word " * (SIZE // 10) + "[pause 1s] " * (SIZE // 22)),
        ("play.txt", "INT. HOUSE\n\nANNA\n" + "and so on we go\n" * 24_000),
        ("film.srt", "".join(CAPTION.format(n=n) for n in range(6_000))),
    ],
)
def test_a_paragraph_without_an_end_is_read_in_time(name: str, text: str) -> None:
    started = time.process_time()
    assert script_of_file(name, text.encode()).lines
    assert time.process_time() - started < SOON
