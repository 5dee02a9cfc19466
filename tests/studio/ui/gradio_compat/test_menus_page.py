"""Menus tell an input where a user chose or typed something, once, and not where they are left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fastapi
import gradio as gr
import pytest

from tests.support.browser import DRAWN, OpenPage, Server, expect
from tests.support.tab_makers import mounted

COLOURS = ["red", "green", "blue"]
NOTE = "(value) => { window.told.push(value); }"
ANEW = "() => { window.told = []; return ['red', 'red', ['red'], ['red']]; }"
LEAVE = "document.activeElement.blur()"


@pytest.fixture(scope="module")
def shared(browser: Any, open_pages: OpenPage) -> Iterator[Any]:
    free: dict[str, Any] = {"allow_custom_value": True}
    with gr.Blocks(analytics_enabled=False) as blocks:
        menus = [
            gr.Dropdown(COLOURS, value="red", label="One"),
            gr.Dropdown(COLOURS, value="red", label="One or typed", **free),
            gr.Dropdown(COLOURS, value=["red"], multiselect=True, label="Some"),
            gr.Dropdown(COLOURS, value=["red"], multiselect=True, label="Some or typed", **free),
        ]
        for each in menus:
            each.input(None, each, None, js=NOTE)
        gr.Button("Anew").click(None, None, menus, js=ANEW)
        gr.Button("Green").click(None, None, menus[:2], js="() => ['green', 'green']")
    with Server(mounted(fastapi.FastAPI(), blocks)) as url:
        yield open_pages(url)


@pytest.fixture
def page(shared: Any) -> Any:
    shared.get_by_role("button", name="Anew").click()
    shared.evaluate(DRAWN)
    expect(menu(shared, "One")).to_have_value("red")
    expect(menu(shared, "One or typed")).to_have_value("red")
    return shared


def menu(page: Any, name: str) -> Any:
    return page.get_by_role("combobox", name=name, exact=True)


def choose(page: Any, name: str, colour: str) -> None:
    menu(page, name).click()
    page.get_by_role("option", name=colour).click()


def told(page: Any) -> list[Any]:
    """What the menus have told, once they are left. They read a key a moment after it."""
    page.evaluate(DRAWN)
    page.evaluate(LEAVE)
    page.evaluate(DRAWN)
    noted: list[Any] = page.evaluate("window.told")
    return noted


@pytest.mark.parametrize("name", ["One", "One or typed", "Some", "Some or typed"])
def test_a_menu_that_is_left_as_it_was_tells_nothing(page: Any, name: str) -> None:
    menu(page, name).click()
    expect(page.get_by_role("option", name="green")).to_be_visible()
    assert told(page) == []


@pytest.mark.parametrize("name", ["One", "One or typed"])
def test_a_choice_is_told_once(page: Any, name: str) -> None:
    choose(page, name, "green")
    assert told(page) == ["green"]
    menu(page, name).press("ArrowDown")
    menu(page, name).press("Enter")
    assert told(page) == ["green", "blue"]


def test_the_same_choice_is_told_again(page: Any) -> None:
    """Who chooses the epoch that was heard wants to hear it again."""
    choose(page, "One", "red")
    assert told(page) == ["red"]


@pytest.mark.parametrize("key", ["Enter", "Tab"])
def test_what_is_typed_is_told_once(page: Any, key: str) -> None:
    typed = menu(page, "One or typed")
    typed.fill("violet")
    typed.press(key)
    assert told(page) == ["violet"]
    expect(typed).to_have_value("violet")


def test_what_is_typed_and_no_choice_is_taken_back_and_not_told(page: Any) -> None:
    menu(page, "One").fill("violet")
    menu(page, "One").press("Enter")
    assert told(page) == []
    expect(menu(page, "One")).to_have_value("red")


@pytest.mark.parametrize("name", ["One", "One or typed"])
def test_what_is_answered_meanwhile_is_not_told(page: Any, name: str) -> None:
    menu(page, name).focus()
    page.get_by_role("button", name="Green").evaluate("(button) => button.click()")  # cursor stays
    page.evaluate(DRAWN)
    assert told(page) == []
    expect(menu(page, name)).to_have_value("green")


@pytest.mark.parametrize("name", ["Some", "Some or typed"])
def test_each_change_of_several_is_told_once(page: Any, name: str) -> None:
    several = menu(page, name)
    choose(page, name, "green")
    for _ in range(3):  # at the third there is none
        several.press("Backspace")
    assert told(page) == [["red", "green"], ["red"], []]


@pytest.mark.parametrize("key", ["Enter", "Tab"])
def test_what_is_typed_besides_is_told_once(page: Any, key: str) -> None:
    typed = menu(page, "Some or typed")
    typed.fill("violet")
    typed.press(key)
    assert told(page) == [["red", "violet"]]
