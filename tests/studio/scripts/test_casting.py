"""Speakers and their voices."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import (
    InvalidText,
    Preset,
    UnknownVoice,
)
from studio.scripts import speaker_sex
from studio.scripts.casting import Casting, resolve_cast, suggest
from studio.scripts.model import MAX_SPEAKERS, Line, Script
from studio.scripts.speaker_sex import speaker_sexes
from studio.scripts.text.typed import script_of_text
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


def test_a_script_of_many_speakers_is_cast_quickly_and_of_too_many_refused() -> None:
    casting = Casting(default="ryan", voices={f"Who{number}": "vivian" for number in range(20_000)})
    speakers = [f"who{number}" for number in range(20_000)]
    started = time.process_time()
    assert set(casting.voices_of(speakers).values()) == {"vivian"}
    assert time.process_time() - started < 1.0
    with pytest.raises(InvalidText, match="speakers"):
        script_of_text("".join(f"Mrs {number}: ok\n\n" for number in range(MAX_SPEAKERS + 1)))


@given(
    st.lists(st.sampled_from(["Anna", "ben", "Cleo", ""]), unique=True),
    st.lists(st.sampled_from(["anna", "Ben", "x", "y"]), unique=True, min_size=1),
)
def test_a_suggested_cast_uses_voices_there_are(speakers: list[str], voices: list[str]) -> None:
    lines = (Line(id=place, text="Hello.", speaker=who) for place, who in enumerate(speakers))
    script = Script(lines=tuple(lines))
    casting = suggest(script, {voice: voice for voice in voices}, voices[0])
    for speaker in speakers:
        assert casting.voice_of(speaker) in voices
        if speaker.casefold() in {voice.casefold() for voice in voices} and speaker:
            assert casting.voice_of(speaker).casefold() == speaker.casefold()


NOTES = {
    "robert": "A calm American man with a full tone.",
    "angus": "A Scottish man, quick and friendly.",
    "karl": "The classic talking computer.",
    "iris": "A warm, unhurried woman's voice.",
    "vera": "A high, bright girl's voice.",
}
DIALOGUE = """
Mr Grey: Good evening.

Anna: Good evening.

Robin: There you are.

Kim: At last.

Robin laughed, for she knew. Kim shook his head.
"""


def test_a_first_cast_gives_women_and_men_voices_of_theirs() -> None:
    script = script_of_text(DIALOGUE)
    there = {name.capitalize(): name for name in ("clara", *NOTES)}
    cast = suggest(script, there, "clara", NOTES).voices
    assert cast == {"Mr Grey": "robert", "Anna": "iris", "Robin": "vera", "Kim": "angus"}


def test_voices_of_one_sex_alone_are_shared_by_all() -> None:
    script = script_of_text("Anna: Hello.\n\nBen: Hello.\n\nXq: Hello.")
    cast = suggest(script, {"x": "x", "y": "y"}, "z", {"x": "a man", "y": "a man"}).voices
    assert set(cast) == {"Anna", "Ben", "Xq"}
    assert set(cast.values()) == {"x", "y"}


@pytest.mark.parametrize(
    ("text", "sex"),
    [
        ("Mrs Thomas: Hello.", "female"),
        ("Dr Smith: Hello.\n\nDr Smith took off his coat.", "male"),
        ("王小姐：你好。", "female"),
        ("小明：你好。\n\n小明说他来了。", "male"),
        ("Giulia Rossi: Ciao.", "female"),
        ("Sasha: Hello.\n\nSasha saw Ben. He waved.", None),
        ("Altuğ: Gel.\n\nAltuğ, hım, peki.", None),
        ("Sasha: Hello.\n\nSasha took her hat, and Sasha put on his coat.", None),
    ],
)
def test_name_and_text_tell_whether_a_speaker_is_a_woman(text: str, sex: str | None) -> None:
    script = script_of_text(f"Ben: Yes.\n\n{text}\n\n{text}")
    speaker = next(who for who in script.speakers if who not in ("", "Ben"))
    assert speaker_sexes(script).get(speaker) == sex


@pytest.mark.parametrize(
    ("name", "sex"),
    [("Gwendolen", "female"), ("Algernon", "male"), ("Dr Jane Smith", "female"),
     ("Old Piotr", "male"), ("Priya", "female"), ("Matthäus", "male"), ("田中花子", "female"),
     ("健太郎", "male"), ("Alex", None)],
)  # fmt: skip
def test_given_names_of_many_languages_are_known(name: str, sex: str | None) -> None:
    assert speaker_sex.sex_of_name(name) == sex


def test_titles_are_of_one_sex_and_given_names_are_many() -> None:
    titles = speaker_sex.TITLES
    assert not {*titles["female"].split()} & {*titles["male"].split()}
    assert len(speaker_sex.given_names()) > 3_000


PAIR = {"w1": "A woman.", "w2": "A woman.", "w3": "A girl.", "m1": "A man.", "m2": "A man."}


@given(st.lists(st.sampled_from(["Xq", "Zorb", "Mara", "Ben", "Qa", "Vex"]), unique=True))
def test_who_is_unknown_gets_the_other_sex_than_the_speaker_before(speakers: list[str]) -> None:
    lines = (Line(id=place, text="Hello.", speaker=who) for place, who in enumerate(speakers))
    voices = {voice: voice for voice in PAIR}
    cast = suggest(Script(lines=tuple(lines)), voices, "narrator", PAIR).voices
    sexes = ["female" if cast[who].startswith("w") else "male" for who in speakers]
    known = {"Mara": "female", "Ben": "male"}
    assert all(known.get(who, sex) == sex for who, sex in zip(speakers, sexes, strict=True))
    for before, who, sex in zip(sexes, speakers[1:], sexes[1:], strict=False):
        assert who in known or sex != before
    if len(speakers) > 1 and speakers[0] not in known and speakers[1] in known:
        assert sexes[0] != sexes[1]
