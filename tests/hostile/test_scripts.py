"""Untrusted scripts: parsed or refused with one message, in linear time."""

from __future__ import annotations

import csv
import io
import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import InvalidSetting, InvalidText, Preset
from studio.imports.formats import SUFFIXES
from studio.scripts import Delivery, Script, plan, read_spellings
from studio.scripts.model import MAX_PAUSE
from tests.hostile.bounds import Worst
from tests.support.script_makers import script_of_file

SIZE = 50_000  # characters: what grows with the square takes seconds here, hours for the longest
SOON = 2.0  # seconds of work; a third of it is needed, on slow cores that others share
UNITS = [
    *("a", "(", "[", "*", "_", "#", "`", ":", " ", "\t", "\n", ".", ". ", "1", "1,", "$1", "<b>"),
    *("-", "|-", "| ", ",", '"', "'", "[pause 1s]", "[pause", "\\", "。", "Dr. ", "~~", "![a]("),
    *("=", "<!--", "-->", "\x85", "\u00a0", "\u3000", "a\u0301", "00:00:00,000 --> 00:00:01,000\n"),
]
BEFORE = ["", "# ", "- ", "| ", "Ann (", "text,pause\n", "1\n00:00:00,000 --> 00:00:09,000\n", '"']
FEW = [(unit, before) for unit in UNITS for before in ("", "| ")]
HEADS = {".vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\n", ".csv": b"text,pause\n"}


def read(name: str, data: bytes) -> Script | None:
    """None when it was refused; a refusal is one short line."""
    message = ""
    try:
        return script_of_file(name, data)
    except InvalidText as error:
        message = str(error)
    assert message.endswith((".", "'"))
    assert len(message) < 300
    assert "Traceback" not in message
    return None


def read_repeated(suffix: str, unit: str, before: str, worst: Worst) -> None:
    text = before + unit * (SIZE // len(unit)) + "x!\n"
    started = time.process_time()
    with worst.measured():
        read(f"script{suffix}", text.encode())
    assert time.process_time() - started < SOON, f"{suffix} of {unit!r} behind {before!r}"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_repetition_costs_no_more_than_its_length(suffix: str) -> None:
    worst = Worst(f"{suffix} repeated")
    for unit, before in FEW:
        read_repeated(suffix, unit, before, worst)
    worst.tell()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_more_repetition(suffix: str) -> None:
    worst = Worst(f"{suffix} repeated")
    for unit, before in itertools.product(UNITS, BEFORE):
        read_repeated(suffix, unit, before, worst)
    worst.tell()


SLOW = [pytest.param(unit, marks=pytest.mark.slow) for unit in ("`", "'", "Hi. ", "[pause")]


@pytest.mark.parametrize("unit", ["a", " ", *SLOW])
def test_the_longest_script_is_read_in_time(unit: str) -> None:
    """Two million characters in one paragraph: the splitter alone would take a quarter hour."""
    worst = Worst(f"2,000,000 of {unit!r}")
    with worst.measured():
        read("book.txt", ("Hello. " + unit * (1_990_000 // len(unit))).encode())
    worst.tell()


@settings(max_examples=270, deadline=None, database=None)
@given(
    st.sampled_from(SUFFIXES),
    st.booleans(),
    st.binary(max_size=400) | st.text(max_size=200).map(str.encode),
)
def test_any_bytes_are_a_script_or_refused(suffix: str, headed: bool, data: bytes) -> None:
    script = read(f"x{suffix}", HEADS.get(suffix, b"") + data if headed else data)
    if script is not None:
        assert any(line.text for line in script.lines)
        assert all(line.pause is None or 0 <= line.pause <= MAX_PAUSE for line in script.lines)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("lines", [100_000, 1_000_000])
def test_too_many_lines_are_refused_at_once(suffix: str, lines: int) -> None:
    head = "text\n" if suffix == ".csv" else ""
    started = time.process_time()
    assert read(f"x{suffix}", (head + "Hello.\n" * lines).encode()) is None
    assert time.process_time() - started < 2 * SOON


@pytest.mark.parametrize(
    "name", ["x.exe", "x", "x.csv.exe", "../../x.py", "\u202etxt.exe", "a" * 9999]
)
def test_other_kinds_of_files_are_refused_by_name(name: str) -> None:
    assert read(name, b"Hello there.") is None


FORMULAS = [
    "=1+1", "=cmd|' /C calc'!A0", '=HYPERLINK("http://evil","x")', "@SUM(1)", "+1+1", "-1+1",
    "=WEBSERVICE(A1)", "\t=1+1", "%0A=1+1", "file:///etc/passwd", "http://127.0.0.1/x",
]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_in_a_table_is_only_text(formula: str) -> None:
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerows([["speaker", "text"], ["Ann", formula], [formula, "Hello."]])
    script = read("x.csv", table.getvalue().encode())
    assert script is not None
    written = "".join(line.text for line in script.lines)
    assert formula.strip() in written
    assert "Hello." in written


@pytest.mark.parametrize(
    "cell",
    ["1" * 400, "$" + "1" * 3_900, "1" * 3_900 + "%", "9" * 3_000 + "th", "1e999", "½" * 900],
)
def test_numbers_of_any_length_are_said(cell: str) -> None:
    """A sum of 306 digits was more than could be counted, and its script could not be spoken."""
    script = script_of_file("x.txt", f"It cost {cell} in the end.".encode())
    jobs = plan(script, {"": Preset("ryan")}, Delivery(language="english"))
    assert all(job.request and job.request.text for job in jobs)


@pytest.mark.parametrize("unit", ["a", " ", "=", "\t", "a = b\n", "#", "\n"])
def test_pronunciation_lists_are_read_in_time(unit: str) -> None:
    started = time.process_time()
    try:
        read_spellings("a" + unit * (200_000 // len(unit)) + "x")
    except InvalidSetting as error:
        assert len(str(error)) < 200  # noqa: PT017
    assert time.process_time() - started < SOON
