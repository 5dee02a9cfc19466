"""Every setting has one default; an unknown key is an error; profiles change weights only."""

from __future__ import annotations

import json

import pytest

from engine import EngineSettings, InvalidSetting, engine_settings, load_profile, profiles
from engine.config import PROFILES


def test_the_four_profiles_are_there_and_load():
    assert profiles() == ("balanced", "cpu", "latency", "throughput")
    for name in profiles():
        assert isinstance(load_profile(name), EngineSettings)


@pytest.mark.parametrize("name", profiles())
def test_a_profile_repeats_no_default(name):
    weights = json.loads((PROFILES / f"{name}.json").read_text())
    plain = json.loads(EngineSettings().model_dump_json())
    assert all(plain[key] != value for key, value in weights.items())


def test_balanced_is_the_defaults():
    assert load_profile("balanced") == EngineSettings()


def test_single_settings_go_over_the_profile():
    assert load_profile("cpu", slots=3).slots == 3
    assert load_profile("cpu", slots=3).ramp == load_profile("cpu").ramp


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"slotz": 3}, "slotz"),
        ({"slots": 0}, "slots"),
        ({"margin": 1.5}, "margin"),
        ({"margin": float("nan")}, "margin"),
        ({"ramp": []}, "ramp"),
        ({"ramp": [4, 2]}, "ramp"),
        ({"ramp": [0, 2]}, "ramp"),
        ({"ramp": [2, 2]}, "ramp"),
        ({"lag": 9}, "lag"),
    ],
)
def test_what_is_wrong_is_named(values, says):
    with pytest.raises(InvalidSetting, match=says):
        engine_settings(**values)


@pytest.mark.parametrize("name", ["", "fast", "../profiles/cpu", "cpu.json"])
def test_an_unknown_profile_names_those_there_are(name):
    with pytest.raises(InvalidSetting, match="balanced, cpu, latency, throughput"):
        load_profile(name)


def test_settings_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        EngineSettings().slots = 3
