"""Speakers are distinct and fixed, descriptions fit, and the named ones are heard most."""

from __future__ import annotations

import math
import re
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.quality.voice_card.plan import AXES, DESIGNS
from training.data.speakers import (
    HELD_OUT,
    MALE_STYLE,
    NAMED,
    STYLES,
    TILT,
    TRAINED,
    all_speakers,
    held_out,
)
from training.data.voice_descriptions import NOUNS, describe, gender, levels
from training.teachers.phonemes import PhonemizedText
from training.teachers.synthesize import NAMED_SHARE, draw_utterance


def test_speakers_are_mixtures_and_the_same_every_time() -> None:
    speakers = all_speakers()
    assert len(speakers) == TRAINED + HELD_OUT
    assert len({speaker.name for speaker in speakers}) == len(speakers)
    assert len({speaker.shares for speaker in held_out()}) > HELD_OUT / 2
    for speaker in speakers:
        assert math.isclose(sum(speaker.shares), 1)
        assert 70 < speaker.hertz < 390
        assert all(abs(axis) < 1.5 for axis in speaker.axes())
    assert not set(held_out()) & set(speakers[:TRAINED])


def test_any_timbre_has_any_pitch() -> None:
    """In mixtures a man's style means a low pitch; of the wide ones some are high, and the other
    way round."""
    wide = [
        speaker for speaker in all_speakers()[len(NAMED) : TRAINED] if speaker.tilt**2 > TILT**2
    ]
    men = [speaker.hertz for speaker in wide if speaker.shares[MALE_STYLE] > 0.65]
    women = [speaker.hertz for speaker in wide if speaker.shares[MALE_STYLE] == 0]
    assert min(men) < 85
    assert max(men) > 150
    assert min(women) < 150
    assert max(women) > 330


def test_there_are_men_and_women() -> None:
    for cast, fewest in ((all_speakers(), 0.35), (held_out(), 0.3), (list(NAMED), 0.3)):
        for who in ("man", "woman"):
            assert sum(gender(speaker) == who for speaker in cast) >= fewest * len(cast)
    assert sum(speaker.shares[MALE_STYLE] > 0.5 for speaker in NAMED) >= 5


@given(st.integers(0, TRAINED - 1), st.integers())
@settings(deadline=None)
def test_a_description_never_names_the_wrong_end(index: int, seed: int) -> None:
    """Nor the wrong sex; how high a voice is may be among those of its sex or among all."""
    speaker = all_speakers()[index]
    spoken_of = set(re.findall("[a-z]+", describe(speaker, Random(seed)).lower()))
    levels_of, general = levels(speaker, gender(speaker)), levels(speaker)
    ends = {"pitch": ("low", "high"), "tone": ("dark", "bright"), "pace": ("fast", "slow")}
    for axis, (under, over) in ends.items():
        if max(levels_of[axis], general[axis]) <= 0:
            assert over not in spoken_of
        if min(levels_of[axis], general[axis]) >= 0:
            assert under not in spoken_of
    sexes = {
        "man": {"man", "male", "gentleman", "boy"},
        "woman": {"woman", "female", "lady", "girl"},
    }
    for who, words in sexes.items():
        if gender(speaker) != who:
            assert not words & spoken_of


def test_what_the_bench_asks_for_is_never_learned() -> None:
    words = [word for low, high in AXES.values() for word in low + high]
    requested = {frame.format(word).lower() for frame in DESIGNS for word in words}
    random, voices = Random(7), all_speakers()[:TRAINED]
    descriptions = {describe(random.choice(voices), random) for _ in range(20_000)}
    assert not requested & {each.lower().rstrip(".") for each in descriptions}
    assert all(any(noun in each.lower() for each in descriptions) for noun in NOUNS["woman"])


def test_every_voice_is_heard_and_the_named_ones_more_often() -> None:
    random, texts = Random(0), [PhonemizedText("A lamp.", "ɐ lˈæmp.", [1] * 8)]
    drawn = [draw_utterance(texts, random)[0] for _ in range(150_000)]
    counts = np.bincount([each.speaker for each in drawn], minlength=TRAINED)
    named = counts[: len(NAMED)]
    assert abs(named.sum() / len(drawn) - NAMED_SHARE) < 0.02
    assert named.min() > 10 * np.median(counts)
    assert counts.min() > 0
    styles = np.bincount([each.style for each in drawn], minlength=len(STYLES))
    assert styles.min() > 0
    assert styles[0] > 0.8 * len(drawn)
