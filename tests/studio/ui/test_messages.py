"""Errors and notes in Chinese: every sentence has its words; English stays the default."""

from __future__ import annotations

import ast
import json
import pickle
import re
import string
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.context import LocalContext
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import engine
from engine import Message, errors
from engine.voices.voice_format import VoiceCard
from studio.context import Studio
from studio.ui import i18n
from studio.ui.live_player import translated
from studio.ui.tabs.clone import CloneTab
from tests.support.tab_makers import payloads_of

ROOT = Path(i18n.__file__).parents[3]
KINDS = {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.TimbreError)
}
# Programs and the command line speak English; the fake engine speaks to tests.
ENGLISH = (
    "studio/api/", "studio/cli/", "studio/cluster/", "engine/testing/", "engine/errors.py",
    "training/voice/adapter.py", "training/voice/export.py", "training/voice/recogniser.py",
)  # fmt: skip
ROOMS = ("engine/**/*.py", "studio/**/*.py", "training/voice/*.py")
FIELDS = string.Formatter()


def sentences() -> Iterator[tuple[str, ast.Call]]:
    """Where errors are made, and other sentences for a person."""
    for path in chain.from_iterable(map(ROOT.glob, ROOMS)):
        place = str(path.relative_to(ROOT))
        if place.startswith(ENGLISH):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and node.args and name in {"Message", *KINDS} - {"Busy"}:
                yield f"{place}:{node.lineno}", node


def written() -> Iterator[tuple[str, str, ast.Call]]:
    for place, call in sentences():
        key = _text(call.args[0], _constants(place.partition(":")[0]))
        if isinstance(key, str):
            yield place, key, call


def _text(node: ast.expr, named: dict[str, object]) -> object:
    """What an argument is, as it is written or by the name of a constant of its module."""
    if isinstance(node, ast.Name):
        return named.get(node.id)
    return node.value if isinstance(node, ast.Constant) else None


@cache
def _constants(place: str) -> dict[str, object]:
    named: dict[str, object] = {}
    for node in ast.parse((ROOT / place).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named |= {
                each.id: _text(node.value, named) for each in targets if isinstance(each, ast.Name)
            }
    return named


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in FIELDS.parse(text) if name}


def test_every_sentence_is_there_in_chinese() -> None:
    keys = {key for _, key, _ in written()} | set(engine.messages._MISFITS.values())
    worded = {key for key in keys if re.search("[A-Za-z]", re.sub("{[^}]*}", "", key))}
    assert worded - i18n.CHINESE.keys() == set()


def test_no_sentence_loses_its_key() -> None:
    """What is put together before an error is made cannot be looked up."""
    loose = (ast.JoinedStr, ast.BinOp)
    assert [place for place, call in sentences() if isinstance(call.args[0], loose)] == []


def test_no_sentence_is_left_over() -> None:
    tables = (ROOT / "studio" / "ui" / "i18n").glob("messages_zh*.json")
    table = {
        key: text
        for path in tables
        for key, text in json.loads(path.read_text(encoding="utf-8")).items()
    }
    texts = {
        node.value
        for path in chain.from_iterable(map(ROOT.glob, ROOMS))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert table.keys() - texts == set()


def test_what_stands_in_a_sentence_is_given_with_it() -> None:
    for place, key, call in written():
        given = {each.arg for each in call.keywords}
        assert fields(key) == given if None not in given else True, place
    for english, chinese in i18n.CHINESE.items():
        assert fields(english) == fields(chinese), english


@contextmanager
def asking(language: str) -> Iterator[None]:
    """As Gradio does for each event: the request of the browser that asks."""
    token = LocalContext.request.set(SimpleNamespace(headers={"accept-language": language}))
    try:
        yield
    finally:
        LocalContext.request.reset(token)


BOB = errors.UnknownVoice("No voice is called '{name}'. {there}", name="bob", there="x")


def test_who_asks_in_chinese_is_told_in_chinese() -> None:
    with asking("zh-CN,zh;q=0.9,en;q=0.8"):
        assert i18n.tell(BOB.message) == "没有名为“bob”的声音。x"
        assert i18n.warning(BOB) == "⚠️ 没有名为“bob”的声音。x"
    for language in ("en-GB,zh;q=0.5", "", "de"):
        with asking(language):
            assert i18n.tell(BOB.message) == str(BOB) == "No voice is called 'bob'. x"
    assert i18n.tell(BOB.message) == str(BOB)


def test_what_is_shown_over_the_page_is_chinese_with_its_title(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[tuple[str, str]] = []
    for name in ("Warning", "Info"):
        monkeypatch.setattr(gr, name, lambda message, title: shown.append((title, message)))
    with asking("zh-CN"):
        i18n.warn(BOB.message)
        i18n.inform(BOB.message)
        with pytest.raises(gr.Error) as raised, i18n.errors_shown():
            raise BOB
    text = "没有名为“bob”的声音。x"
    assert shown == [("注意", text), ("提示", text)]
    assert (raised.value.title, raised.value.message) == ("出错", text)


def test_a_sentence_in_a_sentence_is_told_in_chinese_too() -> None:
    inner = Message.listed([Message("cloning"), Message("instructions"), "Qwen"])
    spoken = Message("{name} ({able})", name="cloning", able=inner)
    assert spoken == "cloning (cloning, instructions, Qwen)"
    assert i18n.chinese(spoken) == "cloning (克隆, 听从指示, Qwen)"


def test_a_refusal_of_the_engine_is_told_in_chinese(studio: Studio) -> None:
    tab = CloneTab(studio)
    with asking("zh-CN"):
        last = payloads_of(translated(tab.speak)(None, "", True, "hi"))[-1]
    assert last["ended"]["message"] == "请先录音或拖入文件。"


@given(st.text(), st.text())
def test_what_a_person_wrote_is_no_template(name: str, there: str) -> None:
    spoken = Message("No voice is called '{name}'. {there}", name=name, there=there)
    assert spoken == f"No voice is called '{name}'. {there}"
    assert i18n.chinese(spoken) == f"没有名为“{name}”的声音。{there}"
    assert i18n.chinese(Message("{x}", x=spoken)) == i18n.chinese(spoken)


@pytest.mark.parametrize(
    "error",
    [
        BOB,
        errors.InvalidText("There is no text. Type some."),
        errors.InvalidText("{"),
        errors.TimbreError(),
        errors.EngineError("{name} could not be loaded ({error}).", name="x", error=OSError("no")),
    ],
)
def test_an_error_keeps_its_key_on_the_way_to_another_process(error: Any) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))
    assert (again.message.key, again.message.values) == (error.message.key, error.message.values)


def test_pydantics_complaints_have_words() -> None:
    problem = None
    try:
        VoiceCard(name="x" * 81, kind="clone")
    except ValidationError as error:
        problem = error.errors()[0]
    assert problem is not None
    spoken = engine.messages.misfit(problem)
    assert spoken == "must have at most 80 characters"
    assert i18n.chinese(spoken) == "最多 80 个字符"
