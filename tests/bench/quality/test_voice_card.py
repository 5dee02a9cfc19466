"""A card asks, keeps and counts what it says; its judges are tested in test_judges.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.quality.voice_card import __main__ as voice_card
from bench.quality.voice_card import card, figures, judge, plan, recordings
from bench.quality.voice_card.plan import QUICK, Sizes, Take
from bench.quality.voice_card.recordings import Spoken
from bench.quality.voice_card.speak import keep, plans, speak_model
from studio.cli.app_context import MINI
from training.data import text_templates
from training.data.text import HELD_OUT_SENTENCES, words_of

QUICK_ENDS = replace(QUICK, ends=20)
SMALL = Sizes(sentences=1, clones=1, steps=1, designs=4, styles=1, ends=2, long=0)


# What is asked for.


def test_nothing_that_is_asked_for_is_held_out_text_or_a_pattern() -> None:
    """Held-out sentences choose between trainings; what a card asks was never looked at."""
    shipped = {" ".join(words_of(text)) for text in HELD_OUT_SENTENCES.read_text().splitlines()}
    patterns = [
        re.compile(re.sub(r"\\\{[a-z]+\d?\\\}", "(.+)", re.escape(pattern)))
        for pattern in text_templates.PATTERNS
        if pattern.count("{") < 4 and len(re.sub(r"{\w+}", "", pattern)) > 8
    ]
    texts = [text for _, text in plan.sentences()] + plan.endings(1000) + plan.reference_texts()
    assert len(plan.sentences()) == len({text for _, text in plan.sentences()}) == 100
    assert len(set(plan.endings(1000))) == 1000
    assert not shipped & {" ".join(words_of(text)) for text in texts}
    assert [text for text in texts if any(each.fullmatch(text) for each in patterns)] == []


def test_what_is_kept_together_is_asked_one_after_another() -> None:
    """A group that comes twice would be written over itself."""
    takes = [take for some in plans(["a", "b", "c"], {"held_out": ["d"]}, QUICK_ENDS, plan.PARTS)
             for take in some]  # fmt: skip
    groups = [group for group, _ in groupby(take.group for take in takes)]
    assert len(groups) == len(set(groups))
    ends = [take for take in takes if take.part == "ends"]
    assert [take.voice for take in ends] == sorted(take.voice for take in ends)
    assert len({take.text for take in ends}) == len(ends) == QUICK_ENDS.ends


def test_twenty_sentences_have_all_kinds() -> None:
    kinds = {kind for kind, _ in plan.sentences()[: QUICK.sentences]}
    assert kinds == {kind for kind, _ in plan.sentences()}
    assert {*figures.KINDS} < kinds


def test_designs_are_pairs_with_the_same_text_and_seed() -> None:
    takes = list(plan.designs(Sizes()))
    assert len(takes) == 2 * 160
    for low, high in zip(takes[::2], takes[1::2], strict=True):
        assert (low.text, low.seed, low.kind) == (high.text, high.seed, high.kind)
        assert low.instruct != high.instruct


@given(st.dictionaries(st.text(min_size=1), st.floats(60, 400), min_size=2, max_size=14))
def test_pairs_are_of_low_and_high_voices_each_once(pitches: dict[str, float]) -> None:
    pairs = plan.pairs_by_pitch(pitches)
    assert len(pairs) == min(plan.BLENDED, len(pitches) // 2)
    assert all(pitches[low] <= pitches[high] for low, high in pairs)
    assert len({voice for pair in pairs for voice in pair}) == 2 * len(pairs)


def test_a_blend_goes_from_one_voice_to_the_other() -> None:
    takes = list(plan.blends([("a", "b")], SMALL))
    assert [take.share for take in takes] == [n / 8 for n in range(9)]


# How it is kept.


def pcm(length: int) -> Any:
    return (np.random.default_rng(length).normal(size=length) * 3000).astype(np.int16)


@pytest.mark.parametrize("kind", recordings.formats())
def test_a_group_comes_back_as_it_was(tmp_path: Path, kind: str) -> None:
    spoken = [Spoken(Take("g", "v", str(n), n), pcm(n), "length") for n in (4_000, 0, 12_345)]
    recordings.write(tmp_path, "g", spoken, kind)
    back = list(recordings.read(tmp_path, "g"))
    assert recordings.groups(tmp_path) == ["g"]
    assert [each.take for each in back] == [each.take for each in spoken]
    assert [each.reason for each in back] == ["length"] * 3
    assert [len(each.pcm) for each in back] == [4_000, 0, 12_345]
    if kind != "ogg":  # which is near, not alike
        assert all((a.pcm == b.pcm).all() for a, b in zip(back, spoken, strict=True))


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    takes, requested = [Take(f"g{n // 2}", "v", str(n), n) for n in range(6)], list[str]()

    def say(some: Iterable[Take]) -> Iterator[Spoken]:
        for take in some:
            requested.append(take.text)
            yield Spoken(take, pcm(10))

    keep(tmp_path, takes[2:4], say, "wav")
    keep(tmp_path, takes, say, "wav", by=0.0)
    assert requested == ["2", "3"]
    keep(tmp_path, takes, say, "wav")
    assert requested == ["2", "3", "0", "1", "4", "5"]
    assert recordings.groups(tmp_path) == ["g0", "g1", "g2"]


def test_a_folder_belongs_to_one_model(tmp_path: Path) -> None:
    """Weights tell models apart: not the name of a folder."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.safetensors").write_bytes(name.encode())
    one, two = ([tmp_path / f"{name}.safetensors"] for name in ("one", "two"))
    recordings.claim(tmp_path / "model", "models/one", one)
    recordings.claim(tmp_path / "model", "elsewhere/one", one)
    with pytest.raises(SystemExit, match=r"spoken by models/one, not by models/two: use another"):
        recordings.claim(tmp_path / "model", "models/two", two)
    assert recordings.groups(tmp_path / "model") == []


def test_groups_without_a_note_are_the_next_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recordings.write(tmp_path, "g", [Spoken(Take("g", "v", "A lamp.", 1), pcm(10))], "wav")
    recordings.claim(tmp_path, "models/one", [])
    recordings.claim(tmp_path, "models/one", [])
    assert capsys.readouterr().out.count("taken to be spoken by models/one") == 1


def test_somebody_has_to_speak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["voice_card", "speak", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        voice_card.main()
    assert "Give --teacher, --codec or --model" in capsys.readouterr().err


def test_what_is_not_judged_yet_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More sentences, more of them for DNSMOS, and takes that were spoken anew."""
    calls = list[int]()

    def judged(each: Spoken, clean: bool) -> judge.Judged:
        calls.append(each.take.seed)
        seconds = len(each.pcm) / recordings.SAMPLE_RATE
        found: dict[str, Any] = {"take": asdict(each.take), "reason": each.reason}
        found |= dict.fromkeys(("pitch", "spread", "voiced", "centroid"), 1.0)
        return judge.Judged(**found, seconds=seconds, clean=3.0 if clean else None)

    def judge_again(sentences: int, clean: int) -> list[int]:
        calls.clear()
        assert judge.judge_group(tmp_path, "voices.v", sentences, clean) == len(calls)
        return list(calls)

    monkeypatch.setattr(judge, "judged", judged)
    spoken = [Spoken(Take("voices.v", "v", str(n), n), pcm(1000 + n)) for n in range(6)]
    recordings.write(tmp_path, "voices.v", spoken, "wav")
    assert judge_again(4, 2) == [0, 1, 2, 3]
    assert judge_again(4, 2) == judge_again(2, 1) == []
    assert judge_again(4, 3) == [2]
    assert judge_again(6, 3) == [4, 5]
    spoken[1] = replace(spoken[1], pcm=pcm(999))
    recordings.write(tmp_path, "voices.v", spoken, "wav")
    assert judge_again(6, 0) == [1]
    rows = judge.read_judged(tmp_path)
    assert [row.take["seed"] for row in rows] == list(range(6))
    assert [row.clean for row in rows] == [3.0, None, 3.0, None, None, None]


def test_silence_is_clean_only_where_that_was_asked() -> None:
    silence = Spoken(Take("voices.v", "v", "A lamp.", 1), pcm(0))
    assert (judge.judged(silence, True).clean, judge.judged(silence, False).clean) == (1.0, None)


@pytest.mark.slow
def test_a_model_says_what_is_asked(tmp_path: Path) -> None:
    """Voices, clones of one of them, designs and ends of the embedded model."""
    speak_model(str(MINI), tmp_path / "model", None, SMALL, ("voices",), "wav", 8)
    (first,) = recordings.read(tmp_path / "model", "voices.clara")
    recordings.write(tmp_path / "references", "held_out", [first], "wav")
    speak_model(str(MINI), tmp_path / "model", tmp_path / "references", SMALL, plan.PARTS, "wav", 8)
    there = {group.split(".")[0] for group in recordings.groups(tmp_path / "model")}
    assert there == set(plan.PARTS) - {"long"}
    spoken = [
        each
        for group in recordings.groups(tmp_path / "model")
        for each in recordings.read(tmp_path / "model", group)
    ]
    assert {each.reason for each in spoken} == {"finished"}
    assert min(len(each.pcm) for each in spoken) > 0.5 * recordings.SAMPLE_RATE


# How it is counted.


def row(voice: str = "a", group: str = "voices.a", angle: float = 0.0, **known: Any) -> Any:
    take = {"group": group, "voice": voice, "text": "A lamp.", "kind": "", "share": 0.0}
    take |= {name: known.pop(name) for name in list(known) if name in take}
    return {
        "take": take,
        "reason": "finished",
        "seconds": 1.0,
        "pitch": 100.0,
        "natural": 4.0,
        "clean": None,
        "said": 2,
        "wrong": 0,
        "unsaid_end": 0,
        "beyond": 0,
        "drift": 0.0,
        "who": ((np.cos(angle), np.sin(angle)),),
        **known,
    }


def test_voices_have_means_the_least_and_their_errors() -> None:
    rows = [row(natural=4.0, clean=3.0), row(natural=3.0, wrong=1), row("b", natural=4.5)]
    found = figures.named_figures(rows)
    assert found["natural"] == pytest.approx(11.5 / 3)
    assert found["natural_least"] == 3.5
    assert found["clean"] == 3.0
    assert found["errors"] == pytest.approx(100 / 6)
    each = figures.voices_figures([row(angle=0), row(angle=0.2), row("b", angle=1.0)])
    assert each["a"]["own"] == pytest.approx(np.cos(0.2))
    assert each["a"]["next"] == each["b"]["next"] == pytest.approx(np.cos(0.9))


def test_a_clone_is_nearest_to_its_own_or_not() -> None:
    references = [row("a", "held_out", 0.0), row("b", "held_out", 1.0)]
    clones = [row("a", "vector.held_out", 0.4), row("b", "vector.held_out", 0.4)]
    assert figures.clone_figures("vector", clones, references)["vector_nearest"] == 50


def test_a_stranger_has_a_sex_and_semitones() -> None:
    references = [row("joe", "strangers", pitch=100.0), row("slt", "strangers", pitch=200.0)]
    got = [row("joe", "vector.strangers", pitch=170.0), row("slt", "vector.strangers", pitch=200.0)]
    found = figures.stranger_figures("vector", got, references)
    assert (found["vector_sex"], found["vector_near_pitch"]) == (50, 50)


def test_designs_go_the_way_that_they_name() -> None:
    right = [row(kind="pace", seconds=1.0), row(kind="pace", seconds=1.2)]
    wrong = [row(kind="pitch", pitch=120.0), row(kind="pitch", pitch=110.0)]
    found = figures.design_figures(right + wrong)
    assert (found["designs"], found["designs_pace"], found["designs_pitch"]) == (50, 100, 0)


def test_instructions_are_measured_against_none() -> None:
    rows = [row(kind="plain", spread=4.0, voiced=0.8), row(kind="slowly", seconds=1.3)]
    rows[1] |= {"spread": 2.0, "voiced": 0.4}
    slow = figures.style_rows(rows)["slowly"]
    assert slow["duration"] == pytest.approx(1.3)
    assert (slow["liveliness"], slow["voiced"]) == (0.5, 0.5)


def test_ends_are_early_with_words_and_time_lacking_and_missing_with_too_much_of_both() -> None:
    whole = [row() for _ in range(16)]
    early = [row(unsaid_end=1, seconds=0.5), row(reason="incomplete")]
    missing = [row(beyond=3, seconds=2.5), row(reason="length", seconds=9.0)]
    misheard = [row(unsaid_end=1), row(beyond=3), row(seconds=0.5), row(seconds=2.5)]
    assert figures.ended(whole + early + missing + misheard) == (early, missing)


@given(st.lists(st.floats(50, 400), min_size=9, max_size=9, unique=True), st.integers(1, 6))
def test_steps_in_order_are_counted_either_way(values: list[float], at: int) -> None:
    for each in (sorted(values), sorted(values, reverse=True)):
        assert figures.in_order(each) == 9
    values.sort()
    values[at], values[at + 1] = values[at + 1], values[at]
    assert figures.in_order(values) == 8


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        ([1, 2, 9, 3, 4, 5, 6, 7, 8], 8),  # one far off
        ([1, 3, 2, 5, 4, 7, 6, 9, 8], 5),
        ([1, 1, 1, 1, 5, 5, 5, 5, 5], 2),  # a switch
    ],
)
def test_ways_that_are_no_ways(values: Sequence[float], ordered: int) -> None:
    assert figures.in_order(values) == ordered


def test_blends_are_as_good_as_their_worst_step() -> None:
    voices = [row("a", angle=0.0), row("b", angle=1.0)]
    steps = [
        row("a+b", "blends.a-b", n / 8, share=n / 8, pitch=100.0 + n, natural=4 - n / 8)
        for n in range(9)
    ]
    found = figures.blend_figures(steps, voices)
    assert found == {"blends_pitch": 9, "blends_who": 9, "blends_natural": 3.0}


def test_what_was_missed_is_bold_and_what_was_not_measured_is_no_line() -> None:
    shown = figures.whole({"model": [row(natural=3.0)], "teacher": [row(natural=4.2)]})
    text = card.markdown(shown)
    assert "| DistillMOS, named voices | ≥ 4 | **3** | 4.2 |" in text
    assert "blends in order" not in text
    assert "| a | 3 / 4.2 |" in text
