"""The server's log: what an operator needs stands in it, and whoever logs is not harmed."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI
from starlette.requests import ClientDisconnect

from studio.server import serving
from studio.server.process import log_limits
from studio.server.process.log_limits import ServerLog


class Mute(Exception):
    def __str__(self) -> str:
        raise KeyError("no words")


def record_of(words: str, *values: object, moment: float = 0.0) -> logging.LogRecord:
    made = logging.LogRecord("timbre", logging.ERROR, __file__, 1, words, values, None)
    made.created = made.created + moment
    return made


@pytest.mark.parametrize(("words", "value"), [("%d files", "x"), ("%y files", "x"), ("%s", Mute())])
def test_a_line_that_cannot_be_written_is_told_and_harms_nobody(words: str, value: object) -> None:
    written = io.StringIO()
    ServerLog(written).handle(record_of(words, value))
    assert "ERROR timbre: " in written.getvalue()
    assert "test_log_limits.py:1" in written.getvalue()


def test_of_another_librarys_values_numbers_alone_are_told() -> None:
    for values, told in [((3, 0.5), "Cancel 3 in 0.5"), ((3, "x@y"), "Cancel %s in %s")]:
        written = io.StringIO()
        line = record_of("Cancel %s in %s", *values)
        line.name = "uvicorn.error"
        ServerLog(written).emit(line)
        assert written.getvalue().endswith(f"uvicorn.error: {told}\n")


def test_lines_beyond_a_minutes_bytes_are_counted() -> None:
    written = io.StringIO()
    log = ServerLog(written)
    line = "x" * log_limits.WORDS
    count = log_limits.BYTES["ours"] // len(line) + 10
    for _ in range(count):
        log.emit(record_of(line))
    log.emit(record_of("Next.", moment=2 * log_limits.SECONDS))
    *_, notice, last = written.getvalue().splitlines()
    kept = written.getvalue().count(line)
    assert 0 < kept < count
    assert notice.startswith(f"({count - kept} lines were left out")
    assert last.endswith("Next.")


def test_why_a_server_does_not_start_stands_in_its_log(capfd: pytest.CaptureFixture[str]) -> None:
    @asynccontextmanager
    async def broken(_: FastAPI) -> AsyncIterator[None]:
        raise RuntimeError("no disk is there")
        yield

    with pytest.raises(SystemExit):
        serving.serve(FastAPI(lifespan=broken), serving.listen("127.0.0.1", 0))
    assert "RuntimeError: no disk is there" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("error", "told"),
    [(RuntimeError("The response has started."), False), (KeyError("voice"), True)],
)
def test_a_client_that_left_is_no_fault_and_a_fault_beside_it_is(
    error: Exception, told: bool
) -> None:
    written, record = io.StringIO(), record_of("Exception in ASGI application")
    try:
        try:
            raise ClientDisconnect
        except ClientDisconnect as left:
            raise error from left
    except (RuntimeError, KeyError) as raised:
        record.exc_info = (type(raised), raised, raised.__traceback__)
    ServerLog(written).emit(record)
    assert bool(written.getvalue()) == told


def test_a_process_that_was_started_without_an_error_output_logs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    monkeypatch.setattr("sys.__stderr__", None)
    with log_limits.bounded_log():
        logging.getLogger("timbre").warning("A line.")
        print("Another one.")
