"""`say` and `voices` on a server: the same sound as here, and plain words when it fails."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from typer.testing import CliRunner, Result

import app
from engine import SAMPLE_RATE, Clone, Design, Engine, Library, save_sound
from engine.testing import Costs, FakeEngine, fake_capabilities
from studio.api import ApiSettings, create_api
from studio.cli import app_context, speech_output, websocket_speech
from studio.cli.connection import Connection
from studio.cli.console import Console, Words
from studio.cli.plain_errors import REFUSED
from studio.cli.remote import Server
from studio.cli.say_options import SayOptions
from studio.cli.speech_output import speak
from tests.studio.api.conftest import Serve
from tests.support.serving import serving, wait_until

TEXT = "The train leaves at seven."


def run(*line: str | Path, words: str | None = None) -> Result:
    return CliRunner().invoke(app.cli, [*map(str, line)], input=words)


def heard(file: Path) -> np.ndarray:
    return soundfile.read(file, dtype="int16")[0]


class TimedSpeaker:
    """A loudspeaker that records when it gets samples."""

    heard: list[float] = []  # noqa: RUF012

    def __enter__(self) -> TimedSpeaker:
        self.heard.clear()
        return self

    def __exit__(self, *_: object) -> None: ...

    def write(self, pcm: Any) -> None:
        self.heard.append(time.monotonic())


@pytest.fixture(autouse=True)
def _loudspeaker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_output, "Loudspeaker", TimedSpeaker)


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    noise = np.random.default_rng(0).standard_normal(3 * SAMPLE_RATE) * 3000
    return save_sound(tmp_path / "me.wav", noise.astype(np.int16))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command without --server has a fake engine of its own."""

    def opened(models: Sequence[str], *_: Any, **changes: Any) -> FakeEngine:
        return FakeEngine()

    checkpoint = fake_capabilities()
    monkeypatch.setattr(app_context, "open_engine", opened)
    monkeypatch.setenv("TIMBRE_PROCESS", "shared")
    monkeypatch.setattr(app_context, "read_capabilities", lambda models: {"fake": checkpoint})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], None),
        (["--voice", "VIVIAN", "--instruct", "softly", "--language", "german"], None),
        (["--voice", "my own", "--greedy"], None),
        (["--blend", "ryan:0.7,My Own:0.3"], None),
        (["--blend", "ryan:0.7,My Own:0.3", "--spherical"], None),
        (["--reference", "me.wav", "--consent"], None),
        (
            ["--reference", "me.wav", "--consent", "--transcript", "what I said"],
            None,
        ),
        (["--voice", "ryan"], "Grüße aus 北京, again and again."),
    ],
    ids=str,
)
def test_a_server_says_what_would_be_said_here(
    url: str,
    here: None,
    library: Library,
    reference: Path,
    tmp_path: Path,
    options: list[str],
    words: str | None,
) -> None:
    library.save("My Own", Clone(np.ones(16, np.float32)))
    options = [str(reference) if option == "me.wav" else option for option in options]
    options = ["say", "-" if words else TEXT, "--seed", "5", *options]
    there = run(*options, "--server", url, "--out", tmp_path / "there.wav", words=words)
    assert there.exit_code == 0, there.output
    local = ["--model", "fake", "--data", tmp_path]
    assert run(*options, *local, "--out", tmp_path / "here.wav", words=words).exit_code == 0
    np.testing.assert_array_equal(heard(tmp_path / "there.wav"), heard(tmp_path / "here.wav"))
    assert re.search(r"there\.wav: [\d.]+ s, first audio \d+ ms.*, seed 5\n", there.stdout)


def test_voices_of_a_server_are_listed_as_here(
    url: str, here: None, library: Library, tmp_path: Path
) -> None:
    library.save("My Own", Clone(np.ones(16, np.float32)), note="mine")
    library.save("Old Man", Design("An old man."))
    there = run("voices", "--server", url).stdout.splitlines()
    result = run("voices", "--model", "fake", "--data", tmp_path).stdout.splitlines()
    built_in = {"Bright host", "Calm guide", "Warm narrator"}  # come with the program
    named = [{tuple(line.split("\t")[:2]) for line in lines} for lines in (there, result)]
    assert named[0] == {each for each in named[1] if each[0] not in built_in}
    assert {"ryan\tpreset", "My Own\tsaved\tmine", "Old Man\tdesign"} <= set(there)


def test_server_and_key_may_stand_in_the_environment(
    engine: Engine, library: Library, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve(create_api(engine, library, ApiSettings(keys=("right",))))
    monkeypatch.setenv("TIMBRE_SERVER", f"{url.removeprefix('http://')}/v1/")
    for line in (["voices"], ["say", TEXT], ["say", "-"]):
        result = run(*line, "--key", "wrong", words="Hello there.")
        assert result.exit_code == 2
        assert "valid key" in result.stderr
    monkeypatch.setenv("TIMBRE_KEY", "right")
    assert "ryan\tpreset" in run("voices").stdout


@pytest.mark.parametrize("words", [None, "One two three four five six seven eight nine ten."])
def test_it_is_played_while_it_is_made(library: Library, serve: Serve, words: str | None) -> None:
    with FakeEngine(costs=Costs(step=0.02)) as engine:
        url = serve(create_api(engine, library))
        result = run("say", "-" if words else TEXT * 3, "--server", url, words=words)
    assert result.exit_code == 0, result.output
    assert TimedSpeaker.heard[-1] - TimedSpeaker.heard[0] > 0.1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["say", TEXT, "--voice", "bob"], "ryan, vivian"),
        (["say", "-", "--voice", "bob"], "ryan, vivian"),
        (["say", TEXT, "--language", "klingon"], "english"),
        (["say", TEXT, "--reference", "gone.wav", "--consent"], "no file"),
        (["say", TEXT, "--voice", "ryan", "--blend", "ryan"], "--voice and --blend"),
        (["say", TEXT, "--out", "take.aac"], r"\.wav, \.mp3"),
        (["say", "x" * 10_000], "too long|characters"),
    ],
)
def test_refusals_are_as_plain_as_here(
    url: str, line: list[str], says: str, tmp_path: Path
) -> None:
    out = [] if "--out" in line else ["--out", tmp_path / "take.wav"]
    refused(run(*line, *out, "--server", url, words="Hello."), says)
    assert list(tmp_path.glob("take*")) == []


def test_words_that_are_none_are_refused(url: str, tmp_path: Path) -> None:
    result = run("say", "-", "--server", url, "--out", tmp_path / "take.wav", words=" \n")
    refused(result, "nothing to say")


def test_a_writer_may_think_longer_than_a_socket_may_be_silent(
    engine: Engine, library: Library, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly() -> Iterator[str]:
        yield "Well "
        time.sleep(1.5)
        yield "then, good night."

    monkeypatch.setattr(websocket_speech, "STILL", 0.1)
    url = serve(create_api(engine, library, ApiSettings(idle_timeout=1.0)))
    server = Server(Connection(url), Console())
    options = SayOptions(words=Words(slowly()), seed=5, out=tmp_path / "slow.wav")
    assert speak(options, server.open(options), Console()).ending == "finished"
    at_once = run("say", "-", "--seed", 5, "--server", url, "--out", tmp_path / "at_once.wav",
                  words="Well then, good night.")  # fmt: skip
    assert at_once.exit_code == 0, at_once.output
    np.testing.assert_array_equal(heard(tmp_path / "slow.wav"), heard(tmp_path / "at_once.wav"))


def refused(result: Result, says: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert re.search(f"^error: .*({says})", result.stderr.strip().splitlines()[-1])


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """The address of a server that is not Timbre: it sends its reply and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def answer() -> None:
            with door.accept()[0] as wire:
                wire.recv(1 << 16)
                wire.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
        thread.join(30)


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Seed: 1\r\n"


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (b"", "broke off"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nlost", "not as a Timbre server"),
        (OK + b"Content-Length: 900\r\n\r\n", "broke off"),
        (OK + b"Content-Length: 0\r\n\r\n", "broke off"),
    ],
)
@pytest.mark.parametrize("text", [TEXT, "-"])
def test_a_server_that_is_none(tmp_path: Path, reply: bytes, says: str, text: str) -> None:
    with answering(reply) as url:
        says = "No server|not as a Timbre|broke off" if text == "-" else says
        refused(
            run("say", text, "--out", tmp_path / "take.wav", "--server", url, words="Hi."), says
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "says"), [("127.0.0.1:1", "No server answers"), ("ftp://x", "no address")]
)
def test_an_address_with_nobody_there(address: str, says: str) -> None:
    for line in (["voices"], ["say", TEXT], ["say", "-"]):
        refused(run(*line, "--server", address, words="Hi."), says)


@pytest.mark.parametrize("line", [["voices"], ["say", TEXT], ["say", "-"]])
def test_a_server_without_tls_is_told_from_none(url: str, line: list[str]) -> None:
    refused(
        run(*line, "--server", url.replace("http:", "https:"), words="Hi."),
        "No secure connection to https://.*http or https",
    )


def test_a_step_that_fails_is_told(library: Library, serve: Serve, tmp_path: Path) -> None:
    with FakeEngine(costs=Costs(step=0.02)) as engine:
        url = serve(create_api(engine, library))
        engine.worker.fault = later(engine, 5)
        result = run("say", TEXT * 3, "--server", url, "--out", tmp_path / "take.wav")
    refused(result, "fell over|step")
    assert not list(tmp_path.glob("take*"))


def later(engine: FakeEngine, steps: int) -> Callable[[object], None]:
    """A fault after some steps, once."""
    left = iter(range(steps))

    def fault(plan: object) -> None:
        if next(left, None) is None:
            engine.worker.fault = lambda plan: None
            raise RuntimeError("the device fell over")

    return fault


def test_an_interrupt_frees_the_servers_slot_and_keeps_what_was_made(
    library: Library, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def progress(self: Console, text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Console, "progress", progress)
    with FakeEngine(costs=Costs(step=0.02)) as engine:
        url = serve(create_api(engine, library))
        out = tmp_path / "part.wav"
        result = run("say", TEXT * 9, "--server", url, "--out", out)
        assert result.exit_code == 130
        assert len(heard(out)) > 0
        wait_until(lambda: engine.stats().running == 0)
        assert engine.stats().ended["cancelled"] == 1


def test_another_program_that_answers_is_told_from_timbre(tmp_path: Path) -> None:
    other = FastAPI()
    page = HTMLResponse("<html>Hello.</html>")
    other.add_api_route("/{path:path}", lambda: page, methods=["GET", "POST"])
    with serving(other) as url:
        for line in (("voices",), ("say", TEXT, "--out", tmp_path / "x.wav")):
            result = run(*line, "--server", url)
            assert result.exit_code == REFUSED
            assert "not as a Timbre server does" in result.output
