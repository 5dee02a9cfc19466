"""Speech: loudness, length and axes; what needs flite is skipped where it is not at hand."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.quality.acoustic_features import long_term, pitch
from training.data import flite, synthesize_corpus, text
from training.data.flite_speakers import (
    BASE,
    BASES,
    BETWEEN,
    NAMED,
    STYLES,
    TRAINED,
    Speaker,
    everyone,
    held_out,
)

SENTENCE = "He put the book back on the shelf and went to bed."
needs_flite = pytest.mark.skipif(
    not (flite.folder() / "libflite.so.1").exists(), reason="flite is not here (FLITE_ROOT)"
)


def tone(hertz: float, seconds: float = 1.5, amplitude: float = 0.1) -> synthesize_corpus.Wave:
    t = np.arange(int(seconds * synthesize_corpus.RATE)) / synthesize_corpus.RATE
    return (amplitude * np.sin(2 * np.pi * hertz * t)).astype(np.float32)


def test_a_full_tone_of_997_hertz_measures_as_the_standard_says() -> None:
    assert synthesize_corpus.loudness(tone(997, amplitude=1.0)) == pytest.approx(-3.01, abs=0.05)


@given(st.floats(100, 4000), st.floats(0.01, 0.3))
@settings(max_examples=20, deadline=None)
def test_levelled_sound_is_as_loud_as_asked(hertz: float, amplitude: float) -> None:
    levelled = synthesize_corpus.level(tone(hertz, amplitude=amplitude))
    assert synthesize_corpus.loudness(levelled) == pytest.approx(
        synthesize_corpus.LOUDNESS, abs=0.05
    )


@given(st.floats(12_000, 20_000))
@settings(max_examples=20, deadline=None)
def test_reshaping_moves_a_tone_and_keeps_its_strength(rate: float) -> None:
    source = tone(500, 1.0)
    shaped = synthesize_corpus.shape(source, rate, 0.0)
    spectrum = np.abs(np.fft.rfft(shaped))
    found = spectrum.argmax() * synthesize_corpus.RATE / len(shaped)
    assert found == pytest.approx(500 * rate / synthesize_corpus.RATE, abs=3)
    middle = shaped[len(shaped) // 4 : len(shaped) // 2]
    assert np.abs(middle).max() == pytest.approx(0.1, abs=0.01)


@given(st.integers(1, 9000))
def test_padding_fills_a_frame(samples: int) -> None:
    padded = synthesize_corpus.pad(np.ones(max(samples, 240), np.float32))
    assert len(padded) % synthesize_corpus.FRAME == 0
    assert padded[0] == 0


def test_speakers_are_distinct_and_fixed() -> None:
    speakers = everyone()
    assert speakers == everyone()
    assert len({speaker.name for speaker in speakers}) == len(speakers)
    assert not {s.name for s in speakers[:TRAINED]} & {s.name for s in held_out()}
    assert {BASES[speaker.base].voice for speaker in NAMED[:4]} == set(flite.VOICES)


def test_every_voice_is_heard_and_the_hardest_more_often() -> None:
    words, random = ["stone", "river", "letter"], Random(0)
    corpus = text.Corpus(["A stone."], ["A river."], words, [], [])
    drawn = [synthesize_corpus.choose(corpus, random).speaker for _ in range(60_000)]
    counts = np.bincount(drawn, minlength=TRAINED)
    karl, *others = counts[3], *np.delete(counts[: len(NAMED)], 3)
    assert NAMED[3].name == "karl"
    assert karl > 3 * max(others)
    assert min(others) > 10 * np.median(counts)
    assert counts.min() > 0


def test_voices_on_the_way_lie_between_their_ends() -> None:
    on_the_way = [speaker for speaker in everyone() if speaker.other is not None]
    assert len(on_the_way) == BETWEEN
    for speaker in on_the_way:
        first, second = (BASES[index] for index in (speaker.base, speaker.other))
        height = speaker.height / speaker.tract
        assert min(first.height, second.height) <= height <= max(first.height, second.height)
        assert sum(speaker.axes()[4:]) == pytest.approx(1)
    assert not any(speaker.other is not None for speaker in held_out())


@needs_flite
@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_a_named_voice_speaks_at_its_loudness(index: int) -> None:
    said = synthesize_corpus.say("The train leaves at seven forty-five.", NAMED[index])
    wave, phones = said.wave, said.phones
    assert len(wave) % synthesize_corpus.FRAME == 0
    assert len(phones) == len(wave) // synthesize_corpus.PHONE_STEP
    assert synthesize_corpus.loudness(wave) == pytest.approx(synthesize_corpus.LOUDNESS, abs=0.5)
    assert np.abs(wave).max() <= 0.951
    assert len(set(phones.tolist())) > 10


@needs_flite
def test_it_is_known_how_far_the_text_is_said() -> None:
    line = "It is 7:45, he said. Really?"
    said = synthesize_corpus.say(line, NAMED[0])
    assert len(said.places) == len(said.phones)
    assert (np.diff(said.places.astype(int)) >= 0).all()
    fricative = [index for index, name in enumerate(flite.PHONES) if name in ("f", "v")]
    number = said.places[np.isin(said.phones, fricative)]  # only "seven" and "five" have them
    assert ((number >= line.index("7")) & (number <= line.index(","))).all()
    assert line[said.places[said.phones == flite.PHONES.index("hh")][0]] == "h"


@needs_flite
def test_styles_and_pace_change_the_length() -> None:
    names = {style.name: index for index, style in enumerate(STYLES)}
    lengths = {
        name: len(
            synthesize_corpus.say("He put the book back on the shelf.", NAMED[1], names[name]).wave
        )
        for name in ("slow", "plain", "fast")
    }
    assert lengths["slow"] > lengths["plain"] > lengths["fast"]


@needs_flite
@pytest.mark.parametrize("index", range(12))
def test_a_named_voice_has_the_pitch_of_its_label(index: int) -> None:
    speaker = NAMED[index]
    wave = synthesize_corpus.say(SENTENCE, speaker).wave
    assert pitch(wave) == pytest.approx(speaker.pitch, rel=0.12)


def on_the_way(first: str, second: str, share: float, pitch: float) -> Speaker:
    return Speaker("", BASE[first], pitch, 1.0, 1.0, 0.0, other=BASE[second], share=share)


@needs_flite
@pytest.mark.parametrize("ends", [("slt", "rms"), ("slt", "awb"), ("rms", "awb"), ("rms", "rms")])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("hertz", [110.0, 150.0])
def test_a_voice_on_the_way_has_its_pitch(
    ends: tuple[str, str], share: float, hertz: float
) -> None:
    said = synthesize_corpus.say(SENTENCE, on_the_way(*ends, share, hertz))
    assert pitch(said.wave) == pytest.approx(hertz, rel=0.1)


@needs_flite
def test_the_way_leads_from_one_sound_to_the_other() -> None:
    """Long-term spectra leave the first voice and come to the second, step by step."""
    steps = [
        synthesize_corpus.say(SENTENCE, on_the_way("rms", "slt", n / 4, 130)).wave for n in range(5)
    ]
    heard = [long_term(wave) for wave in steps]
    from_first = [float(np.abs(each - heard[0]).mean()) for each in heard]
    from_second = [float(np.abs(each - heard[-1]).mean()) for each in heard]
    assert from_first == sorted(from_first)
    assert from_second == sorted(from_second, reverse=True)


@needs_flite
def test_phones_of_a_voice_on_the_way_are_where_they_are_said() -> None:
    """Its pauses are silent."""
    said = synthesize_corpus.say("Yes, he said. No, she said.", on_the_way("slt", "awb", 0.5, 150))
    loud = np.abs(said.wave).reshape(-1, synthesize_corpus.PHONE_STEP).max(1)
    inner = slice(10, -10)
    pause = said.phones[inner] == flite.PHONES.index("pau")
    assert np.median(loud[inner][pause]) < 0.1 * np.median(loud[inner][~pause])
