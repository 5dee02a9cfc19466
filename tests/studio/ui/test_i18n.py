"""The interface in Chinese: nothing is left out, nothing is left over."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gradio.i18n import I18nData

from engine import Library
from engine.testing import FakeEngine
from engine.text.sentences import LANGUAGE_CODES
from studio.context import open_studio
from studio.ui import i18n, take_card
from studio.ui.shell import ENTRIES, NOT_YET, build_shell
from studio.ui.shortcuts import KEYS, LINE_KEYS, WAITING
from studio.ui.tabs.design import DESCRIBED, REFERENCE
from studio.ui.tabs.models import ABLE, FOREIGN, OFFER
from studio.ui.tabs.speak_handlers import FILL, LETTERS, TOO_MANY
from studio.ui.tabs.takes import NONE
from studio.ui.tabs.voice_form import SAVED
from tests.support.browser import OpenPage, expect, open_tab, serve_page
from tests.support.tab_makers import make_studio

STUDIO = Path(i18n.__file__).parents[2]
HERE = json.loads((STUDIO / "ui" / "i18n" / "zh.json").read_text(encoding="utf-8"))
TOLD_LATER = (
    LETTERS,
    TOO_MANY,
    *KEYS.values(),
    *LINE_KEYS.values(),
    WAITING,
    *ABLE.values(),
    *NONE.values(),
    FILL[1],
    SAVED,
    REFERENCE,
    DESCRIBED,
    OFFER,
)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Any:
    studio = make_studio(tmp_path_factory.mktemp("words"))

    async def built() -> Any:
        return build_shell(studio)

    with studio.engine:
        yield asyncio.run(built())


def shown(config: object) -> Iterator[str]:
    """Every word that Gradio is to replace."""
    if isinstance(config, I18nData):
        yield config.key
    elif isinstance(config, dict):
        for value in config.values():
            yield from shown(value)
    elif isinstance(config, list | tuple):
        for value in config:
            yield from shown(value)
    elif isinstance(config, str):
        yield from (json.loads(f'"{key}"') for key in MARKER.findall(config))


TOLD = ("word", "both", "labelled")
MARKER = re.compile(r'__i18n__{"__type__": "translation_metadata", "key": "((?:[^"\\]|\\.)*)"}')


def written() -> Iterator[tuple[str, str]]:
    """Texts given to these functions in so many words, and all other texts."""
    for path in STUDIO.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in TOLD:
                for named in node.args:
                    if isinstance(named, ast.Constant):
                        yield "told", str(named.value)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield "text", node.value


def test_every_label_is_there_in_chinese(shell: Any) -> None:
    assert set(shown(shell.config)) - i18n.CHINESE.keys() == set()


def test_every_text_of_our_own_is_there_in_chinese() -> None:
    sentences = {text for kind, text in written() if kind == "told"}
    sentences |= {
        *TOLD_LATER,
        *KEYS.values(),
        *ABLE.values(),
        *NONE.values(),
        FOREIGN,
        *(each.missing for each in ENTRIES if each.missing),
    }
    assert sentences - i18n.CHINESE.keys() == set()


def test_no_translation_is_left_over(shell: Any) -> None:
    sentences = {text for _, text in written()} | set(shown(shell.config)) | set(TOLD_LATER)
    sentences |= (
        {name.capitalize() for name in LANGUAGE_CODES}
        | {each.missing for each in ENTRIES}
        | {text.capitalize() for text in sentences}
    )
    assert HERE.keys() - sentences == set()


def test_what_is_between_braces_stays() -> None:
    for english, chinese in i18n.CHINESE.items():
        assert set(re.findall(r"{\w+}", english)) == set(re.findall(r"{\w+}", chinese)), english


def test_our_own_html_is_escaped_in_each_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(i18n.CHINESE, "<b>", "<i>")
    assert i18n.both("<b>") == '<span lang="en">&lt;b&gt;</span><span lang="zh">&lt;i&gt;</span>'
    assert i18n.both("<u>") == "&lt;u&gt;"


@pytest.fixture(scope="module")
def url(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    library = Library(tmp_path_factory.mktemp("zh") / "voices")
    with (
        FakeEngine() as engine,
        serve_page(open_studio(engine, library)) as url,
    ):
        yield url


def test_a_chinese_browser_sees_chinese(open_page: OpenPage, url: str) -> None:
    page = open_page(url, locale="zh-CN")
    page.get_by_role("button", name="听一句欢迎词").wait_for()
    expect(page.get_by_text("Hear a welcome").first).to_be_hidden()
    page.get_by_label("文本", exact=True).fill("你好。")
    page.get_by_role("button", name="朗读", exact=True).click()
    page.locator(".timbre-take:visible").get_by_role(
        "button", name="重新生成", exact=True
    ).wait_for()
    open_tab(page, "收藏")
    page.locator(".timbre-history:visible").get_by_text("你好。").wait_for()
    assert "__i18n__" not in page.inner_text("body")


def test_names_and_hints_are_chinese_too(open_page: OpenPage, url: str) -> None:
    page = open_page(url, locale="zh-CN")
    expect(page.locator("dialog.timbre-help")).to_have_attribute("aria-label", "键盘快捷键")
    open_tab(page, "混合")
    expect(page.get_by_role("slider", name="声音混合：用方向键移动")).to_be_visible()
    page.get_by_role("tab", name="声音地图").click()
    page.get_by_placeholder("搜索声音").wait_for()
    open_tab(page, "设计")
    expect(page.get_by_role("button", name="播放: 第一段")).to_be_visible()
    open_tab(page, "引擎")
    expect(page.get_by_role("img", name="正在运行")).to_be_visible()


def test_an_english_browser_sees_english_only(open_page: OpenPage, url: str) -> None:
    page = open_page(url, locale="en-GB")
    page.get_by_role("button", name="Hear a welcome").wait_for()
    body = page.inner_text("body")
    assert not re.search(r"[\u4e00-\u9fff]", body)
    assert "__i18n__" not in body
    assert take_card.EMPTY.count('lang="zh"') == 3


def test_a_page_with_too_much_waiting_is_told_so_in_its_language_however_it_is_served(
    shell: Any,
) -> None:
    assert shell._queue.refused("en-GB,zh;q=0.5").startswith("What was pressed")
    assert shell._queue.refused("zh-CN,en") == i18n.chinese(NOT_YET) != NOT_YET
