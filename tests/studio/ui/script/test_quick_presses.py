"""Presses that were sent before the page had the answer to an earlier one: the text that they all
bring is read once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from gradio.context import LocalContext

from studio.scripts import text_of
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.shown import Shown
from studio.ui.tabs.script.view import View
from tests.support.script_tab_makers import act, event, page

TEXT = "Ann: Hello.\nBen: And hello to you."


@contextmanager
def visit(name: str) -> Iterator[None]:
    """What happens here comes from a page of its own."""
    request: Any = SimpleNamespace(session_hash=name, headers={})
    token = LocalContext.request.set(request)
    try:
        yield
    finally:
        LocalContext.request.reset(token)


def read(tab: ScriptTab, text: str, number: str = "", seen: str = "", mine: str = "") -> Shown:
    return tab.read(number, mine, View(), text, seen)


def new(tab: ScriptTab, text: str) -> Shown:
    return Shown(*tab.new("", "", text, "")[: len(Shown._fields)])


def test_text_of_a_script_is_read_once(tab: ScriptTab, number: str) -> None:
    seen, line = page(tab, number).text, tab.store.open(number).script.lines[1].id
    typed = f"{seen}\n\n  And   more."
    sent = (number, "", View(), typed, seen)
    for press in (event(do="down", line=line), event(do="down", line=line)):
        assert tab.act(*sent, press).opened == number
    assert tab.read(*sent).opened == number
    text = text_of(tab.store.open(number).script)
    assert text.endswith("And more.")
    assert text.index("And more.") == text.rindex("And more.")
    assert len(tab.store.titles()) == 1


@pytest.mark.parametrize("presses", [(read, read), (read, new), (new, read)])
def test_a_new_script_is_made_once(tab: ScriptTab, presses: Any) -> None:
    with visit("a page"):
        shown = [press(tab, TEXT) for press in presses]
    assert [*tab.store.titles()] == shown[0].mine.split() == shown[1].mine.split()


def test_a_text_that_is_typed_again_is_a_script_of_its_own(tab: ScriptTab) -> None:
    """The page has had the answer, and its visitor has pressed New."""
    with visit("a page"):
        first = read(tab, TEXT)
        assert read(tab, TEXT, mine=first.mine).opened != first.opened


def test_a_script_of_another_visitor_is_nobody_elses(tab: ScriptTab) -> None:
    opened = set[str]()
    for name in ("a page", "another"):
        with visit(name):
            opened.add(read(tab, TEXT).opened)
    assert len(opened) == 2


def test_the_example_is_opened_once_by_a_double_click(tab: ScriptTab) -> None:
    with visit("a page"):
        assert act(tab, "", do="example").opened == act(tab, "", do="example").opened


def test_a_script_that_another_tab_has_changed_is_copied_once(tab: ScriptTab, number: str) -> None:
    seen = page(tab, number).text
    tab.store.read(number, f"{seen}\n\nFrom another tab.")
    with visit("a page"), pytest.warns(UserWarning, match="Another tab") as told:
        copies = {read(tab, f"{seen}\n\nAnd more.", number, seen, number).opened for _ in range(2)}
    assert len(copies - {number}) == len(told) == 1
    assert len(tab.store.titles()) == 2


def test_a_script_that_is_gone_is_made_again(tab: ScriptTab) -> None:
    with visit("a page"):
        gone = read(tab, TEXT).opened
        tab.store.delete(gone)
        assert read(tab, TEXT).opened != gone
