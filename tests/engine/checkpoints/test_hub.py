"""Models by hub id: downloads from a hub on loopback, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.checkpoints.hub import resolve
from engine.errors import CheckpointError
from tests.support.loopback_hub import COMMIT, REPOSITORY, Hub, running_hub
from tests.support.programs import CACHE, ROOT

LARGE = 24_000_000  # more than the hub's library reads at once
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def hub(golden_dir: Path) -> Iterator[Hub]:
    with running_hub(golden_dir / "custom_voice-1b7") as hub:
        yield hub


def command(arguments: tuple[str, ...], environment: dict[str, str], output: list[Path]) -> None:
    """`app.py` in this process, which has not imported the hub's library yet: what that reads of
    the environment is read here."""
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(output, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.argv = ["app.py", *arguments]
    runpy.run_path("app.py", run_name="__main__")


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    """Processes that begin with all that `app.py` imports, where a process can be forked."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield multiprocessing.get_context("spawn")
        return
    from multiprocessing import forkserver  # not everywhere

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["app", __name__])
    yield context
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # it would outlive its tests


@pytest.fixture
def run(hub: Hub, tmp_path: Path, context: Any) -> Run:
    """`app.py` with an empty cache in `tmp_path`, and this hub."""

    def run(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HF_", "HUGGING", "TIMBRE_"))
        }
        environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "cache")}
        environment |= {"TIMBRE_DATA": str(tmp_path / "data"), "TIMBRE_CACHE": str(CACHE)}
        output = [tmp_path / "stdout", tmp_path / "stderr"]
        process = context.Process(target=command, args=(arguments, environment | changes, output))
        process.start()
        process.join(120)
        assert process.exitcode is not None, "it goes on and on"
        printed = [path.read_text("utf-8") for path in output]
        return subprocess.CompletedProcess(arguments, process.exitcode, *printed)

    return run


def messages(done: subprocess.CompletedProcess[str]) -> str:
    """The one error line of a command that failed plainly."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.rpartition("error: ")[2]


def downloads(hub: Hub) -> list[str]:
    return [line for line in hub.seen if line.startswith("GET") and "/resolve/" in line]


def test_a_hub_id_is_downloaded_once_and_speaks(run: Run, hub: Hub, tmp_path: Path) -> None:
    out = tmp_path / "hi.wav"
    first = run("say", "Hi", "--model", REPOSITORY, "--max-frames", "3", "--out", str(out))
    assert first.returncode == 0, first.stderr
    assert "Fetching" in first.stderr  # the progress bar
    assert out.stat().st_size > 3 * 1920
    assert not any(line.split()[1].endswith((".bin", ".md")) for line in downloads(hub))
    hub.seen.clear()
    listed = run("voices", "--model", REPOSITORY)
    assert listed.returncode == 0, listed.stderr
    assert "vivian" in listed.stdout
    assert not downloads(hub)


@pytest.mark.parametrize("revision", ["v1", COMMIT])
def test_a_revision_is_named_behind_an_at_sign(run: Run, hub: Hub, revision: str) -> None:
    done = run("info", "--model", f"{REPOSITORY}@{revision}")
    assert done.returncode == 0, done.stderr
    assert "3 preset speakers" in done.stdout


def test_a_cached_model_needs_no_hub(run: Run, hub: Hub) -> None:
    assert run("info", "--model", REPOSITORY).returncode == 0
    hub.seen.clear()
    assert run("info", "--model", REPOSITORY, HF_HUB_OFFLINE="1").returncode == 0
    assert not hub.seen
    away = run("info", "--model", REPOSITORY, HF_ENDPOINT="http://127.0.0.1:9")
    assert away.returncode == 0, away.stderr


@pytest.mark.parametrize(
    ("model", "changes", "advice"),
    [
        ("timbre/none", {}, "Check the name"),
        (f"{REPOSITORY}@v9", {}, "has no revision 'v9'"),
        (REPOSITORY, {"HF_HUB_OFFLINE": "1"}, "Unset HF_HUB_OFFLINE"),
        (REPOSITORY, {"HF_ENDPOINT": "http://127.0.0.1:9"}, "Check the network"),
    ],
)
def test_refusals_say_what_to_do(
    run: Run, model: str, changes: dict[str, str], advice: str
) -> None:
    assert advice in messages(run("info", "--model", model, **changes))


def test_a_gated_model_says_how_to_get_in(run: Run, hub: Hub) -> None:
    hub.gated = True
    error = messages(run("info", "--model", REPOSITORY))
    assert "Accept its terms" in error
    assert "HF_TOKEN" in error


def test_a_broken_transfer_is_resumed_where_it_broke(
    run: Run, hub: Hub, golden_dir: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "repository" / "speech_tokenizer"
    folder.mkdir(parents=True)
    config = (golden_dir / "custom_voice-1b7" / "config.json").read_bytes()
    (folder.parent / "config.json").write_bytes(config)
    large = os.urandom(LARGE)
    (folder / "large.safetensors").write_bytes(large)
    hub.folder, hub.cuts = folder.parent, 1
    done = run("info", "--model", REPOSITORY)
    assert "Trying to resume" in done.stderr
    assert any("bytes=" in line for line in downloads(hub))
    kept = next((tmp_path / "cache").rglob("large.safetensors"))
    assert kept.read_bytes() == large


def test_a_hub_that_keeps_breaking_off_is_told_and_tried_again(run: Run, hub: Hub) -> None:
    hub.cuts = 1000
    assert "try again" in messages(run("info", "--model", REPOSITORY))
    hub.cuts = 0
    assert run("info", "--model", REPOSITORY).returncode == 0


def test_a_full_disk_is_told_and_tried_again(run: Run, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a small disk here")
    try:
        error = messages(run("info", "--model", REPOSITORY, HF_HOME=str(small)))
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
    assert "no space left" in error
    assert run("info", "--model", REPOSITORY).returncode == 0


def test_a_folder_is_taken_as_it_is(golden_dir: Path) -> None:
    folder = golden_dir / "custom_voice-1b7"
    assert resolve(str(folder)) == folder


def test_home_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "config.json").write_text("{}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert resolve("~/own") == tmp_path / "own"


def test_a_local_folder_comes_before_the_hub(
    run: Run, hub: Hub, golden_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / REPOSITORY
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert resolve(REPOSITORY).resolve() == folder.resolve()
    assert not hub.seen


@pytest.mark.parametrize(
    "model",
    ["", " ", "a/b/c", "../x", "/no/such", "a", "~nobody/x", "\0", "é/ü", "x" * 5000]
    + [f"a/b@{revision}" for revision in ("/abs", "../..", "a/../b", "a//b", "a/", "..", ".git")],
)
def test_neither_a_folder_nor_an_id(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where ../x is nothing
    with pytest.raises(CheckpointError, match="neither a folder nor a hub id"):
        resolve(model)


def test_a_file_is_no_checkpoint(golden_dir: Path) -> None:
    with pytest.raises(CheckpointError, match="Name the folder"):
        resolve(str(golden_dir / "custom_voice-1b7" / "config.json"))


def test_a_folder_without_a_config_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a model"):
        resolve(str(tmp_path))
