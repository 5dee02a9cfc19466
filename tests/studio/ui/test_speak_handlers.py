"""The Speak tab's handlers: fields to requests, takes kept and shown. Without a page."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import (
    Blend,
    Clone,
    Design,
    InvalidSetting,
    Library,
    Preset,
    SamplingParams,
    SpeechRequest,
    UnknownVoice,
    learn_shift,
    speaker_space,
    speaking_seconds,
)
from engine.testing import FakeCheckpoint, FakeEngine, fake_capabilities
from studio.context import Studio
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Take, Takes
from studio.ui import take_card
from studio.ui.speech_form import (
    SpeechForm,
    asked_for,
    draw_seed,
    read_seed,
)
from studio.ui.tabs.mood_field import listed_anew
from studio.ui.tabs.speak_handlers import ADVANCED, SHOWN, WELCOME, SpeakHandlers, read

TEXT = "Good evening, everybody."
FIELD_NAMES = ("text", "voice", "language", "instruct", "seed")
PLAIN = [""] * len(ADVANCED)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library(tmp_path / "voices")
    library.save("My Own", Clone(np.ones(16, np.float32)), note="mine")
    library.save("Narrator", Design("A warm voice."))
    return library


@pytest.fixture
def studio(tmp_path: Path, library: Library) -> Iterator[Studio]:
    with FakeEngine() as engine:
        yield Studio(engine, library, LiveTakes(), Takes(tmp_path / "takes"))


def pressed(studio: Studio, owner: str = "me", **changes: Any) -> list[Any]:
    """What the player is told of a press of Speak."""
    fields = {"text": TEXT, "voice": "ryan", "language": "auto", "instruct": "", "seed": "3"}
    advanced = changes.pop("advanced", PLAIN)

    async def press() -> list[Any]:
        requested = {**fields, **changes}.values()
        return [each async for each in SpeakHandlers(studio).press(owner, *requested, *advanced)]

    return asyncio.run(press())


def heard(payloads: list[Any]) -> bytes:
    """The sound of the payloads, each laid at its place."""
    sound = bytearray()
    for each in payloads:
        pcm = base64.b64decode(each["pcm"])
        sound[2 * each["start"] : 2 * each["start"] + len(pcm)] = pcm
    return bytes(sound)


def event(**data: Any) -> Any:
    return SimpleNamespace(_data=data)


def test_what_is_heard_and_kept_is_what_the_engine_made(studio: Studio) -> None:
    payloads = pressed(studio)
    expected = studio.engine.submit(SpeechRequest(TEXT, Preset("ryan"), seed=3)).collect()
    assert heard(payloads) == expected.tobytes()
    kept = payloads[-1]["ended"]["take"]
    np.testing.assert_array_equal(studio.takes.pcm(kept), expected)
    assert studio.takes.get(kept).seed == 3


@pytest.mark.parametrize("voice", ["ryan", "My Own", "Narrator", "ryan(2)+vivian(1)", "", None])
def test_every_kind_of_voice_speaks(studio: Studio, voice: str | None) -> None:
    assert pressed(studio, voice=voice)[-1]["ended"]["reason"] == "finished"


@pytest.mark.parametrize("way", ["alloy:0.5,nova:0.5", "af_bella(2)+am_adam(1)"])
def test_a_blend_of_other_services_voices_is_that_of_those_they_stand_for(
    studio: Studio, way: str
) -> None:
    names = studio.choices().blend_parts(way)
    assert not {"alloy", "nova", "af_bella", "am_adam"} & set(names)
    weights = (2.0, 1.0) if "(" in way else (0.5, 0.5)
    parts = zip(map(Preset, names), weights, strict=True)
    voice = Blend(tuple(parts))
    expected = studio.engine.submit(SpeechRequest(TEXT, voice, seed=3)).collect()
    payloads = pressed(studio, voice=way)
    assert heard(payloads) == expected.tobytes()
    take = studio.takes.get(payloads[-1]["ended"]["take"])
    assert studio.choices().blend_parts(take.voice) == names  # it can be asked for again


@pytest.mark.parametrize("voice", ["My Own", "ryan+vivian"])
def test_an_instruction_for_another_voice_is_left_out(studio: Studio, voice: str) -> None:
    ended = pressed(studio, voice=voice, instruct="softly")[-1]["ended"]
    assert ended["reason"] == "finished"
    assert studio.takes.get(ended["take"]).settings["instruct"] == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"text": ""}, "no text"),
        ({"voice": "gone"}, "No voice"),
        ({"voice": "gone+ryan"}, "No voice"),
        ({"seed": "-1"}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"language": "klingon"}, "speaks"),
        ({"advanced": ["9", *PLAIN[1:]]}, "temperature"),
        ({"advanced": ["warm", *PLAIN[1:]]}, "Temperature must be a number"),
        ({"advanced": ["", "2.5", *PLAIN[2:]]}, "top_k"),
        ({"advanced": [*PLAIN[:-1], "-1"]}, "length"),
    ],
)
def test_a_refusal_is_told(studio: Studio, changes: dict[str, Any], says: str) -> None:
    [payload] = pressed(studio, **changes)
    assert payload["ended"]["reason"] == "refused"
    assert says in payload["ended"]["message"]


def test_a_typed_seed_is_used(studio: Studio) -> None:
    seeds = {pressed(studio, seed="")[-1]["ended"]["seed"] for _ in range(3)}
    assert len(seeds) == 3
    assert pressed(studio, seed="3")[-1]["ended"]["seed"] == 3


def test_the_longest_is_in_seconds(studio: Studio) -> None:
    payload = pressed(studio, text="x" * 100, advanced=[*PLAIN[:-1], "0.8"])[-1]
    assert payload["ended"]["reason"] == "length"
    assert payload["made"] == 0.8 * 24_000


def test_listening_to_a_voice_keeps_nothing(studio: Studio) -> None:
    async def listen() -> list[Any]:
        return [each async for each in SpeakHandlers(studio).sample("vivian")]

    assert heard(asyncio.run(listen()))
    assert studio.takes.search() == []


def test_the_welcome_is_kept(studio: Studio) -> None:
    async def welcome() -> list[Any]:
        return [each async for each in SpeakHandlers(studio).welcome("me", "ryan")]

    kept = asyncio.run(welcome())[-1]["ended"]["take"]
    assert studio.takes.get(kept).text == WELCOME


def test_a_take_is_shown_with_its_seed_and_heads_the_list(studio: Studio) -> None:
    speaking = SpeakHandlers(studio)
    for _ in range(SHOWN + 2):
        number = pressed(studio)[-1]["ended"]["take"]
        kept = speaking.keep("me", True, "", event(take=number))
        listed, seed, shown, column, card, *right = kept
        assert listed.index(number) < listed.index("data-take", listed.index(number))
    assert listed.count('data-do="pick"') == SHOWN
    assert seed == str(studio.takes.get(number).seed)
    assert shown == (number, "")
    assert column["visible"]
    assert not right[0]["visible"]
    assert seed in card


def test_a_seed_is_written_only_where_it_is_locked(studio: Studio) -> None:
    speaking, number = SpeakHandlers(studio), pressed(studio)[-1]["ended"]["take"]
    seed = str(studio.takes.get(number).seed)
    assert speaking.keep("me", True, "", event(take=number))[1] == seed
    assert speaking.keep("me", False, "", event(take=number))[1] == ""
    assert speaking.lock(True, "", "me") == seed
    assert speaking.lock(True, "3", "me") == "3"
    assert speaking.lock(False, seed, "me") == ""


def test_nothing_is_shown_of_a_take_that_was_not_kept(studio: Studio) -> None:
    shown = SpeakHandlers(studio).keep("me", False, "", event(take=None))
    assert all(update["__type__"] == "update" and len(update) == 1 for update in shown)


def test_the_list_leaves_out_what_is_gone(studio: Studio) -> None:
    speaking, number = SpeakHandlers(studio), pressed(studio)[-1]["ended"]["take"]
    assert number in speaking.last("me")
    assert speaking.last("") == speaking.last("you") == take_card.EMPTY
    studio.takes.delete(number)
    assert speaking.last("me") == take_card.EMPTY


def test_takes_that_only_a_browser_listed_become_its_own(studio: Studio) -> None:
    take = studio.takes.add(np.ones(10, np.int16), "x", "ryan", 1)
    speaking = SpeakHandlers(studio)
    assert take.id in speaking.arrived("me", ["gone", take.id])
    assert speaking.arrived("you", [take.id]) == take_card.EMPTY


def test_instructions_are_closed_with_the_reason(studio: Studio, tmp_path: Path) -> None:
    plain = FakeCheckpoint(fake_capabilities(instruct=False))
    assert SpeakHandlers(studio).picked("ryan")[1]["interactive"]
    for closed in ("My Own", "ryan+vivian"):
        field = SpeakHandlers(studio).picked(closed)[1]
        assert not field["interactive"]
        assert "can't follow style instructions" in field["placeholder"]
    with FakeEngine([plain]) as engine:
        unable = Studio(engine, Library(tmp_path / "none"), LiveTakes(), studio.takes)
        assert "follows no instructions" in SpeakHandlers(unable).picked("ryan")[1]["placeholder"]


@pytest.mark.parametrize(
    ("voice", "says"),
    [
        ("ryan", "A preset voice"),
        ("eric", "from Chengdu"),
        ("My Own", "mine"),
        ("Narrator", "designed voice"),
        ("ryan(3)+vivian(1)", "Ryan 75%, Vivian 25%"),
        ("nobody", "No voice"),
        ("<b>", "&lt;b&gt;"),
    ],
)
def test_a_voice_is_described(studio: Studio, voice: str, says: str) -> None:
    assert says in SpeakHandlers(studio).about(voice)


def test_the_count_warns_of_what_will_be_refused(studio: Studio) -> None:
    most, count = studio.engine.settings.max_text, SpeakHandlers(studio).count
    assert count("  ") == ""
    assert "<b>" not in count("x" * most)
    assert "<b>" in count("x" * (most + 1))


def test_the_fields_are_filled_with_what_a_take_was_spoken_with(studio: Studio) -> None:
    speaking = SpeakHandlers(studio)
    advanced = ["0,7", "20", *PLAIN[2:-1], "8"]
    payloads = pressed(studio, instruct="softly", language="english", advanced=advanced)
    number = payloads[-1]["ended"]["take"]
    *fields, lock = speaking.fill(event(do="fill", take=number))
    fields[-1] = fields[-1]["value"]
    fields[fields.index(gr.skip())] = "pieces"  # how playback starts is no setting of a take
    assert lock
    again = pressed(
        studio, True, **dict(zip(FIELD_NAMES, fields, strict=False)), advanced=fields[5:]
    )
    assert heard(again) == heard(payloads)
    untouched = speaking.fill(event(do="star", take=number))
    assert all(update == gr.skip() for update in untouched)
    assert len(untouched) == len(fields) + 1


def test_the_menu_of_moods_leaves_alone_what_is_chosen_and_there(studio: Studio) -> None:
    """Its answer may come after a choice that was made meanwhile."""
    shift = learn_shift([(np.ones(16, np.float32), np.arange(16, dtype=np.float32))])
    studio.library.moods.save("glad", shift, speaker_space(fake_capabilities()))
    for there in ("", "glad"):
        assert "value" not in listed_anew(studio, there)
    assert listed_anew(studio, "sad")["value"] == ""


def test_a_mood_is_put_on_and_kept_with_the_take(studio: Studio) -> None:
    shift = learn_shift([(np.ones(16, np.float32), np.arange(16, dtype=np.float32))])
    studio.library.moods.save("glad", shift, speaker_space(fake_capabilities()))
    mooded = [*PLAIN, 1.0, "", "off", "glad", 0.5]
    number = pressed(studio, advanced=mooded)[-1]["ended"]["take"]
    assert studio.takes.get(number).settings["mood"] == "glad:0.5"
    *_, mood, strength, _, _ = SpeakHandlers(studio).fill(event(do="fill", take=number))
    assert (mood, strength) == ("glad", 0.5)


@given(st.text(max_size=60), st.text(max_size=60))
def test_more_text_takes_no_less_time(one: str, other: str) -> None:
    assert speaking_seconds(f"a{one}{other}a") >= speaking_seconds(f"a{one}a") >= 0


def test_a_rolled_seed_is_one() -> None:
    assert read_seed(draw_seed()) is not None


@given(
    st.sampled_from(["ryan", "ryan:1,vivian:2", ""]),
    st.integers(0, 10**18 - 1),
    st.none() | st.floats(0.1, 5),
    st.none() | st.floats(0.08, 600),
)
def test_a_card_speaks_its_take_again(
    voice: str, seed: int, temperature: float | None, longest: float | None
) -> None:
    sampling = SamplingParams(temperature=temperature)
    form = SpeechForm(TEXT, voice, "english", "", seed, sampling, longest)
    card = Take(
        id="one", text=TEXT, voice=voice, seed=seed, settings=form.settings(),
        seconds=1.0, created=0.0,
    )  # fmt: skip
    assert asked_for(Take.model_validate_json(card.model_dump_json())) == form


def test_a_name_with_a_mark_in_it_is_still_a_name(studio: Studio) -> None:
    studio.library.save("Me (again)", Clone(np.full(16, 2, np.float32)))
    assert isinstance(studio.choices().read("Me (again)"), Clone)
    with pytest.raises(UnknownVoice):
        studio.choices().read("nobody")


def test_fields_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="top_p"):
        read(TEXT, "", "auto", "", "", ["", "", "3", *PLAIN[3:]])


@given(st.text(min_size=1))
def test_what_a_person_wrote_is_never_markup(text: str) -> None:
    take = Take(id="one", text=f"<i>{text}", voice="<u>", seed=1, seconds=1.0, created=0.0)
    for shown in (take_card.card(take, ()), take_card.chooser([(take, (9,))], False)):
        assert "<i>" not in shown
        assert "<u>" not in shown
