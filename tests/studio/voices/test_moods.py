"""Moods by name: written with a voice, put on one, named in a text, learned from voices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine import (
    Clone,
    Design,
    InvalidSetting,
    InvalidVoice,
    Library,
    Mooded,
    Preset,
    UnknownVoice,
    learn_shift,
    speaker_space,
)
from engine.testing import FakeEngine, fake_capabilities
from studio.voices.moods import Moods, learn, split_mood
from studio.voices.voice_catalog import Choices

ABLE = {"fake": fake_capabilities()}
SPACE = speaker_space(fake_capabilities())


def vector(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(16).astype(np.float32)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library(tmp_path / "voices")
    library.save("anna", Clone(vector(1)), consent=True)
    shift = learn_shift([(vector(1), vector(2))])
    library.moods.save("glad", shift, SPACE, "fake", ("happy",))
    library.moods.save("elsewhere", shift, "0b6-1024")
    return library


def test_a_voice_is_written_with_its_mood(library: Library) -> None:
    choices = Choices(ABLE, library)
    voice = choices.read("anna+glad:0.5")
    assert isinstance(voice, Mooded)
    assert isinstance(voice.voice, Clone)
    assert [(mood.name, strength) for mood, strength in voice.moods] == [("glad", 0.5)]
    blend = choices.read("anna:2+ryan+gladly:0.3")
    assert isinstance(blend, Mooded)
    assert choices.blend_parts("anna:2+ryan+glad:0.3") == ["anna", "ryan"]
    assert choices.shown(choices.key("anna+glad:0.5")) == "anna(1)+glad(0.5)"
    for written in ("glad:0.5", "glad(1)+happy(1)", "anna+glad:2", "anna+elsewhere"):
        with pytest.raises((UnknownVoice, InvalidSetting)):
            choices.read(written)


def test_a_voice_has_a_name_before_a_mood(library: Library) -> None:
    library.save("glad", Clone(vector(3)), consent=True)
    assert not isinstance(Choices(ABLE, library).read("anna+glad:0.5"), Mooded)


def test_a_mood_is_put_on_voices_with_a_vector(library: Library) -> None:
    moods = Moods(ABLE, library)
    assert [each.name for each in moods.list()] == ["glad"]
    assert isinstance(moods.put_on(Preset("ryan"), "Gladly", 0.5), Mooded)
    clone = Clone(vector(5))
    recorded = Clone(vector(1), references=(("glad", clone),))
    assert moods.put_on(recorded, "glad").vector is clone.vector  # type: ignore[union-attr]
    with pytest.raises(InvalidVoice, match="described"):
        moods.put_on(Design("a man"), "glad")
    with pytest.raises(UnknownVoice, match="There are: glad"):
        moods.put_on(clone, "sad")
    assert moods.in_text("plain") == {}
    assert set(moods.in_text("[x]")) == {"glad", "happy"}


def test_strengths_are_written_with_a_colon() -> None:
    assert split_mood("glad:0.5") == ("glad", 0.5)
    assert split_mood("(gladly)") == ("gladly", 1.0)
    for wrong in ("glad:x", "glad:2", "glad:nan"):
        with pytest.raises(InvalidSetting):
            split_mood(wrong)


def test_a_mood_is_learned_from_voices(library: Library, tmp_path: Path) -> None:
    with FakeEngine() as engine:
        find = Choices(engine.capabilities(), library).read
        saved = learn(engine, library, "bright", [("ryan", "vivian"), ("anna", "anna+glad")], find)
        assert saved.card.mood is not None
        assert saved.card.mood.pairs == 2
        assert saved.mood.space == SPACE
        sound = tmp_path / "a.wav"
        sound.write_bytes(b"RIFF")
        with pytest.raises(InvalidSetting, match="--consent"):
            learn(engine, library, "sad", [(sound, "ryan")], find)
        with pytest.raises(InvalidVoice, match="the same"):
            learn(engine, library, "sad", [("ryan", "ryan")], find)
