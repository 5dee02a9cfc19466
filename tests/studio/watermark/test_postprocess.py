"""Every sound that leaves the studio passes one place; without the extra the start says so."""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import app
from engine import Library, Pcm, Preset, SpeechRequest, save_sound
from engine.testing import FakeEngine
from studio.api import create_api
from studio.cli import app_context
from studio.context import Studio
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Takes
from studio.ui.endpoints import Endpoints
from studio.ui.tabs import check
from studio.watermark import MISSING, open_watermark, perth_weights
from tests.studio.api.websocket.ws_client import DONE, PATH, config, hear, say, words
from tests.support.tab_makers import make_studio

TEXT = "The train leaves at seven, and nobody is on it."
GOLDEN = Path(__file__).parents[2] / "golden" / "custom_voice-1b7"
ASKED = SpeechRequest(TEXT, Preset("ryan"), seed=7)


def turned(pcm: Pcm) -> Pcm:
    """Stands for a mark: easily seen, and seen to be there once only."""
    return ~pcm


def plain(engine: FakeEngine) -> Pcm:
    engine.postprocess = None
    pcm = engine.submit(ASKED).collect()
    engine.postprocess = turned
    return pcm


def test_whichever_way_a_stream_is_read_its_sound_is_finished_once(engine: FakeEngine) -> None:
    expected = turned(plain(engine))

    async def awaited() -> list[Pcm]:
        return [chunk.pcm async for chunk in engine.submit(ASKED)]

    assert np.array_equal(engine.submit(ASKED).collect(), expected)
    assert np.array_equal(np.concatenate(asyncio.run(awaited())), expected)
    with FakeEngine(start=False) as still:
        still.postprocess = turned
        stream = still.submit(ASKED)
        while not stream.end:
            still.loop.run_once()
        assert np.array_equal(np.concatenate([each.pcm for each in stream.ready()]), expected)


def test_nobody_else_waits_while_a_chunk_is_finished(engine: FakeEngine) -> None:
    """The work is done beside the event loop, and not in the engine's thread either."""
    threads: set[str] = set()

    def finish(pcm: Pcm) -> Pcm:
        threads.add(threading.current_thread().name)
        return pcm

    async def listened() -> None:
        async for _ in engine.submit(ASKED):
            pass

    engine.postprocess = finish
    asyncio.run(listened())
    assert threads
    assert all(name.startswith("asyncio_") for name in threads)


def test_all_that_the_api_gives_is_finished(engine: FakeEngine, tmp_path: Path) -> None:
    expected = turned(plain(engine)).tobytes()
    body = {"input": TEXT, "seed": 7, "response_format": "pcm"}
    with TestClient(create_api(engine, Library(tmp_path))) as client:
        for way in ({}, {"stream": True}):
            assert client.post("/v1/audio/speech", json=body | way).content == expected
        batch = client.post("/v1/audio/speech/batch", json={"items": [body]}).json()["results"]
        assert b64decode(batch[0]["audio_data"]) == expected
        with client.websocket_connect(PATH) as socket:
            say(socket, config(response_format="pcm", seed=7), *words(TEXT), DONE)
            heard = np.frombuffer(hear(socket)[1], np.int16)
    engine.postprocess = None
    assert len(heard) == len(plain(engine))
    assert not np.array_equal(heard, plain(engine))


def test_all_that_the_page_gives_and_keeps_is_finished(engine: FakeEngine, tmp_path: Path) -> None:
    expected = turned(plain(engine))
    takes = Takes(tmp_path / "takes")
    studio = Studio(engine, Library(tmp_path), LiveTakes(), takes)

    async def played() -> None:
        def keep(pcm: Pcm, end: Any, left: bool) -> str:
            return takes.add(pcm, TEXT, "", end.seed).id

        def submit() -> Any:
            return engine.submit(ASKED)

        async for _ in studio.live.play(submit, keep):
            pass

    async def spoken() -> Pcm:
        async for path in Endpoints(studio).speak(TEXT, "", "auto", "", "7", "wav"):
            return np.asarray(soundfile.read(path, dtype="int16")[0], np.int16)
        raise AssertionError("nothing came")

    asyncio.run(played())
    (take,) = takes.search()
    assert np.array_equal(takes.pcm(take.id), expected)
    assert np.array_equal(asyncio.run(spoken()), expected)


def test_the_setting_reaches_the_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[FakeEngine] = []

    def opened(*_: Any, **__: Any) -> FakeEngine:
        made.append(FakeEngine())
        return made[-1]

    class Mark:
        mark = staticmethod(turned)

    monkeypatch.setattr(app_context, "open_engine", opened)
    monkeypatch.setenv("TIMBRE_PROCESS", "shared")
    monkeypatch.setattr("studio.watermark.open_watermark", Mark)
    line = ["say", TEXT, "--model", str(GOLDEN), "--seed", "7", "--out"]
    for setting in ("0", "1"):
        monkeypatch.setenv("TIMBRE_WATERMARK", setting)
        ran = CliRunner().invoke(app.cli, [*line, str(tmp_path / f"{setting}.wav")])
        assert ran.exit_code == 0, ran.output
    without, with_it = (soundfile.read(tmp_path / f"{n}.wav", dtype="int16")[0] for n in "01")
    assert np.array_equal(turned(without), with_it)
    assert [each.postprocess for each in made] == [None, turned]


# Where the extra is missing.


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the extra had never been installed."""
    monkeypatch.setattr(perth_weights, "_PACKAGE", "a-package-that-nobody-has-written")
    open_watermark.cache_clear()
    yield
    open_watermark.cache_clear()


@pytest.mark.parametrize("line", [["serve"], ["say", "Hello."]])
def test_start_says_what_is_missing(
    bare: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: list[str]
) -> None:
    def opened(*_: Any, **__: Any) -> FakeEngine:
        raise AssertionError("nothing is loaded before")

    monkeypatch.setattr(app_context, "open_engine", opened)
    monkeypatch.setenv("TIMBRE_PROCESS", "shared")
    monkeypatch.setenv("TIMBRE_WATERMARK", "true")
    here = ["--model", str(GOLDEN), "--data", str(tmp_path)]
    options = ["--port", "1"] if line == ["serve"] else ["--out", str(tmp_path / "a.wav")]
    monkeypatch.setattr("studio.server.serving.listen", lambda *_: nullcontext())
    ran = CliRunner().invoke(app.cli, [*line, *here, *options])
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", f"error: {MISSING}\n")
    assert not (tmp_path / "a.wav").exists()


@pytest.fixture
def sound(tmp_path: Path) -> str:
    return str(save_sound(tmp_path / "a.wav", np.ones(48_000, np.int16)))


def test_the_check_says_what_is_missing(bare: None, sound: str) -> None:
    ran = CliRunner().invoke(app.cli, ["check", sound])
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", f"error: {MISSING}\n")


def test_the_page_says_what_is_missing(bare: None, sound: str, tmp_path: Path) -> None:
    async def built() -> gr.Blocks:
        with gr.Blocks(analytics_enabled=False) as blocks:
            check.endpoint()
            check.build(studio)
        return blocks

    studio = make_studio(tmp_path)
    with studio.engine:
        blocks = asyncio.run(built())
    assert "requirements-watermark.txt" in str(blocks.config)
    assert "/check" in blocks.get_api_info()["named_endpoints"]
    with pytest.raises(gr.Error, match="requirements-watermark"):
        check.program(sound)
