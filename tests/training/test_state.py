"""States in pieces, weights alone and means: what is lacking is told, never left out silently."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from training import state


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state of 101 to 110 pieces."""
    path = tmp_path / "talker.pt"
    state.save({"talker": {"a": torch.arange(2000.0)}}, path)
    monkeypatch.setattr(state, "PIECE", path.stat().st_size // 101)
    return path


def test_more_than_a_hundred_pieces_come_together(tmp_path: Path, saved: Path) -> None:
    pieces = state.split(saved, tmp_path / "pieces")
    assert len(pieces) > 100
    joined = state.join(tmp_path / "pieces", "talker.pt", tmp_path / "again" / "talker.pt")
    assert joined.read_bytes() == saved.read_bytes()


@pytest.mark.parametrize("missing", [0, 7, -1])
def test_a_missing_piece_is_named(tmp_path: Path, saved: Path, missing: int) -> None:
    pieces = state.split(saved, tmp_path / "pieces")
    pieces[missing].unlink()
    named = pieces[missing - 1].name if missing == -1 else pieces[missing].name
    with pytest.raises(SystemExit, match=named):
        state.join(tmp_path / "pieces", "talker.pt", tmp_path / "again.pt")
    assert not (tmp_path / "again.pt").exists()


def test_no_pieces_at_all_are_no_state(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"talker\.pt\.00"):
        state.join(tmp_path, "talker.pt", tmp_path / "again.pt")


def test_pieces_of_a_longer_state_are_replaced(tmp_path: Path, saved: Path) -> None:
    state.split(saved, tmp_path / "pieces")
    state.save({"talker": {"a": torch.arange(100.0)}}, saved)
    pieces = state.split(saved, tmp_path / "pieces")
    assert sorted(tmp_path.glob("pieces/*")) == sorted(pieces)


def test_a_state_without_known_networks_is_not_saved_as_weights(tmp_path: Path) -> None:
    state.save({"model": {"a": torch.ones(2)}}, tmp_path / "other.pt")
    with pytest.raises(SystemExit, match="none of codec"):
        state.save_weights(tmp_path / "other.pt", tmp_path / "small.pt")


def test_what_a_mean_leaves_out_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = {"talker": {"a": torch.ones(2), "b": torch.ones(3)}, "phones": {"c": torch.ones(1)}}
    there = {"talker": {"a": torch.ones(2), "b": torch.ones(4), "d": torch.ones(1)}}
    for name, each in (("here", here), ("there", there)):
        state.save(each, tmp_path / f"{name}.pt")
    parts = [(tmp_path / "here.pt", 1.0), (tmp_path / "there.pt", 1.0)]
    state.save_mean(parts, tmp_path / "mean.pt")
    printed = capsys.readouterr().out
    assert "talker: left out, not in one shape in all states: b, d" in printed
    assert "phones: left out, not in one shape in all states: c" in printed
    state.save({"phones": here["phones"]}, tmp_path / "there.pt")
    state.save({"talker": here["talker"]}, tmp_path / "here.pt")
    with pytest.raises(SystemExit, match="no weights in common"):
        state.save_mean(parts, tmp_path / "none.pt")


def test_weights_that_stay_as_they_are_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    network = nn.Linear(2, 3)
    saved = {"weight": torch.ones(3, 2), "bias": torch.ones(2)}
    found = state.matching_weights(network, saved)
    assert "Linear: 1 of 2 weights are not the saved ones (bias, …)" in capsys.readouterr().out
    assert torch.equal(found["weight"], saved["weight"])
    assert torch.equal(found["bias"], network.bias)
    state.matching_weights(network, found)
    assert capsys.readouterr().out == ""
