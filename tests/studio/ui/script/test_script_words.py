"""The words of the Script tab: counts are right, and in Chinese there is nothing but Chinese."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from gradio.context import LocalContext

from studio.ui.tabs.script.view import duration
from tests.support.script_tab_makers import act, html, page, spoken

LATIN = re.compile(r"[A-Za-z]{2,}")
OURS = re.compile(
    r"<(?:svg|textarea).*?</(?:svg|textarea)>|<p>.*?</p>|<span lang=.en.>.*?</span>", re.DOTALL
)
TOLD = re.compile(r'(?:aria-label|title)="([^"]*)"|>([^<>]+)<')


@pytest.fixture
def in_chinese():
    token = LocalContext.request.set(SimpleNamespace(headers={"accept-language": "zh-CN"}))
    yield
    LocalContext.request.reset(token)


def test_one_line_is_one_line(tab):
    number = tab.store.read("", "Only this.").number
    assert "1 line · 0 rendered" in html(page(tab, number).lines)
    assert tab.listed()[0][0] == "Only this. · 1 line"


def test_nothing_of_the_board_is_left_in_english(tab, in_chinese):
    number = tab.store.read("", "甲: 你好。\n乙: 你好。\n\n天黑了。\n\n甲: 再见。").number
    spoken(tab, number, aloud=False)
    lines = tab.store.open(number).script.lines
    act(tab, number, do="lock", line=lines[0].id)
    shown = page(tab, number)
    for board in (shown.lines, shown.cast):
        words = [a or b for a, b in TOLD.findall(OURS.sub("", html(board)))]
        names = {label for label, _ in tab.store.voices()}
        assert [word for word in words if LATIN.search(word) and word not in names] == []
    assert tab.listed()[0][0].endswith("· 4 句")
    assert duration(3 * 3600 + 61) == "3 小时 1 分"
