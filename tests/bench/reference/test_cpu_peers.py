"""Other CPU engines beside this one: starts in turn, and one table of what they report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import typer

from bench.reference import cpu_peer, cpu_peers
from bench.reference.cpu_peer import RATE, Report, listen, measured

REPORT = Report("1.2", load=0.4, first=1.1, factor=2.9, resident=1190.4, anonymous=500)


def speak(seed: int, frames: int) -> Iterator[bytes]:
    """Frames of 80 ms, in pieces of four."""
    for _ in range(frames // 4):
        yield bytes(4 * RATE * 80 // 1000)


def test_a_request_is_timed_to_its_first_piece_and_its_end() -> None:
    spoken = listen(speak, 1, 40)
    assert spoken.audio == pytest.approx(3.2)
    assert 0 < spoken.first <= spoken.whole


def test_an_engine_that_says_nothing_has_no_figures() -> None:
    with pytest.raises(RuntimeError, match="said nothing"):
        listen(speak, 1, 0)


def test_other_ways_to_begin_are_measured_where_an_engine_has_them() -> None:
    plain = measured(lambda: ("1.2", speak, {}), requests=2, frames=40)
    both = measured(lambda: ("1.2", speak, {"pieces": speak}), requests=2, frames=40)
    assert plain.version == "1.2"
    assert not plain.early
    assert both.early["pieces"] > 0
    assert 0 < plain.anonymous <= plain.resident


def test_a_start_is_a_process_whose_last_line_counts() -> None:
    printed = f"print('Loading'); print('''{json.dumps(asdict(REPORT))}''')"
    peer = cpu_peers.Peer("vox-tts, q8", (sys.executable, "-c", printed))
    assert cpu_peers.start(peer, ["--threads", "2"]) == REPORT


def test_a_start_that_fails_is_named() -> None:
    peer = cpu_peers.Peer("vox-tts, q8", (sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(SystemExit, match="vox-tts, q8 ended with 3"):
        cpu_peers.start(peer, [])


def test_a_row_has_medians_and_the_extremes_of_the_factor() -> None:
    starts = [
        replace(REPORT, factor=factor, load=load) for factor, load in ((2, 9), (4, 1), (3, 2))
    ]
    *_, other, ours = cpu_peers.table(
        {"vox": starts, "timbre": [replace(REPORT, early={"pieces": 0.25})]}
    )
    assert other == "| vox (1.2) | 3.00 (2.00 to 4.00) | 1100 | 2.0 | 1190 (500) |"
    assert "1100; pieces 250" in ours


def test_engines_take_turns_with_bits_and_the_other_one_only_with_its_files(tmp_path: Path) -> None:
    python, model = Path("python"), tmp_path / "model"
    names = [each.name for each in cpu_peers.peers(python, model, ["4", "8"], tmp_path, None)]
    assert names == ["timbre, 4 bits", "vox-tts, q4", "timbre, 8 bits", "vox-tts, q8"]
    *_, last = cpu_peers.peers(python, model, ["8"], tmp_path, tmp_path / "Q8_0")
    assert last.name == "qwen-native, Q8_0"
    assert {
        each.command[3] for each in cpu_peers.peers(python, model, ["8"], tmp_path, tmp_path)
    } == {*cpu_peer.ENGINES}


def test_what_is_missing_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="no checkpoint folder"):
        cpu_peers.main(tmp_path, tmp_path / "python")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(typer.BadParameter, match="PEERS/bin/pip install vox-tts"):
        cpu_peers.main(tmp_path, tmp_path / "python")
    with pytest.raises(typer.BadParameter, match="4 or 8"):
        cpu_peers.main(tmp_path, tmp_path / "python", bits="5")
