"""Names of other services: each stands for a voice of its sex, as the speech itself is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.quality.acoustic_features import pitch
from engine import (
    MINI,
    Blend,
    Clone,
    Library,
    Preset,
    SpeechRequest,
    UnknownVoice,
    open_engine,
    read_capabilities,
)
from engine.testing import fake_capabilities
from studio.voices.consent import blend_consent
from studio.voices.foreign_names import FOREIGN_VOICES, VOICE_IDS, traits_of
from studio.voices.voice_catalog import Choices
from tests.support.tab_makers import some_clone

TEXT = "The night train was late again, so we walked home along the river."
BETWEEN = 165.0  # Hz: men's medians lie below, women's above
KOKORO = 54
OPENAI = "alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse"
QWEN = "aiden dylan eric ono_anna ryan serena sohee uncle_fu vivian"
# Written here once more by hand, so that a slip in the table is seen.
MEN = """
ash ballad cedar echo fable onyx verse ryan dylan eric aiden uncle_fu adam antoni arnold josh sam
brian george daniel callum charlie liam will chris bill roger
"""
WOMEN = """
alloy coral marin nova sage shimmer vivian serena sohee ono_anna rachel domi bella elli sarah aria
laura charlotte alice matilda jessica lily
"""


@pytest.fixture(scope="module")
def aliases() -> Mapping[str, str]:
    return Choices(read_capabilities([MINI]), Library(Path("nowhere"))).aliases()


@pytest.fixture(scope="module")
def pitches(aliases: Mapping[str, str]) -> Mapping[str, float]:
    """Of every voice of the embedded model that a name stands for: median Hz of a sentence."""
    voices = sorted(set(aliases.values()))
    with open_engine([MINI], "cpu", max_num_seqs=4) as engine:
        lines = [SpeechRequest(TEXT, Preset(name), seed=5, live=False) for name in voices]
        streams = [engine.submit(line) for line in lines]
        heard = [np.concatenate([chunk.pcm for chunk in stream]) for stream in streams]
    return {name: pitch(pcm / np.float32(32768)) for name, pcm in zip(voices, heard, strict=True)}


def test_every_name_is_spoken_by_its_sex(
    aliases: Mapping[str, str], pitches: Mapping[str, float]
) -> None:
    assert set(aliases) == set(FOREIGN_VOICES)
    wrong = {
        name: (voice, round(pitches[voice]))
        for name, voice in aliases.items()
        if (pitches[voice] < BETWEEN) != (FOREIGN_VOICES[name].sex == "m")
    }
    assert not wrong
    assert len(pitches) >= 8  # names do not all sound alike


def test_the_table_is_complete_and_right() -> None:
    kokoro = {name for name in FOREIGN_VOICES if name[1:3] in ("f_", "m_")}
    assert len(kokoro) == KOKORO
    assert all(FOREIGN_VOICES[name].sex == name[1] for name in kokoro)
    assert {*OPENAI.split(), *QWEN.split()} <= set(FOREIGN_VOICES)
    assert {FOREIGN_VOICES[name].sex for name in MEN.split()} == {"m"}
    assert {FOREIGN_VOICES[name].sex for name in WOMEN.split()} == {"f"}
    assert set(VOICE_IDS.values()) <= set(FOREIGN_VOICES)


@pytest.fixture
def choices(tmp_path: Path) -> Choices:
    """Speakers of Qwen's, and no saved voices."""
    return Choices({"qwen": fake_capabilities()}, Library(tmp_path))


@pytest.mark.parametrize(
    ("name", "sex"),
    [
        ("Alloy", "f"),
        (" onyx ", "m"),
        ("JBFqnCBsd6RMkjVDRZzb", "m"),
        ("21m00Tcm4TlvDq8ikWAM", "f"),
        ("zm_099", "m"),  # of Kokoro's later models
        ("zf_001", "f"),
    ],
)
def test_a_request_may_name_any_of_them(choices: Choices, name: str, sex: str) -> None:
    voice = choices.requested(name)
    assert isinstance(voice, Preset)
    assert traits_of(voice.name).sex == sex
    assert not choices.unlike(name)


@pytest.mark.parametrize("text", ["af_bella(2)+af_sky(1)", "alloy:0.5,nova:0.5", "Ryan+am_adam"])
def test_blends_may_be_of_them(choices: Choices, text: str) -> None:
    for blend in (choices.blend(text), choices.requested(text)):
        assert isinstance(blend, Blend)
        names = [part.strip() for part in text.replace(",", "+").split("+")]
        for name, (voice, _) in zip(names, blend.parts, strict=True):
            assert isinstance(voice, Preset)
            assert traits_of(voice.name).sex == traits_of(name.split("(")[0].split(":")[0]).sex
    with pytest.raises(UnknownVoice):
        choices.blend("alloy:1,nobody:1")


def test_a_voice_that_is_here_by_that_name_comes_first(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.save("Nova", some_clone())
    choices = Choices({"qwen": fake_capabilities()}, library)
    assert isinstance(choices.requested("nova"), Clone)
    assert isinstance(choices.blend("nova:1,alloy:1").parts[0][0], Clone)
    assert isinstance(choices.requested("ryan"), Preset)


def test_where_no_sex_is_known_the_answer_says_so(tmp_path: Path) -> None:
    """A model without speakers has saved voices to speak for other names."""
    library = Library(tmp_path)
    capabilities = replace(fake_capabilities(), speakers=(), preset=False)
    choices = Choices({"base": capabilities}, library)
    assert choices.alias("alloy") is None
    library.save("Somebody", some_clone())
    assert choices.unlike("alloy") == "Somebody"
    library.save("Anna", some_clone(), note="A calm woman.")
    assert choices.alias("alloy") == "Anna"
    assert not choices.unlike("alloy")


def test_a_blend_has_the_consent_of_who_stands_for_a_name(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.save("Somebody", some_clone(), consent=False)
    capabilities = replace(fake_capabilities(), speakers=(), preset=False)
    choices = Choices({"base": capabilities}, library)
    parts = choices.blend_parts("alloy:0.5,nova:0.5")
    assert parts == ["Somebody", "Somebody"]
    assert not blend_consent(parts, library)
