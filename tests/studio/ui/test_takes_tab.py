"""The kept takes without a browser: found, compared, starred, spoken again, deleted and back."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np
import pytest

from engine import Preset, RequestError, SpeechRequest
from studio.api.bodies.schemas import SpeechBody
from studio.context import Studio
from studio.takes.downloads import MOST
from studio.takes.take_store import Take, Takes
from studio.ui.speech_form import SpeechForm
from studio.ui.tabs.take_compare import NOTHING, act, again, newest, shown, speak
from studio.ui.tabs.takes import PAGE, Page, TakesTab
from studio.ui.take_code import body_of, codes_of
from studio.ui.voice_list import found_cards
from tests.support.tab_makers import heard, payloads_of, some_clone

TEXTS = ("Good evening.", "A second take.", "The third.")


@pytest.fixture
def kept(studio: Studio) -> list[Take]:
    return [spoken(studio, SpeechForm(text, "ryan", seed=seed)) for seed, text in enumerate(TEXTS)]


def spoken(studio: Studio, form: SpeechForm) -> Take:
    return studio.takes.get(payloads_of(speak(studio, form))[-1]["ended"]["take"])


def event(**data: Any) -> Any:
    return SimpleNamespace(_data=data)


def listed(rows: str, takes: list[Take]) -> list[str]:
    return [take.text for take in takes if f'data-do="pick" data-take="{take.id}"' in rows]


@pytest.mark.parametrize(
    ("words", "which", "texts"),
    [
        ("", "all", TEXTS),
        ("TAKE second", "all", TEXTS[1:2]),
        ("", "starred", TEXTS[2:]),
        ("", "deleted", ()),
        ("nowhere", "all", ()),
    ],
)
def test_takes_are_found(
    studio: Studio, kept: list[Take], words: str, which: str, texts: tuple[str, ...]
) -> None:
    studio.takes.star(kept[2].id)
    _, rows, more = TakesTab(studio).listed(words, which, Page(), "")
    assert tuple(listed(rows, kept)) == texts
    assert not more["visible"]
    assert bool(texts) != ("timbre-empty" in rows)


def test_the_list_grows_page_by_page(studio: Studio, kept: list[Take]) -> None:
    pcm = studio.takes.pcm(kept[0].id)
    for number in range(2 * PAGE):
        studio.takes.add(pcm, f"take {number}", "ryan", number)
    tab, page = TakesTab(studio), Page()
    every = studio.takes.search()
    for changes, expected in enumerate((2 * PAGE, len(every))):
        page, after = tab.more(page, changes)
        assert after != changes  # which has the list drawn again
        turned, rows, more = tab.listed("", "all", page, "")
        assert turned == gr.skip()
        assert len(listed(rows, every)) == expected
        assert more["visible"] == (expected < len(every))
    turned, rows, _ = tab.listed("third", "all", page, "")
    assert (turned.most, listed(rows, kept)) == (PAGE, [TEXTS[2]])
    assert len(listed(tab.listed("", "all", turned, "")[1], every)) == PAGE


def test_a_guest_finds_only_what_this_browser_has_made(studio: Studio, kept: list[Take]) -> None:
    tab = TakesTab(replace(studio, guests=True))
    mine = payloads_of(speak(studio, SpeechForm("mine", "ryan"), "me"))[-1]["ended"]["take"]
    assert tab.find("", "all", "") == tab.find("", "all", "you") == []
    assert [take.id for take in tab.find("", "all", "me")] == [mine]
    assert len(TakesTab(studio).find("", "all", "")) == len(kept) + 1


def test_a_take_is_found_whether_accents_stand_apart(studio: Studio) -> None:
    for text, words in (("Zoe\u0308 went.", "ZO\u00cb"), ("Caf\u00e9.", "cafe\u0301")):
        made = studio.takes.add(np.zeros(240, np.int16), text, "ryan", 1)
        assert studio.takes.search(words) == [made]
    saved = studio.library.save("Zoe\u0308", some_clone())
    assert [card.name for card in found_cards(studio, "zo\u00eb", ())] == [saved.name]


def test_two_takes_stand_side_by_side(studio: Studio, kept: list[Take]) -> None:
    one, two, three = (take.id for take in kept)
    takes, ids = studio.takes, NOTHING
    for what, number, expected in (
        ("compare", one, (one, "")),
        ("compare", one, (one, "")),
        ("compare", two, (one, two)),
        ("compare", three, (one, three)),
        ("close", three, (one, "")),
        ("pick", two, (two, "")),
    ):
        ids = act(takes, ids, what, number)
        assert ids == expected
    _, column, card, *right = shown(studio, (one, two))
    assert column["visible"]
    assert right[0]["visible"]
    assert TEXTS[0] in card
    assert TEXTS[1] in right[1]
    assert f'data-do="hear" data-take="{one}"' in card
    assert f'data-do="hear" data-take="{two}"' in right[1]


def test_a_deleted_take_leaves_a_card_that_brings_it_back(studio: Studio, kept: list[Take]) -> None:
    tab, number = TakesTab(studio), kept[1].id
    *pair, changes = tab.act((number, ""), 0, event(do="delete", take=number))
    assert changes == 1
    assert listed(tab.listed("", "all", Page(), "")[1], kept) == [TEXTS[0], TEXTS[2]]
    assert "restore" in pair[2]
    assert "download" not in pair[2]
    assert "hear" not in pair[2]
    assert listed(tab.listed("", "deleted", Page(), "")[1], kept) == [TEXTS[1]]
    *pair, changes = tab.act((number, ""), changes, event(do="restore", take=number))
    assert changes == 2
    assert listed(tab.listed("", "all", Page(), "")[1], kept) == list(TEXTS)
    assert "restore" not in pair[2]
    assert "hear" in pair[2]


def test_all_that_are_selected_are_deleted_however_many(studio: Studio) -> None:
    added = [studio.takes.add(np.zeros(240, np.int16), "x", "ryan", 1).id for _ in range(MOST + 1)]
    TakesTab(studio).act_on_all(NOTHING, 0, event(do="delete", takes=added))
    assert studio.takes.search() == []


def test_a_star_goes_on_and_off(studio: Studio, kept: list[Take]) -> None:
    for expected in (True, False):
        act(studio.takes, NOTHING, "star", kept[0].id)
        assert studio.takes.get(kept[0].id).starred == expected


@pytest.mark.parametrize("what", ["pick", "star", "delete", "restore"])
def test_a_take_that_is_gone_is_told(studio: Studio, what: str) -> None:
    with pytest.raises(RequestError, match="no such take"):
        act(studio.takes, NOTHING, what, "gone")
    with pytest.raises(gr.Error, match="no such take"):
        TakesTab(studio).act(NOTHING, 0, event(do=what, take="../../etc/passwd"))
    assert not shown(studio, ("gone", ""))[1]["visible"]


def test_the_same_seed_speaks_the_same_samples(studio: Studio, kept: list[Take]) -> None:
    payloads = payloads_of(again(studio, event(do="same", take=kept[0].id)))
    assert heard(payloads) == studio.takes.pcm(kept[0].id).tobytes()


def test_another_try_has_all_but_the_seed_and_stands_beside_the_first(
    studio: Studio, kept: list[Take]
) -> None:
    number = payloads_of(again(studio, event(do="again", take=kept[0].id)))[-1]["ended"]["take"]
    one, other = kept[0], studio.takes.get(number)
    assert (other.text, other.voice) == (one.text, one.voice)
    assert other.seed != one.seed
    request = SpeechRequest(one.text, Preset("ryan"), seed=other.seed)
    expected = studio.engine.submit(request).collect()
    np.testing.assert_array_equal(studio.takes.pcm(number), expected)
    assert newest(studio.takes, number) == (number, one.id)
    ids, *_, changes = TakesTab(studio).keep(0, event(take=number))
    assert (ids, changes) == ((number, one.id), 1)


def test_a_take_whose_voice_is_gone_says_so(studio: Studio) -> None:
    take = studio.takes.add(np.ones(10, np.int16), "x", "somebody", 1)
    [refused] = payloads_of(again(studio, event(do="again", take=take.id)))
    assert "No voice is called" in refused["ended"]["message"]
    [refused] = payloads_of(again(studio, event(do="again", take="gone")))
    assert "no such take" in refused["ended"]["message"]


def test_a_damaged_sound_is_told_and_its_card_stays(studio: Studio, kept: list[Take]) -> None:
    studio.takes.sound(kept[0].id).write_bytes(b"not a sound")
    again = replace(studio, takes=Takes(studio.library.folder.parent / "takes"))
    _, column, card, *_ = shown(again, (kept[0].id, ""))
    assert column["visible"]
    assert TEXTS[0] in card


def test_selected_takes_are_starred_deleted_and_restored_at_once(
    studio: Studio, kept: list[Take]
) -> None:
    tab, chosen = TakesTab(studio), [kept[0].id, "gone", kept[2].id]

    def press(what: str, which: str = "all") -> list[str]:
        *_, changes = tab.act_on_all(NOTHING, 0, event(do=what, takes=chosen))
        assert changes == 1
        return listed(tab.listed("", which, Page(), "")[1], kept)

    for starred in ([TEXTS[2], TEXTS[0]], []):
        press("star")
        assert [take.text for take in studio.takes.search(starred=True)] == starred
    assert press("delete") == [TEXTS[1]]
    assert press("restore", "deleted") == []
    assert len(studio.takes.search()) == len(kept)


@pytest.mark.parametrize("guests", [False, True])
def test_an_address_shows_its_take_to_those_who_may_see_it(
    studio: Studio, kept: list[Take], guests: bool
) -> None:
    tab = TakesTab(replace(studio, guests=guests))
    ids, _, card, *_, wanted = tab.arrive(kept[1].id, kept[1].owner, 0)
    assert (ids, wanted) == ((kept[1].id, ""), "")
    assert TEXTS[1] in card
    for number, owner in (("nothing", ""), (kept[1].id, "another")):
        if guests or number == "nothing":
            with pytest.warns(UserWarning, match="."):
                assert tab.arrive(number, owner, 0)[-1] == ""


def test_a_take_is_copied_as_the_request_that_makes_it_again(studio: Studio) -> None:
    form = SpeechForm("It's late.", "ryan", instruct="softly", seed=7, mood="lower", strength=0.5)
    take = studio.takes.add(np.zeros(2400, np.int16), form.text, "ryan", 7, form.settings())
    codes = codes_of(take)
    command, address, *rest = shlex.split(codes["Copy as curl"])
    assert (command, address) == ("curl", "{page}/v1/audio/speech")
    body = json.loads(rest[rest.index("-d") + 1])
    assert body == body_of(take)
    SpeechBody.model_validate(body)
    assert body["input"] == "It's late."
    assert (body["voice"], body["seed"], body["instructions"]) == ("ryan", 7, "softly")
    assert (body["mood"], body["mood_strength"]) == ("lower", 0.5)
    compile(codes["Copy as Python"], "copied", "exec")
    assert codes["Copy link"].endswith(f"#take={take.id}")
