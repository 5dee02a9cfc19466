"""The bench as a client of our server: it measures streams, counts refusals, compares reports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from fastapi import FastAPI, Request
from starlette.responses import Response, StreamingResponse
from typer.testing import CliRunner, Result

import bench.__main__ as command
from bench.compare import compare
from bench.http_lines import Refused, Server
from bench.over_http import OverHttp
from bench.workload import Job, Work
from engine import FRAME_SAMPLES, Engine, Library
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from studio.api import ApiSettings, create_api
from tests.support.serving import serving

app = typer.Typer()
app.command()(command.main)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with FakeEngine(costs=Costs(step=0.002)) as engine:
        yield engine


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "voices")


@pytest.fixture
def url(engine: Engine, library: Library) -> Iterator[str]:
    with serving(create_api(engine, library, ApiSettings(keys=("right",)))) as url:
        yield url


def run(*line: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, line)])


def report(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


def test_every_load_and_kind_over_http(url: str, library: Library) -> None:
    kinds = ("preset", "vector", "context", "cold", "design")
    chosen = [part for kind in kinds for part in ("--kind", kind)]
    loads = ["-c", "3", "--rate", "40", "--seconds", "0.5", "--burst", "6"]
    small = ["--frames", "4", "8", "--requests", "12", "--key", "right"]
    figures = report(run("--url", url, *loads, *small, *chosen))
    assert [row["load"] for row in figures["loads"]] == ["closed 3", "poisson 40", "burst 6"]
    for row in figures["loads"]:
        assert row["failed"] == 0, row  # a busy machine may well be late
        assert 0 < row["first_p50_ms"] <= row["audible_p50_ms"] <= row["total_p99_ms"]
    jobs = Work(kinds, 4, 8).jobs(12)
    spoken = sum(job.frames for job in jobs) * FRAME_SAMPLES / 24_000
    assert figures["loads"][0]["audio_seconds"] == pytest.approx(spoken)
    assert library.list() == ()  # the voice it kept is gone


def test_it_hears_every_sample_and_keeps_its_connections(url: str, engine: Engine) -> None:
    async def ask() -> list[int]:
        server = Server(url, "right")
        asking = OverHttp(server, "ryan", {})
        heard = []
        for frames in (3, 30, 300):
            job = Job("x" * frames, frames, 1)
            heard.append(sum([len(pcm) async for pcm in asking.listen(job)]))
        assert len(server._idle) == 1
        await asking.finish()
        return heard

    assert asyncio.run(ask()) == [frames * FRAME_SAMPLES for frames in (3, 30, 300)]


@pytest.mark.parametrize(
    ("line", "says"),
    [(["--key", "wrong"], "401"), (["--key", "right", "--voice", "nobody"], "404")],
)
def test_refusals_are_counted(url: str, line: list[str], says: str) -> None:
    row = report(run("--url", url, "-c", "2", *line))["loads"][0]
    assert (row["ok"], row["failed"]) == (0, 8)
    assert says in row["first_error"]


def test_a_server_whose_speakers_have_other_names_is_measured_as_well(tmp_path: Path) -> None:
    checkpoint = FakeCheckpoint(fake_capabilities(speakers=("clara", "robert"), dialects={}))
    library = Library(tmp_path / "voices")
    with FakeEngine([checkpoint]) as engine, serving(create_api(engine, library)) as url:
        row = report(run("--url", url, "-c", "1", "--requests", "3"))["loads"][0]
    assert (row["ok"], row["failed"]) == (3, 0), row


def test_what_another_server_does_not_know_can_be_left_out() -> None:
    seen: list[dict[str, Any]] = []
    other = FastAPI()

    async def speech(request: Request) -> Response:
        seen.append(await request.json())
        pieces = (b"\x01", b"\x02\x03", b"\x04" * 4797)  # pieces that tear samples apart
        return StreamingResponse(iter(pieces))

    other.add_api_route("/v1/audio/speech", speech, methods=["POST"])
    with serving(other) as url:
        extra = '{"ignore_eos": null, "speed": 1}'
        figures = report(run("--url", url, "-c", "1", "--requests", "3", "--extra", extra))
    row = figures["loads"][0]
    assert (row["ok"], row["audio_seconds"]) == (3, pytest.approx(0.3))
    assert seen[0].keys() == {
        *("model", "input", "voice", "language", "response_format", "stream"),
        *("max_new_tokens", "seed", "speed"),
    }


def test_a_server_that_hangs_up_is_a_failure_not_an_end() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
        writer.close()

    async def ask() -> None:
        async with await asyncio.start_server(hang_up, "127.0.0.1") as door:
            port = door.sockets[0].getsockname()[1]
            await Server(f"http://127.0.0.1:{port}").whole("POST", "/", b"{}")

    with pytest.raises(Refused, match="closed the connection early"):
        asyncio.run(ask())


def test_a_connection_that_was_closed_while_idle_is_not_used() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()  # without an error

    async def ask() -> list[bytes]:
        async with await asyncio.start_server(answer, "127.0.0.1") as door:
            server = Server(f"http://127.0.0.1:{door.sockets[0].getsockname()[1]}")
            read = []
            for _ in range(3):
                read.append(await server.whole("GET", "/"))
                await asyncio.sleep(0.05)
            server.close()
            return read

    assert asyncio.run(ask()) == [b"ok"] * 3


def rows(first: list[float], failed: int = 0) -> dict[str, Any]:
    row = {"load": "closed 1", "rtf_mean": 0.5, "audio_per_second": 2.0, "failed": failed}
    return {"loads": [{**row, "first_p50_ms": one} for one in first]}


@pytest.mark.parametrize(
    ("base", "new", "worse"),
    [
        (rows([10, 10, 10]), rows([10.5, 10.5, 10.5]), False),
        (rows([10, 10, 10]), rows([12, 12, 12]), True),
        (rows([8, 10, 12]), rows([12, 12, 12]), False),  # as far as its own repeats lie apart
        (rows([12, 12, 12]), rows([10, 10, 10]), False),
        (rows([10]), rows([10], failed=1), True),
        (rows([10], failed=1), rows([10], failed=1), False),
    ],
)
def test_a_regression_is_told_from_noise(
    base: dict[str, Any], new: dict[str, Any], worse: bool
) -> None:
    assert any(finding.worse for finding in compare(base, new, 0.1)) == worse


def test_fewer_seconds_a_second_are_worse() -> None:
    slow = {"loads": [{**rows([10])["loads"][0], "audio_per_second": 1.0}]}
    found = {finding.figure: finding for finding in compare(rows([10]), slow, 0.1)}
    assert found["audio_per_second"].worse
    assert found["audio_per_second"].ratio == 2


def test_a_run_is_held_against_a_kept_report(url: str, tmp_path: Path) -> None:
    kept, few = tmp_path / "base.json", ["-c", "1", "--requests", "3", "--key", "right"]
    assert run("--url", url, *few, "--out", kept).exit_code == 0
    base = json.loads(kept.read_text())
    for factor, code in ((100, 0), (0.001, 1)):
        changed = [{**row, "first_p50_ms": row["first_p50_ms"] * factor} for row in base["loads"]]
        changed = [{**row, "first_p95_ms": 1e9, "rtf_mean": 1e9} for row in changed]
        changed = [{**row, "audio_per_second": 1e-9} for row in changed]
        kept.write_text(json.dumps({"loads": changed}))
        assert run("--url", url, *few, "--compare", kept).exit_code == code
    kept.write_text('{"loads": []}')
    assert run("--url", url, *few, "--compare", kept).exit_code == 1


def test_a_checkpoint_is_measured_in_process(golden_dir: Path) -> None:
    few = ["-c", "2", "--requests", "2", "--frames", "3", "4", "--set", "max_num_seqs=3"]
    figures = report(run("--model", golden_dir / "custom_voice-1b7", "--device", "cpu", *few))
    assert (figures["slots"], figures["loads"][0]["failed"]) == (3, 0)
    assert figures["ready_seconds"] > 0


def test_a_model_and_a_server_are_one_too_many(url: str) -> None:
    assert run("--url", url, "--model", "x").exit_code == 2
