"""The voice picks the checkpoint, and refusals name what there is."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import ANY

import numpy as np
import pytest

from engine.errors import InvalidSetting, InvalidVoice, NotCapable, RequestError, UnknownVoice
from engine.types import Blend, Capabilities, Clone, Design, Preset, SpeechRequest, Vector, Voice
from engine.voices.blend import mix
from engine.voices.routing import cloner, describe, is_native, route


class Stub:
    """The part of a checkpoint that routing uses."""

    def __init__(self, name: str, width: int, speakers: str = "", **abilities: bool) -> None:
        self.speakers = tuple(speakers.split())
        able = {"clone": False, "design": False, "instruct": False} | abilities
        self.capabilities = Capabilities(
            name, "", width, self.speakers, (), {}, preset=bool(speakers), max_letters=1000,
            digest=f"weights of {name}", **able,
        )  # fmt: skip

    def speaker_vector(self, name: str) -> Vector:
        return np.eye(self.capabilities.width, dtype=np.float32)[self.speakers.index(name)]


CUSTOM = Stub("custom", 8, "Ryan vivian", instruct=True)
SMALL = Stub("small", 4, "ryan")
BASE = Stub("base", 8, clone=True)
DESIGN = Stub("design", 8, design=True)
ALL = {stub.capabilities.name: stub for stub in (SMALL, CUSTOM, BASE, DESIGN)}
VECTOR = np.arange(1, 9, dtype=np.float32)
IN_CONTEXT = Clone(VECTOR, "what was said", np.zeros((3, 16), np.int64))


def routed(voice: Voice, *names: str, model: str | None = None) -> tuple[str, Voice]:
    stubs = {name: ALL[name] for name in names} or ALL
    result = route(SpeechRequest("hi", voice, model=model), stubs)  # type: ignore[arg-type]
    return result.checkpoint, result.voice


def test_each_kind_of_voice_finds_its_checkpoint() -> None:
    assert routed(Preset("VIVIAN")) == ("custom", Preset("vivian"))
    assert routed(Design("calm"))[0] == "design"
    assert routed(Clone(VECTOR))[0] == "base"
    assert routed(IN_CONTEXT)[0] == "base"


def test_an_instruction_leads_to_a_checkpoint_that_follows_it() -> None:
    assert routed(Preset("ryan"))[0] == "small"
    assert routed(Preset("ryan", "softly")) == ("custom", Preset("Ryan", "softly"))


def test_a_vector_alone_can_be_spoken_by_presets_where_nothing_clones() -> None:
    assert routed(Clone(VECTOR), "small", "custom", "design")[0] == "custom"
    with pytest.raises(NotCapable, match="Base"):
        routed(IN_CONTEXT, "small", "custom", "design")


def trained(name: str) -> Clone:
    rows = np.ones((8, 8), np.float32)
    return Clone(VECTOR, model="theirs", rows=rows, digest=f"weights of {name}")


def test_a_trained_voice_is_spoken_by_its_own_weights_alone() -> None:
    assert routed(trained("custom")) == ("custom", ANY)
    assert routed(trained("base"), model="base")[0] == "base"
    with pytest.raises(InvalidVoice, match=r"trained for theirs .* Here is: small, design"):
        routed(trained("base"), "small", "design")
    with pytest.raises(InvalidVoice, match="train the voice again"):
        routed(trained("base"), model="custom")
    capabilities = {name: stub.capabilities for name, stub in ALL.items()}
    assert is_native(trained("custom"), capabilities)
    assert not is_native(trained("gone"), capabilities)


def test_a_blend_of_presets_stays_with_their_checkpoint() -> None:
    name, voice = routed(Blend(((Preset("ryan"), 1), (Preset("vivian"), 3))), "base", "custom")
    assert name == "custom"
    assert isinstance(voice, Clone)
    expected = mix([CUSTOM.speaker_vector("Ryan"), CUSTOM.speaker_vector("vivian")], [1, 3])
    np.testing.assert_array_equal(voice.vector, expected)


def test_a_blend_with_a_clone_goes_where_clones_are_spoken() -> None:
    blend = Blend(((Preset("vivian"), 1), (IN_CONTEXT, 1)), "spherical")
    name, voice = routed(blend)
    assert name == "base"
    assert isinstance(voice, Clone)
    assert not voice.in_context


def test_a_blend_of_one_voice_with_itself_is_that_voice() -> None:
    clone = Clone(VECTOR)
    _, voice = routed(Blend(((clone, 2), (clone, 1))))
    assert isinstance(voice, Clone)
    np.testing.assert_allclose(voice.vector, VECTOR, rtol=1e-6)


def test_the_model_restricts_the_choice() -> None:
    assert routed(Preset("ryan"), model="custom")[0] == "custom"
    with pytest.raises(InvalidSetting, match="small, custom, base, design"):
        routed(Preset("ryan"), model="gone")
    with pytest.raises(NotCapable):
        routed(Preset("ryan"), model="base")


@pytest.mark.parametrize(
    ("voice", "error", "says"),
    [
        (Preset("bob"), UnknownVoice, "Ryan, ryan, vivian"),
        (Clone(np.ones(5, np.float32)), InvalidVoice, "base 8"),
        (Clone(np.full(8, np.nan, np.float32)), InvalidVoice, "damaged"),
        (Design(" "), InvalidVoice, "Describe"),
        (Blend(()), InvalidSetting, "at least one"),
        (Blend(((Preset("ryan", "softly"), 1),)), NotCapable, "style instructions"),
        (Blend(((Preset("ryan"), 1), (Clone(VECTOR), 1))), InvalidVoice, "one width"),
    ],
)
def test_refusals_say_what_there_is(voice: Voice, error: type[RequestError], says: str) -> None:
    with pytest.raises(error, match=says):
        routed(voice)


def test_what_is_missing_is_named_with_what_there_is() -> None:
    with pytest.raises(NotCapable, match=r"VoiceDesign.*base \(cloning\)"):
        routed(Design("calm"), "base")
    with pytest.raises(NotCapable, match=r"follows instructions.*small \(1 preset speaker\)"):
        routed(Preset("ryan", "softly"), "small", "base")


def test_recordings_go_to_a_checkpoint_that_clones() -> None:
    assert cloner(ALL) == "base"  # type: ignore[arg-type]
    with pytest.raises(NotCapable):
        cloner({"custom": CUSTOM})  # type: ignore[dict-item]


def test_abilities_in_words() -> None:
    assert describe(CUSTOM.capabilities) == "2 preset speakers, instructions"
    assert describe(DESIGN.capabilities) == "voice design"


def test_a_vector_goes_to_the_model_it_was_made_with() -> None:
    for name in ("custom", "base"):
        assert routed(Clone(VECTOR, model=name), "custom", "base")[0] == name
    assert routed(replace(IN_CONTEXT, model="custom"), "custom", "base")[0] == "base"
    for gone in ("gone", "small", "design"):  # not here, of another width, without speakers
        assert routed(Clone(VECTOR, model=gone))[0] == "base"


@pytest.mark.parametrize("model", [None, "custom", "base"])
@pytest.mark.parametrize("parts", [("vivian",), ("ryan", "vivian"), ("vivian", VECTOR)])
def test_what_is_kept_of_a_blend_is_spoken_by_the_model_that_spoke_it(
    parts: tuple[str | Vector, ...], model: str | None
) -> None:
    voices = [Preset(part) if isinstance(part, str) else Clone(part) for part in parts]
    blend = Blend(tuple((voice, 1) for voice in voices))
    name, kept = routed(blend, "base", "custom", "design", model=model)
    assert name == (model or ("custom" if Clone not in map(type, voices) else "base"))
    assert isinstance(kept, Clone)
    assert kept.model == name
    assert routed(kept, "base", "custom", "design") == (name, kept)


def test_clones_of_one_model_are_blended_by_it() -> None:
    recorded = Clone(VECTOR, model="custom")
    assert routed(Blend(((recorded, 1), (Preset("vivian"), 1))), "base", "custom")[0] == "custom"


def test_a_named_model_speaks_voices_of_others_but_of_its_own_width() -> None:
    name, voice = routed(Blend(((Preset("ryan"), 1),)), "small", "custom", "base", model="base")
    assert name == "base"
    assert isinstance(voice, Clone)
    np.testing.assert_array_equal(voice.vector, CUSTOM.speaker_vector("Ryan"))


def test_a_voice_is_at_home_where_its_model_speaks_it() -> None:
    here = {name: able.capabilities for name, able in ALL.items()}
    for name, home in [("", True), ("base", True), ("custom", True), ("small", False)]:
        assert is_native(Clone(VECTOR, model=name), here) == home
    assert not is_native(Clone(VECTOR, model="design"), here)
    assert not is_native(Clone(VECTOR, model="gone"), here)
    assert not is_native(replace(IN_CONTEXT, model="custom"), here)
