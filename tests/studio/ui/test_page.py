"""The studio at an address: what it answers to programs, and how it listens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import SAMPLE_RATE, InvalidSetting
from studio.scripts.music.cue import PLAIN
from studio.server.serving import listen
from studio.voices.speaker_notes import described
from tests.support.programs import visited


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a program heard from the endpoints of a page."""
    return visited("tests.support.page_visit", str(tmp_path_factory.mktemp("visit")), timeout=600)


def test_speak_answers_the_engines_own_samples(findings: Any) -> None:
    assert findings["file"] == findings["expected"]


@pytest.mark.parametrize("way", ["no voice", "alloy", "alloy:0.5,nova:0.5"])
def test_a_voice_may_be_left_out_or_be_another_services(findings: Any, way: str) -> None:
    assert len(findings["others"][way]) > SAMPLE_RATE // 10


def test_stream_answers_every_chunk_once_and_in_order(findings: Any) -> None:
    stream = findings["stream"]
    assert stream["indexes"] == list(range(len(stream["indexes"])))
    assert stream["samples"] == len(findings["expected"]) // 4


def test_a_script_answers_its_sound_and_its_subtitles(findings: Any) -> None:
    line = len(findings["expected"]) / 4 / SAMPLE_RATE
    assert findings["script"]["captions"] == 2
    assert findings["script"]["seconds"] == pytest.approx(2 * line + 1, abs=0.01)


def test_a_script_answers_with_music_that_fades_after_its_last_line(findings: Any) -> None:
    spoken, mixed = findings["script"]["seconds"] - 1, findings["music"]["seconds"]
    assert mixed == pytest.approx(spoken + PLAIN.fade_out, abs=0.3)  # pauses of a sentence
    assert findings["music"]["captions"] == 2


def test_voices_are_listed(findings: Any) -> None:
    note = described("ryan")
    assert {"name": "ryan", "kind": "preset", "note": note} in findings["voices"]


def test_programs_see_named_endpoints_only(findings: Any) -> None:
    named = {"blend", "check", "clone", "design", "script", "speak", "stream", "voices"}
    assert set(findings["endpoints"]) == {f"/{name}" for name in named}


def test_endpoints_are_described_in_words(findings: Any) -> None:
    assert "translation_metadata" not in json.dumps(findings["endpoints"])


def test_a_refusal_reaches_programs(findings: Any) -> None:
    assert "no text" in findings["refusal"]


def test_what_a_page_opens_with_passes_beside_the_queue(findings: Any) -> None:
    """Else a press at that moment is lost in Gradio's browser half."""
    assert findings["opening"]
    assert not any(findings["opening"])


def test_a_taken_port_is_told_before_anything_is_loaded() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(InvalidSetting, match=r"taken.*--port"):
        listen("127.0.0.1", taken.getsockname()[1])
