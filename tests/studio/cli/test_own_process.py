"""Where an engine runs, and its process before it is known what it is to open."""

from __future__ import annotations

import sys

import pytest

from engine import InvalidSetting, boot_ahead
from studio.cli import own_process as module
from studio.cli.early_process import is_likely
from studio.cli.own_process import own_process, process_ahead
from studio.settings import StudioSettings


@pytest.mark.parametrize(
    ("process", "device", "gpu", "apart"),
    [
        ("auto", "auto", False, sys.platform == "linux"),
        ("auto", "cpu", True, sys.platform == "linux"),
        ("auto", "auto", True, sys.platform == "linux"),
        ("auto", "cuda:1", True, sys.platform == "linux"),
        ("own", "cuda:1", True, True),
        ("shared", "cpu", False, False),
    ],
)
def test_an_engine_has_a_process_of_its_own(
    process: str, device: str, gpu: bool, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "may_have_gpu", lambda: gpu)
    settings = StudioSettings(process=process, device=device)  # type: ignore[arg-type]
    assert own_process(settings) is apart


def test_a_process_of_its_own_is_refused_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(InvalidSetting, match="TIMBRE_PROCESS"):
        own_process(StudioSettings(process="own"))
    assert not own_process(StudioSettings(device="cpu"))


def test_an_engine_that_shares_this_process_takes_no_other() -> None:
    with process_ahead(StudioSettings(process="shared")) as booted:
        assert booted is None


@pytest.mark.skipif(sys.platform != "linux", reason="begun on Linux alone")
@pytest.mark.parametrize(
    ("begun_for_cpu", "process", "device", "taken"),
    [
        (True, "auto", "cpu", True),
        (False, "auto", "cuda:1", True),
        (True, "auto", "cuda", False),
        (False, "auto", "cpu", False),
        (True, "shared", "cpu", False),
    ],
)
def test_what_was_begun_early_is_taken_or_ends(
    begun_for_cpu: bool, process: str, device: str, taken: bool
) -> None:
    settings = StudioSettings(process=process, device=device)  # type: ignore[arg-type]
    with (
        boot_ahead(on_cpu=begun_for_cpu) as early,
        process_ahead(settings, early) as booted,
    ):
        assert (booted is early) is taken
        assert (booted is None) is (process == "shared")
        assert (early.process.poll() is None) is taken


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="begun on Linux alone")


@LINUX
@pytest.mark.parametrize("line", ["say Hello.", "serve", "serve --port 80", "say - --out a.wav"])
def test_a_command_that_will_speak_here_begins_early(line: str) -> None:
    assert is_likely(line.split(), {"TIMBRE_PORT": "80", "TIMBRE_DEVICE": ""})


@pytest.mark.parametrize(
    ("line", "environment"),
    [
        ("", {}),
        ("voices", {}),
        ("say --help", {}),
        ("say Hello. --server http://there", {}),
        ("say Hello. --server=http://there", {}),
        ("say Hello. --device cuda", {}),
        ("serve --replicas 2", {}),
        ("say Hello.", {"TIMBRE_SERVER": "http://there"}),
        ("say Hello.", {"TIMBRE_PROCESS": "shared"}),
        ("serve", {"SPACES_ZERO_GPU": "1"}),
    ],
)
def test_others_do_not(line: str, environment: dict[str, str]) -> None:
    assert not is_likely(line.split(), environment)
