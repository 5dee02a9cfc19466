"""The algebra of moods: properties over drawn vectors, and where a mood cannot be applied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.errors import InvalidSetting, InvalidVoice, NotCapable
from engine.testing.fake_checkpoint import FakeCheckpoint, fake_capabilities
from engine.types import Blend, Clone, Mood, Mooded, Preset, Vector
from engine.voices.mood import learn_shift, speaker_space, with_moods
from engine.voices.routing import route_voice

WIDTH = 16
HERE = {"fake": FakeCheckpoint()}
DRAWN = np.random.default_rng(43)


def vector(norm: float | None = None) -> Vector:
    drawn = DRAWN.standard_normal(WIDTH)
    scale = 1.0 if norm is None else norm / np.linalg.norm(drawn)
    return (drawn * scale).astype(np.float32)


def mood(name: str = "glad", size: float = 1.0) -> Mood:
    return Mood(name, vector() * np.float32(size), speaker_space(fake_capabilities()))


def spoken(voice: object) -> Vector:
    found = route_voice(voice, HERE).voice  # type: ignore[arg-type]
    assert isinstance(found, Clone)
    return found.vector


def test_strength_zero_is_the_voice_itself() -> None:
    plain, glad = vector(), mood()
    assert with_moods(plain, [(glad, 0.0)]).tobytes() == plain.tobytes()
    clone = Clone(plain, "said", np.zeros((3, 16), np.int64))
    assert route_voice(Mooded(clone, ((glad, 0.0),)), HERE).voice is clone
    assert route_voice(Mooded(Preset("ryan"), ((glad, 0.0),)), HERE).voice == Preset("ryan")
    blend = Blend(((Clone(plain), 1), (Clone(vector()), 2)))
    np.testing.assert_array_equal(spoken(Mooded(blend, ((glad, 0.0),))), spoken(blend))


@pytest.mark.parametrize("_", range(10))
def test_a_plus_b_less_a_is_b(_: int) -> None:
    plain, moody = vector(5.0), vector(5.0)
    shift = learn_shift([(plain, moody)]).shift
    np.testing.assert_allclose(with_moods(plain, [(Mood("m", shift), 1.0)]), moody, atol=1e-5)
    longer = moody * np.float32(1.7)  # of another norm: its direction, at the norm of A
    shift = learn_shift([(plain, longer)]).shift
    np.testing.assert_allclose(with_moods(plain, [(Mood("m", shift), 1.0)]), moody, atol=1e-5)


@pytest.mark.parametrize("_", range(10))
def test_the_norm_stays_and_order_does_not_matter(_: int) -> None:
    plain, moods = vector(), [(mood(str(i)), float(DRAWN.uniform(0, 1.5))) for i in range(4)]
    moved = with_moods(plain, moods)
    assert np.linalg.norm(moved) == pytest.approx(np.linalg.norm(plain), rel=1e-6)
    assert with_moods(plain, moods[::-1]).tobytes() == moved.tobytes()
    (first, strength), *rest = moods
    halves = [(first, strength / 2), *rest, (first, strength / 2)]
    np.testing.assert_allclose(with_moods(plain, halves), moved, atol=1e-6)


@pytest.mark.parametrize("method", ["linear", "spherical"])
def test_a_blend_of_voices_in_a_mood_is_the_blend_in_that_mood(method: str) -> None:
    one, two, glad, tired = Clone(vector()), Clone(vector()), mood(), mood("tired")
    parts = ((Mooded(one, ((glad, 0.8), (tired, 0.4))), 3.0), (Mooded(two, ((glad, 0.8),)), 1.0))
    whole = Mooded(Blend(((one, 3.0), (two, 1.0)), method), ((glad, 0.8), (tired, 0.3)))  # type: ignore[arg-type]
    np.testing.assert_allclose(spoken(Blend(parts, method)), spoken(whole), atol=1e-6)  # type: ignore[arg-type]


def test_more_of_a_mood_lies_farther_along_it() -> None:
    plain, glad = vector(5.0), mood()
    along = [float(with_moods(plain, [(glad, dose)]) @ glad.shift) for dose in (0, 0.5, 1, 1.5)]
    assert along == sorted(along)


def test_several_people_give_the_mean_and_its_spread() -> None:
    shift = vector()
    pairs = [(plain, plain + shift) for plain in (vector() for _ in range(5))]
    learned = learn_shift(pairs)
    np.testing.assert_allclose(learned.shift, shift, atol=1e-5)
    assert learned.agreement == pytest.approx(1)
    assert learned.spread < 1e-5
    other = learn_shift([*pairs, (vector(), vector())])
    assert other.agreement < 1
    assert other.spread > 0.1
    with pytest.raises(InvalidVoice, match="the same"):
        learn_shift([(shift, shift)])
    with pytest.raises(InvalidVoice, match="one model"):
        learn_shift([(shift, shift[:5])])


def test_presets_and_trained_voices_take_moods() -> None:
    glad = mood()
    ryan = HERE["fake"].speaker_vector("ryan")
    np.testing.assert_array_equal(
        spoken(Mooded(Preset("ryan"), ((glad, 1.0),))), with_moods(ryan, [(glad, 1.0)])
    )
    trained = Clone(vector(), rows=np.ones((2, WIDTH), np.float32), digest="weights of fake")
    found = route_voice(Mooded(trained, ((glad, 1.0),)), HERE).voice
    assert isinstance(found, Clone)
    assert found.rows is trained.rows


def test_where_a_mood_cannot_be_applied_it_says_why() -> None:
    recorded, glad = Clone(vector()), mood()
    elsewhere = replace(glad, space="0b6-1024")
    for voice, error, says in (
        (Mooded(recorded, ((elsewhere, 1.0),)), InvalidVoice, "other models"),
        (Mooded(Preset("ryan", "softly"), ((glad, 1.0),)), NotCapable, "style instructions"),
        (Mooded(recorded, ((glad, 1.6),)), InvalidSetting, "0 to 1.5"),
        (Mooded(recorded, ((glad, float("nan")),)), InvalidSetting, "0 to 1.5"),
        (Mooded(recorded, ((glad, 0.1),) * 9), InvalidSetting, "at most 8"),
        (Mooded(recorded, ((Mood("m", glad.shift[:3]), 1.0),)), InvalidVoice, "another model"),
        (Mooded(recorded, ((Mood("m", -recorded.vector), 1.0),)), InvalidVoice, "cancels"),
    ):
        with pytest.raises(error, match=says):
            route_voice(voice, HERE)
