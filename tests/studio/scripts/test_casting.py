"""Speakers and their voices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import (
    Preset,
    UnknownVoice,
)
from studio.scripts.casting import Casting, resolve_cast, suggest
from studio.scripts.importers.reader import script_of_text
from tests.support.script_makers import TEXT


def test_casting_names_everybody_without_a_voice() -> None:
    script = script_of_text(TEXT)

    def resolve(name: str) -> Preset:
        if name == "ghost":
            raise UnknownVoice("There is no voice 'ghost'.")
        return Preset(name)

    casting = Casting(default="ryan", voices={"ANNA": "vivian"})
    voices = resolve_cast(script.speakers, casting, resolve)
    assert voices == {"Anna": Preset("vivian"), "Ben": Preset("ryan"), "": Preset("ryan")}
    with pytest.raises(UnknownVoice, match=r"Ben.*the narrator"):
        resolve_cast(script.speakers, casting.having(default="ghost"), resolve)


@given(
    st.lists(st.sampled_from(["Anna", "ben", "Cleo", ""]), unique=True),
    st.lists(st.sampled_from(["anna", "Ben", "x", "y"]), unique=True, min_size=1),
)
def test_a_suggested_cast_uses_voices_there_are(speakers: list[str], voices: list[str]) -> None:
    casting = suggest(speakers, {voice: voice for voice in voices}, voices[0])
    for speaker in speakers:
        assert casting.voice_of(speaker) in voices
        if speaker.casefold() in {voice.casefold() for voice in voices} and speaker:
            assert casting.voice_of(speaker).casefold() == speaker.casefold()
