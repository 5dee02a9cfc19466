"""Where a server's engine runs."""

from __future__ import annotations

import sys

import pytest

from engine import InvalidSetting
from studio.cli import app_context
from studio.cli.app_context import AppContext
from studio.cli.console import Console
from studio.settings import StudioSettings


@pytest.mark.parametrize(
    ("process", "device", "gpu", "own"),
    [
        ("auto", "auto", False, sys.platform == "linux"),
        ("auto", "cpu", True, sys.platform == "linux"),
        ("auto", "auto", True, False),
        ("auto", "cuda:1", True, False),
        ("own", "cuda:1", True, True),
        ("shared", "cpu", False, False),
    ],
)
def test_an_engine_on_a_cpu_has_a_process_of_its_own(
    process: str, device: str, gpu: bool, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_context, "may_have_gpu", lambda: gpu)
    settings = StudioSettings(process=process, device=device)  # type: ignore[arg-type]
    assert AppContext(settings, Console()).own_process() is own


def test_a_process_of_its_own_is_refused_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(InvalidSetting, match="TIMBRE_PROCESS"):
        AppContext(StudioSettings(process="own"), Console()).own_process()
    assert not AppContext(StudioSettings(device="cpu"), Console()).own_process()
