"""The studio at an address: what it answers to programs, and how it listens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import InvalidSetting
from studio.page import listen

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a program heard from the endpoints of a page."""
    visit = [sys.executable, "-m", "tests.page_visit", str(tmp_path_factory.mktemp("visit"))]
    ran = subprocess.run(visit, cwd=ROOT, capture_output=True, check=False, text=True, timeout=90)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_speak_answers_the_engines_own_samples(told: Any) -> None:
    assert told["file"] == told["expected"]


def test_stream_answers_every_chunk_once_and_in_order(told: Any) -> None:
    stream = told["stream"]
    assert stream["indexes"] == list(range(len(stream["indexes"])))
    assert stream["samples"] == len(told["expected"]) // 4


def test_voices_are_listed(told: Any) -> None:
    assert {"name": "ryan", "kind": "preset", "note": ""} in told["voices"]


def test_programs_see_named_endpoints_only(told: Any) -> None:
    assert {"/speak", "/stream", "/voices"} <= set(told["endpoints"])


def test_a_refusal_reaches_programs(told: Any) -> None:
    assert "no text" in told["refusal"]


def test_what_a_page_opens_with_passes_beside_the_queue(told: Any) -> None:
    """Else a press at that moment is lost in Gradio's browser half."""
    assert told["opening"]
    assert not any(told["opening"])


def test_a_taken_port_is_told_before_anything_is_loaded() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(InvalidSetting, match=r"taken.*--port"):
        listen("127.0.0.1", taken.getsockname()[1])
