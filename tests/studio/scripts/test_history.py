"""What can be taken back is exactly what was, in a bounded number of bytes."""

from __future__ import annotations

import secrets

import pytest

from engine import Message
from studio.scripts import Casting, Project, history, script_of_text
from studio.scripts.history import History

NAME = Message("the text")


def project(text: str) -> Project:
    return Project(title=text[:20], script=script_of_text(text), casting=Casting(default="ryan"))


def test_states_come_back_as_they_were() -> None:
    past = History()
    states = [project(f"Sentence {number}. Grüße, 北京.") for number in range(3)]
    for state in states:
        past.push("a", state, NAME)
    assert past.states("a") == states
    assert past.last("a") == NAME
    for state in states[::-1]:
        assert past.latest("a") == state
        past.drop_latest("a")
    assert "a" not in past
    assert past.states("a") == []
    assert past.last("a") is None
    assert past.size == 0


def test_they_are_bounded_in_number_and_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_BYTES", 100_000)
    past = History()
    for number in range(50):
        past.push("small", project(f"Sentence {number}."), NAME)
    assert len(past._past["small"]) == history.MOST_STEPS
    for number in range(40):
        past.push(f"large {number}", project(secrets.token_hex(5_000)), NAME)
        assert past.size <= 100_000
    held = sum(len(state.data) for states in past._past.values() for state in states)
    assert held == past.size > 50_000
    assert "small" not in past
    assert "large 39" in past


def test_a_state_that_is_larger_than_all_room_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_BYTES", 10)
    past = History()
    past.push("a", project("A sentence."), NAME)
    assert ("a" in past, past.size) == (False, 0)
