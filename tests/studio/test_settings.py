"""Settings: one table, one default each, arguments over environment over defaults."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr
from typer.testing import CliRunner

import app
from engine import EngineSettings, InvalidSetting
from studio.api import ApiSettings
from studio.layout import ROOT
from studio.settings import ClusterSettings, StudioSettings, fixed, names, table


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the tests may have settings."""
    for name in [name for name in os.environ if name.startswith("TIMBRE_")]:
        monkeypatch.delenv(name)


def test_the_page_is_the_table() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    again = "put the output of 'python app.py settings' in the place of the table"
    assert page.endswith(f"\n\n{table()}\n"), again


def test_every_setting_says_what_it_is() -> None:
    assert not [line for line in table().splitlines()[2:] if line.endswith("|  |")]


def test_every_name_is_there_once() -> None:
    every = list(names())
    groups = (StudioSettings, ApiSettings, EngineSettings, ClusterSettings)
    assert len(set(every)) == len(every)
    assert len(every) <= 45, "replace a setting that is less needed, or make it no setting"
    assert not set(every) & fixed()
    fields = {name for group in groups for name in group.model_fields}
    assert {"max_wait", "lead_factor", "sockets"} <= fields


@pytest.mark.parametrize("name", list(names()))
def test_every_name_reaches_its_setting(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Nonsense is either kept as it is, or refused by this setting."""
    monkeypatch.setenv(name, "[")
    field = re.sub("^TIMBRE_(API_|ENGINE_|CLUSTER_)?", "", name).lower()
    assert field in refusal_or_changes()


def refusal_or_changes() -> str:
    try:
        settings = app.read_settings()
    except InvalidSetting as refusal:
        return str(refusal).lower()
    changed = (
        settings.model_dump(exclude_defaults=True),
        *(g.model_fields_set for g in groups_of(settings)),
    )
    return " ".join(name for names in changed for name in names)


def groups_of(settings: StudioSettings) -> tuple[BaseModel, ...]:
    return settings.api, settings.engine, settings.cluster


def test_without_anything_said_they_are_the_defaults() -> None:
    settings = app.read_settings()
    assert settings.model_dump() == StudioSettings().model_dump()
    assert settings.engine_changes() == {}


def test_the_environment_fills_every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = {
        "TIMBRE_MODEL": "a folder/one, Qwen/two",
        "TIMBRE_DATA": "elsewhere",
        "TIMBRE_API_KEYS": "one,two",
        "TIMBRE_API_KEY_RATE": "60/minute",
        "TIMBRE_ENGINE_MAX_NUM_SEQS": "4",
        "TIMBRE_PROFILE": "",
    }
    for name, value in spoken.items():
        monkeypatch.setenv(name, value)
    settings = app.read_settings(port=1, model=None, api={"body_bytes": 4096})
    assert settings.model == ("a folder/one", "Qwen/two")
    assert (settings.data, settings.port, settings.profile) == (Path("elsewhere"), 1, None)
    assert settings.api.keys == (SecretStr("one"), SecretStr("two"))
    assert (settings.api.key_rate, settings.api.body_bytes) == ("60/minute", 4096)
    assert settings.engine_changes() == {"max_num_seqs": 4}


def test_arguments_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMBRE_MODEL", "theirs")
    monkeypatch.setenv("TIMBRE_API_KEYS", "theirs")
    settings = app.read_settings(model=["ours"], api={"keys": ["ours"]})
    assert (settings.model, settings.api.keys) == (("ours",), (SecretStr("ours"),))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("TIMBRE_PROT", "1", "TIMBRE_PROT: no such setting"),
        ("TIMBRE_ENGINE_SLOTZ", "1", "TIMBRE_ENGINE_SLOTZ: no such setting"),
        ("TIMBRE_PORT", "99999", "port"),
        ("TIMBRE_API_KEY_RATE", "often", "60/minute"),
        ("TIMBRE_API_SAVED_VOICES", "many", "saved_voices"),
        ("TIMBRE_CLUSTER_STORE", "s3://bucket", "it is gone: mount a volume"),
    ],
)
def test_a_bad_one_is_one_plain_line(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSetting, match=says):
        app.read_settings()
    result = CliRunner().invoke(app.cli, ["serve"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMBRE_API_KEYS", "very-secret")
    monkeypatch.setenv("TIMBRE_KEY", "very-secret")
    monkeypatch.setenv("TIMBRE_PORT", "none")
    with pytest.raises(InvalidSetting) as refused:
        app.read_settings()
    assert "secret" not in str(refused.value)
    monkeypatch.delenv("TIMBRE_PORT")
    assert "secret" not in repr(app.read_settings())
    assert "secret" not in CliRunner().invoke(app.cli, ["settings"]).output


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("TIMBRE_ENGINE_SLOTS", "TIMBRE_ENGINE_MAX_NUM_SEQS"),
        ("TIMBRE_FRAMES", "TIMBRE_FRAME_ANCESTORS"),
        ("TIMBRE_ENGINE_EIGHT_BITS", "gone"),
    ],
)
def test_an_old_name_names_the_new_one(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    monkeypatch.setenv(old, "1")
    with pytest.raises(InvalidSetting, match=new):
        app.read_settings()


@pytest.mark.parametrize("name", ["API_SOCKETS", "ENGINE_LEAD_FACTOR", "ENGINE_RAMP"])
def test_what_is_no_setting_any_more_has_no_effect_and_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv(f"TIMBRE_{name}", "3")
    settings = app.read_settings()
    assert settings.model_dump() == StudioSettings().model_dump()
    printed = capsys.readouterr().err
    assert f"TIMBRE_{name}" in printed
    assert printed.count("\n") == 1
