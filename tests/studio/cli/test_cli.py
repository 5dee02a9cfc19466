"""The command line, from arguments to files, on an engine without a model and on the tiny ones."""

from __future__ import annotations

import errno
import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner, Result

import app
from engine import (
    FRAME_SECONDS,
    SAMPLE_RATE,
    SOUND_FORMATS,
    Clone,
    EngineSettings,
    InvalidText,
    Library,
    duration,
    save_sound,
)
from engine.errors import NoLoudspeaker
from engine.testing import FakeEngine, fake_capabilities
from studio.cli import app_context, console, say_options, speech_output
from studio.cli.console import read_words
from studio.layout import ROOT

TEXT = "The train leaves at seven."


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The engines that were opened; each is a fake one."""
    calls: list[Sequence[str]] = []

    def fake_open(
        models: Sequence[str], *_: Any, weights: str, cache: Path, beside: bool, **changes: Any
    ) -> FakeEngine:
        calls.append(models)
        return FakeEngine(settings=EngineSettings(**{"max_num_seqs": 2, **changes}))

    monkeypatch.setattr(app_context, "open_engine", fake_open)
    monkeypatch.setenv("TIMBRE_PROCESS", "shared")
    monkeypatch.setattr(
        app_context, "read_capabilities", lambda models: {"fake": fake_capabilities()}
    )
    return calls


def run(*arguments: str | Path, words: str | None = None, data: Path | None = None) -> Result:
    places = ["--data", str(data)] if data else []
    line = [*map(str, arguments), *places, "--model", "fake"]
    return CliRunner().invoke(app.cli, line, input=words)


def refused(result: Result, says: str) -> None:
    """One plain line on standard error, exit code 2, nothing on standard output."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert re.search(says, last), last
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("ending", SOUND_FORMATS)
def test_say_writes_every_format_and_tells_the_figures(
    opened: list[Sequence[str]], tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"take.{ending}"
    result = run("say", TEXT, "--out", out, "--seed", 7)
    assert result.exit_code == 0, result.output
    figures = re.fullmatch(
        r".*: ([\d.]+) s, first audio \d+ ms, RTF [\d.]+, seed 7\n", result.stdout
    )
    assert figures
    assert duration(out) == pytest.approx(float(figures[1]), abs=0.1)
    assert opened == [("fake",)]


def test_one_seed_gives_one_take_and_text_may_be_an_option(
    opened: list[Sequence[str]], tmp_path: Path
) -> None:
    for name, words in (("a", [TEXT]), ("b", ["--text", TEXT])):
        run("say", *words, "--seed", "5", "--out", tmp_path / f"{name}.wav")
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()


def test_words_from_standard_input_are_the_text(
    opened: list[Sequence[str]], tmp_path: Path
) -> None:
    out = tmp_path / "take.wav"
    result = run("say", "-", "--seed", 5, "--out", out, words="Grüße aus 北京, again and again.")
    assert result.exit_code == 0, result.output
    assert "RTF" not in result.stdout  # it comes as fast as it is written
    assert duration(out) > 1


def test_every_kind_of_voice(opened: list[Sequence[str]], tmp_path: Path) -> None:
    Library(tmp_path / "voices").save("My Own", Clone(np.ones(16, np.float32)))
    reference = tmp_path / "me.wav"
    save_sound(reference, np.random.default_rng(0).integers(-9, 9, 3 * SAMPLE_RATE) * 1000)
    voices: list[list[str | Path]] = [
        ["--voice", "RYAN", "--instruct", "softly"],
        ["--voice", "my own"],
        ["--voice", "Calm guide"],
        ["--blend", "ryan:0.7,My Own:0.3", "--spherical"],
        ["--reference", reference, "--consent", "--transcript", "what I said"],
        [],
    ]
    for number, voice in enumerate(voices):
        out = tmp_path / f"{number}.wav"
        result = run("say", TEXT, *voice, "--out", out, data=tmp_path)
        assert result.exit_code == 0, result.output
        assert duration(out) > 0.5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["say", ""], "nothing to say"),
        (["say", TEXT, "--text", TEXT], "once"),
        (["say", TEXT, "--voice", "bob"], "ryan, vivian"),
        (["say", TEXT, "--voice", "ryan", "--blend", "ryan"], "--voice and --blend"),
        (["say", TEXT, "--blend", "ryan:x"], "cannot be read"),
        (["say", TEXT, "--blend", "ryan,Calm guide"], "is a designed voice"),
        (["say", TEXT, "--blend", "ryan,vivian", "--instruct", "softly"], "can't follow"),
        (["say", TEXT, "--transcript", "words"], "--reference"),
        (["say", TEXT, "--reference", "gone.wav", "--consent"], "no file"),
        (["say", TEXT, "--reference", "gone.wav"], "--consent"),
        (["say", TEXT, "--out", "take.aac"], r"\.wav, \.mp3"),
        (["say", TEXT, "--out", "gone/take.wav"], "no folder"),
    ],
)
def test_bad_orders_are_refused_before_anything_is_loaded(
    opened: list[Sequence[str]], arguments: list[str], says: str
) -> None:
    refused(run(*arguments), says)
    assert opened == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["say", "x" * 10_000], "too long|characters"),
        (["say", TEXT, "--language", "klingon"], "english"),
        (["say", TEXT, "--max-frames", "1000000"], "max_frames"),
    ],
)
def test_what_the_engine_refuses_leaves_no_file(
    opened: list[Sequence[str]], tmp_path: Path, arguments: list[str], says: str
) -> None:
    refused(run(*arguments, "--out", tmp_path / "take.wav"), says)
    assert list(tmp_path.iterdir()) == []


def interrupt(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """Ctrl-C after so many chunks."""
    heard = iter(range(10_000))

    def progress(self: console.Console, text: str) -> None:
        if next(heard) == chunk:
            raise KeyboardInterrupt

    monkeypatch.setattr(console.Console, "progress", progress)


def test_an_interrupt_keeps_what_was_made(
    opened: list[Sequence[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("say", TEXT, "--seed", 5, "--out", tmp_path / "whole.wav")
    interrupt(monkeypatch, chunk=2)
    result = run("say", TEXT, "--seed", 5, "--out", tmp_path / "part.wav")
    assert result.exit_code == 130
    assert "kept" in result.stderr
    whole, _ = soundfile.read(tmp_path / "whole.wav", dtype="int16")
    part, _ = soundfile.read(tmp_path / "part.wav", dtype="int16")
    assert 0 < len(part) < len(whole)
    np.testing.assert_array_equal(part, whole[: len(part)])


def test_an_interrupt_before_any_sound_leaves_no_file(
    opened: list[Sequence[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(speech_output, "_listen", at_once)
    result = run("say", TEXT, "--out", tmp_path / "take.wav")
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


class FakeSpeaker:
    """A loudspeaker that remembers."""

    heard: list[int] = []  # noqa: RUF012

    def __enter__(self) -> FakeSpeaker:
        return self

    def __exit__(self, *_: object) -> None: ...

    def write(self, pcm: Any) -> None:
        self.heard.append(len(pcm))


def test_without_a_file_it_is_played_and_with_play_both(
    opened: list[Sequence[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speech_output, "Loudspeaker", FakeSpeaker)
    out = tmp_path / "take.wav"
    for places, played in (([], True), (["--out", out], False), (["--out", out, "--play"], True)):
        FakeSpeaker.heard.clear()
        assert run("say", TEXT, *places).exit_code == 0
        assert (sum(FakeSpeaker.heard) > SAMPLE_RATE // 2) == played


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--language", "klingon", "--out", "a.wav"], "klingon.*auto, "),
        (["--play", "--out", "a.wav"], "--out"),
        (["--server", "http://localhost:1", "--out", "a.wav"], "--model cannot go with --server"),
        (["--server", "http://localhost:1", "--device", "cpu"], "--model and --device cannot"),
        (["--server", "http://localhost:1", "--data", "x"], "--model and --data cannot"),
        (["--profile", "fast", "--out", "a.wav"], "no profile 'fast'"),
        (["--weights", "3bit", "--out", "a.wav"], "No weights are called"),
        (["--consent", "--out", "a.wav"], "--consent is for a --reference"),
        (["--spherical", "--out", "a.wav"], "Add --blend"),
        (["--key", "sesame", "--out", "a.wav"], "--key is for a server"),
    ],
)
def test_what_cannot_be_is_refused_before_a_model_is_loaded(
    opened: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    def silent() -> FakeSpeaker:
        raise NoLoudspeaker("This machine has no loudspeaker. Write a file with --out.")

    monkeypatch.setattr(speech_output, "Loudspeaker", silent)
    refused(run("say", TEXT, *options), says)
    assert opened == []


@pytest.mark.parametrize(
    "command", [["voices"], ["settings"], ["info"], ["--help"], ["say", "-h"]], ids=" ".join
)
@pytest.mark.parametrize("reader", ["gone", "full"])
def test_an_output_that_takes_nothing_is_one_line_or_none(command: list[str], reader: str) -> None:
    line = [sys.executable, str(ROOT / "app.py"), *command]
    if reader == "full":
        with open("/dev/full", "wb") as full:
            done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 1
        assert done.stderr.decode() == (
            "error: No space left on device. Nothing more can be written there.\n"
        )
        return
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(line, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 0 or command[-1] in ("-h", "--help")  # Click's own code: 1


@pytest.mark.parametrize(
    ("text", "options", "loads"),
    [
        ("今天天气很好。", [], False),
        ("🙂", ["--language", "English"], False),
        ("今天天气很好。", ["--as-written"], True),
        ("今天 is today.", [], True),
    ],
)
def test_text_that_a_model_cannot_read_is_refused_before_it_is_loaded(
    opened: list[Sequence[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    text: str,
    options: list[str],
    loads: bool,
) -> None:
    able = fake_capabilities("mini", spoken_form=True, languages=("english",))
    monkeypatch.setattr(app_context, "read_capabilities", lambda models: {"mini": able})
    result = run("say", text, "--out", tmp_path / "take.wav", *options)
    assert bool(opened) is loads
    if not loads:
        refused(result, "mini can read none of this text: it speaks English")


@pytest.mark.parametrize("live", [True, False])
def test_a_slow_machine_is_told_to_who_listens(
    opened: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, live: bool
) -> None:
    monkeypatch.setattr("studio.cli.local_speech.describe_speed", lambda *known: "It is slow.")
    result = run("say", TEXT, "--out", "-" if live else tmp_path / "take.wav")
    assert result.exit_code == 0, result.output
    assert ("It is slow." in result.stderr) is live


def test_words_need_no_quotes(opened: list[Sequence[str]], tmp_path: Path) -> None:
    out = [tmp_path / "one.wav", tmp_path / "many.wav"]
    for words, file in zip(([TEXT], TEXT.split()), out, strict=True):
        assert run("say", *words, "--seed", "5", "--out", file).exit_code == 0
    assert out[0].read_bytes() == out[1].read_bytes()


def test_voices_of_a_server_are_of_its_models() -> None:
    refused(run("voices", "--server", "http://localhost:1"), "--model cannot go with --server")


def test_voices_and_info_load_nothing(opened: list[Sequence[str]], tmp_path: Path) -> None:
    Library(tmp_path / "voices").save("My Own", Clone(np.ones(16, np.float32)), note="mine")
    Library(tmp_path / "voices").save("Too Wide", Clone(np.ones(17, np.float32)))
    (tmp_path / "voices" / "broken").mkdir()
    listed = run("voices", data=tmp_path).stdout
    assert "ryan\tpreset\tA man with drive" in listed
    assert "My Own\tsaved\tmine\n" in listed
    assert "broken\tdamaged" in listed
    assert "Too Wide" not in listed
    result = run("info").stdout
    assert "6 preset speakers, instructions, cloning, voice design" in result
    assert "eric speaks sichuan dialect" in result
    assert opened == []


def test_without_a_model_it_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_context, "MINI", tmp_path)
    refused(CliRunner().invoke(app.cli, ["say", TEXT]), "--model")
    refused(CliRunner().invoke(app.cli, ["info", "--model", str(tmp_path)]), "config.json")


def test_a_fault_of_ours_is_one_line_too(
    opened: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("studio.cli.listing.list_voices", fail)
    result = run("voices")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "ZeroDivisionError" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ([], ["serve"]),
        (["--port", "1"], ["serve", "--port", "1"]),
        (["say", "hi"], ["say", "hi"]),
        (["--help"], ["--help"]),
    ],
)
def test_no_command_means_serve(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], command: list[str]
) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(sys, "argv", ["app.py", *arguments])
    monkeypatch.setattr(app, "cli", lambda arguments, obj: called.append(arguments))
    monkeypatch.setattr(app, "start_lean", lambda: None)
    monkeypatch.setenv("TIMBRE_PROCESS", "shared")
    app.main()
    assert called == [command]


def test_help_needs_no_torch_and_no_gradio() -> None:
    code = (
        "import sys, app\n"
        "heavy = {'torch', 'gradio', 'transformers', 'sounddevice'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False, text=True
    )
    assert ran.returncode == 0, ran.stderr


def folder_with(golden: Path, ability: str) -> Path:
    """A tiny checkpoint that has this ability."""
    from engine.checkpoints.checkpoint import LocalCheckpoint

    folders = sorted(found.parent for found in golden.glob("*/golden.json"))
    able = (at for at in folders if getattr(LocalCheckpoint(at).capabilities, ability))
    return next(able)


def test_a_real_checkpoint_speaks(golden_dir: Path, tmp_path: Path) -> None:
    folder = folder_with(golden_dir, "preset")
    out = tmp_path / "take.wav"
    line = ["say", TEXT, "--model", str(folder), "--device", "cpu", "--max-frames", "4"]
    result = CliRunner().invoke(app.cli, [*line, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert duration(out) == pytest.approx(4 * FRAME_SECONDS)


@pytest.mark.parametrize(
    ("data", "readable"), [("Grüße".encode(), True), (b"Caf\xe9 au lait", False)]
)
def test_only_utf_8_is_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, data: bytes, readable: bool
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    if readable:
        assert "".join(read_words()) == data.decode()
    else:
        with pytest.raises(InvalidText, match="UTF-8"):
            list(read_words())


@pytest.mark.parametrize("name", ["李.wav", "caf\udce9.wav"])
def test_a_name_that_the_output_cannot_write_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As on Windows where the output goes to a file, and with file names in no encoding."""
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("sys.stdout", terminal)
    console.Console().result(f"{name}: 1.00 s")
    terminal.flush()
    said = terminal.buffer.getvalue().decode("cp1252")
    assert said == f"{ascii(name)[1:-1]}: 1.00 s\n"


def test_input_that_cannot_be_read_any_more_ends_the_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As of a terminal that was closed: the speech would wait for more for ever."""

    def broken() -> Iterator[str]:
        yield "One. "
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    said, closed, words = list[str](), threading.Event(), console.Words(broken())
    console.feed(words, said.append, closed.set, console.Console())
    assert closed.wait(20)
    assert said == ["One. "]
    assert words.cut
    assert "Input/output error" in capsys.readouterr().err


def test_no_standard_input_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)  # as in `say - <&-`, and without a console on Windows
    with pytest.raises(InvalidText, match="no standard input"):
        list(read_words())


def test_a_text_that_is_cut_short_is_no_success(
    opened: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def pieces() -> Iterator[str]:
        yield "The train leaves at seven. "
        raise InvalidText("Standard input is not UTF-8 text: what follows is left out.")

    monkeypatch.setattr(say_options, "read_words", pieces)
    out = tmp_path / "take.wav"
    result = run("say", "-", "--out", out)
    assert result.exit_code == 2, result.output
    assert "what follows is left out" in result.stderr
    assert duration(out) > 0.5, "what could be read is kept"
