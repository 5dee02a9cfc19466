"""A session costs little, and is the same as Gradio's own."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import gradio as gr
import orjson
import pytest
from gradio.routes import App
from gradio.state_holder import SessionState

from studio.ui.shell import build_shell
from tests.support.tab_makers import make_studio


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Any:
    studio = make_studio(tmp_path_factory.mktemp("sessions"))

    async def built() -> Any:
        return build_shell(studio)

    with studio.engine:
        yield asyncio.run(built())  # without a loop around it Gradio makes some, and leaves them


def test_a_page_takes_one_application_and_one_description_of_each_component(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    app, describe = App.create_app, gr.components.Component.get_config

    def counted_app(*arguments: Any, **named: Any) -> App:
        made.append("application")
        return app(*arguments, **named)

    def counted(self: gr.components.Component, *arguments: Any) -> Any:
        made.append(str(self._id))
        return describe(self, *arguments)

    monkeypatch.setattr(App, "create_app", staticmethod(counted_app))
    monkeypatch.setattr(gr.components.Component, "get_config", counted)
    studio = make_studio(tmp_path)

    async def built() -> Any:
        return build_shell(studio)

    with studio.engine:
        shell = asyncio.run(built())
    assert made.count("application") == 1
    assert 100 < len(made) < 1.1 * len(set(made)), "each is described again and again"
    assert isinstance(shell.app, App)


def test_a_session_is_described_as_by_gradio(shell: Any) -> None:
    plain = type(shell.default_config).__mro__[1].config_for_block
    described = SessionState(shell).config_values
    expected = {key: plain(key, [], block) for key, block in shell.blocks.items()}
    assert described == expected


def test_a_link_to_a_session_holds_what_it_changed(shell: Any) -> None:
    """As Gradio writes one: a deep copy of each component, as JSON."""
    state, key = SessionState(shell), next(iter(shell.blocks))
    plain = type(shell.default_config).__mro__[1].config_for_block
    state._update_value_in_config(key, "changed")
    expected = [plain(key, [], block) for key, block in shell.blocks.items()]
    expected[0]["props"]["value"] = "changed"
    link = orjson.dumps([copy.deepcopy(each) for each in state.components], default=str)
    assert link == orjson.dumps(expected, default=str)


def test_what_one_session_changes_no_other_sees(shell: Any) -> None:
    one, other = SessionState(shell), SessionState(shell)
    key = next(key for key, block in shell.blocks.items() if isinstance(block, gr.Textbox))
    before = other.config_values[key]["props"].get("value")
    one._update_value_in_config(key, "changed")
    assert one.config_values[key]["props"]["value"] == "changed"
    assert other.config_values[key]["props"].get("value") == before
    assert SessionState(shell).config_values[key]["props"].get("value") == before


def test_a_second_session_asks_no_component(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    SessionState(shell)
    monkeypatch.setattr(gr.components.Component, "get_config", None)
    SessionState(shell)


def test_a_changed_component_is_described_anew(shell: Any) -> None:
    key = next(key for key, block in shell.blocks.items() if isinstance(block, gr.Textbox))
    changed = gr.Textbox(label="another", render=False)
    anew = shell.default_config.config_for_block(key, [], changed)
    assert anew["props"]["label"] == "another"
