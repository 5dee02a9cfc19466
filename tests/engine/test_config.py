"""Every setting has one default; an unknown key is an error; profiles change weights only."""

from __future__ import annotations

import json

import pytest

from engine import EngineSettings, InvalidSetting, engine_settings, load_profile, profiles
from engine.config import PROFILES


def test_the_profiles_are_there_and_load():
    assert profiles() == ("cpu", "latency", "throughput")
    for name in profiles():
        assert isinstance(load_profile(name), EngineSettings)


@pytest.mark.parametrize("name", profiles())
def test_a_profile_repeats_no_default(name):
    weights = json.loads((PROFILES / f"{name}.json").read_text())
    plain = json.loads(EngineSettings().model_dump_json())
    assert all(plain[key] != value for key, value in weights.items())


def test_no_profile_is_the_defaults():
    assert load_profile() == EngineSettings()


def test_single_settings_go_over_the_profile():
    assert load_profile("cpu", max_num_seqs=3).max_num_seqs == 3
    assert load_profile("cpu", max_num_seqs=3).chunk_schedule == load_profile("cpu").chunk_schedule


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"slotz": 3}, "slotz"),
        ({"max_num_seqs": 0}, "max_num_seqs"),
        ({"realtime_utilization": 1.5}, "realtime_utilization"),
        ({"realtime_utilization": float("nan")}, "realtime_utilization"),
        ({"chunk_schedule": []}, "chunk_schedule"),
        ({"chunk_schedule": [4, 2]}, "chunk_schedule"),
        ({"chunk_schedule": [0, 2]}, "chunk_schedule"),
        ({"chunk_schedule": [2, 2]}, "chunk_schedule"),
        ({"pipeline_depth": 9}, "pipeline_depth"),
    ],
)
def test_what_is_wrong_is_named(values, says):
    with pytest.raises(InvalidSetting, match=says):
        engine_settings(**values)


@pytest.mark.parametrize("name", ["", "fast", "balanced", "../profiles/cpu", "cpu.json"])
def test_an_unknown_profile_names_those_there_are(name):
    with pytest.raises(InvalidSetting, match="cpu, latency, throughput"):
        load_profile(name)


def test_settings_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        EngineSettings().slots = 3


@pytest.mark.parametrize("old", [*EngineSettings.renamed, *EngineSettings.removed])
def test_an_old_name_names_the_new_one(old):
    new = EngineSettings.renamed.get(old, "gone")
    with pytest.raises(InvalidSetting, match=new):
        load_profile("cpu", **{old: 1})
    with pytest.raises(InvalidSetting, match=new):
        EngineSettings(**{old: 1})
