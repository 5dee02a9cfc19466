"""Hostile files through a running server: refused in words, while it answers as ever.

Each unit of a format is repeated up to the largest size that is read, with and without what closes
it. Few files are small: what is packed may be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from studio.imports.import_process import BUSY as BUSY_ALL
from studio.imports.import_process import BUSY_ADDRESS
from tests.hostile.files import (
    BOOK_TAILS,
    DOCUMENT_TAILS,
    MARKUP,
    document,
    endless_pdf,
    page,
    project,
)
from tests.hostile.import_target import ImportTarget, Listener, Watch, import_target

MEGABYTES = 300  # that all processes together may grow by
SLOWEST = 0.25  # seconds for the 99th of a hundred answers of /health
BUSY = 4  # times the machine's own wait on top of that: an answer waits more than once
LOG = 64 << 10  # bytes a minute
FRAMES = 250  # 20 s of speech
JOINS = 270  # that an address may ask for in a minute
MIB = 1 << 20


WORST: dict[str, Callable[[], bytes]] = {  # once
    "comments.epub": lambda: page("<!--", 40 * MIB),
    "unknown.zip": lambda: project('{"x":[' + "{}," * 20_000_000 + "{}]}"),
    "nested.docx": lambda: document("<a>", 90 * MIB),
    "comment.docx": lambda: document("<!--" + "x" * MIB, 90 * MIB),
    "deep.zip": lambda: project("[" * 20_000_000),
    "slow.pdf": endless_pdf,
}
FIRST = [*WORST][:2]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImportTarget]:
    with import_target(tmp_path_factory.mktemp("studio")) as server:
        assert server.send("first.md", b"Hello there.") == "imported"
        yield server


def attack(target: ImportTarget, *files: tuple[str, bytes]) -> list[str]:
    """The answers to files that are sent at once, each from an address of its own."""
    names, data = zip(*files, strict=True)
    addresses = [f"127.0.1.{place}" for place in range(1, 1 + len(files))]
    with Watch(target) as watch, ThreadPoolExecutor() as senders:
        answers = [*senders.map(target.send, names, data, addresses)]
    print(f"\n{statuses(watch)}: {answers}")
    check(watch)
    assert not {BUSY_ADDRESS, BUSY_ALL}.intersection(answers)
    return answers


def statuses(watch: Watch) -> str:
    slowest, machine = round(watch.slowest * 1e3), round(watch.machine * 1e3)
    memory = f"{watch.megabytes} MB, {watch.log_bytes:.0f} bytes of log"
    return f"/health {slowest} ms ({machine} of the machine), {memory}"


def check(watch: Watch) -> None:
    assert watch.megabytes < MEGABYTES
    assert watch.slowest < SLOWEST + BUSY * watch.machine
    assert watch.log_bytes <= LOG


def test_what_stopped_the_server_is_refused(target: ImportTarget) -> None:
    for name in FIRST:
        (answered,) = attack(target, (name, WORST[name]()))
        assert answered == "imported" or answered[-1] in ".!"
    assert target.send("after.md", b"Hello there.") == "imported"


def test_a_listener_hears_no_gap_while_two_files_are_read(target: ImportTarget) -> None:
    files = [(name, WORST[name]()) for name in FIRST]
    with Watch(target) as watch, Listener(target, FRAMES) as listener:
        attack(target, *files)
    print(f"\n{listener.seconds:.0f} s, {listener.gap * 1e3:.0f} ms of silence, {statuses(watch)}")
    assert listener.seconds >= 0.08 * FRAMES
    assert listener.gap <= BUSY * watch.machine
    check(watch)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORST)
def test_each_of_the_worst(target: ImportTarget, name: str) -> None:
    attack(target, (name, WORST[name]()))


@pytest.mark.slow
@pytest.mark.parametrize("unit", MARKUP)
def test_each_unit_of_a_book(target: ImportTarget, unit: str) -> None:
    attack(target, *(("a.epub", page(unit, 40 * MIB, tail)) for tail in BOOK_TAILS))


@pytest.mark.slow
@pytest.mark.parametrize("unit", MARKUP)
def test_each_unit_of_a_document(target: ImportTarget, unit: str) -> None:
    attack(target, *(("a.docx", document(unit, 90 * MIB, tail)) for tail in DOCUMENT_TAILS))


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["{},", "[", '"a",', "1", "1,", '{"a":', '\\"', "null,"])
def test_each_unit_of_a_project(target: ImportTarget, unit: str) -> None:
    within, alone = '{"x":[' + unit * (31 * MIB // len(unit)), unit * (60 * MIB // len(unit))
    answers = attack(target, ("a.zip", project(within)), ("b.zip", project(alone)))
    assert "imported" not in answers


def test_lines_of_a_project_are_counted(target: ImportTarget, tmp_path: Path) -> None:
    line = {"id": 0, "text": "x"}
    lines = [{**line, "id": number} for number in range(20_001)]
    text = json.dumps({"script": {"lines": lines}, "casting": {"default": "ryan"}})
    assert "imported" not in target.send("a.zip", project(text))


@pytest.mark.parametrize("joins", [60, pytest.param(JOINS, marks=pytest.mark.slow)])
def test_many_imports_of_an_address_hold_nobody_else_up(target: ImportTarget, joins: int) -> None:
    with target.visitor("127.0.0.2") as many, target.visitor() as other:
        path = target.uploaded(many, "slow.pdf", endless_pdf())
        joined = [target.join(many, "slow.pdf", path) for _ in range(joins)]
        assert target.send("own.md", b"Hello there.") == "imported"
        assert target.is_reading()  # the first of the many
        event = other.post("/gradio_api/call/voices", json={"data": []}).json()["event_id"]
        assert "event: complete" in other.get(f"/gradio_api/call/voices/{event}").text
        assert target.answer(many, joined[-1]) == BUSY_ADDRESS
