"""What Mini follows reaches it, what it does not is left out and told; published models get all."""

from __future__ import annotations

import pytest

from engine import Design, Preset
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.testing import fake_capabilities
from engine.voices.instructions import understood
from studio.cli.app_context import MINI

OWN = LocalCheckpoint(MINI).capabilities


@pytest.mark.parametrize(
    ("instruct", "taught"),
    [
        ("Please speak very slowly", "Speak slowly."),
        ("in a hurry", "Speak fast."),
        ("at a fast pace", "Speak fast."),
        ("Without any hurry.", "Speak slowly."),
        ("without emotion", "In a monotone."),
        ("Happy and excited!", "Very cheerful."),
        ("bored", "In a monotone."),
    ],
)
def test_what_it_was_taught_is_followed(instruct: str, taught: str) -> None:
    voice, notices = understood(Preset("clara", instruct), OWN)
    assert isinstance(voice, Preset)
    assert (voice.instruct, notices) == (taught, ())


def test_what_it_was_not_taught_is_left_out_and_told() -> None:
    voice, notices = understood(Preset("clara", "angrily, shouting"), OWN)
    assert voice == Preset("clara", "")
    assert "angrily, shouting" in notices[0]
    assert "Speak slowly." in notices[0]
    voice, notices = understood(Preset("clara", "slowly, with a British accent"), OWN)
    assert voice == Preset("clara", "Speak slowly.")
    assert "british, accent" in notices[0]


def test_words_of_a_description_are_told() -> None:
    assert understood(Design("A low, warm old man, speaking slowly."), OWN)[1] == ()
    voice, notices = understood(Design("purple bicycle Tuesday"), OWN)
    assert voice == Design("purple bicycle Tuesday")
    assert "purple, bicycle, tuesday" in notices[0]


def test_models_without_a_list_get_everything() -> None:
    any_ = fake_capabilities()
    assert understood(Preset("ryan", "angrily"), any_) == (Preset("ryan", "angrily"), ())
    assert understood(Design("purple"), any_) == (Design("purple"), ())
