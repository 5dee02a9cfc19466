"""Visitors of the page: guests kept apart, keys as passwords, headers that restrict the browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.testing import FakeEngine
from studio.settings import StudioSettings
from tests.support.browser import Server
from tests.support.guest_visit import KEY, application_of
from tests.support.programs import visited


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = str(tmp_path_factory.mktemp("visits"))
    return visited("tests.support.guest_visit", folder, timeout=600, secret=KEY)


@pytest.fixture(scope="module")
def visit(findings: Any) -> Any:
    return findings["visit"]


@pytest.fixture(scope="module")
def locked(findings: Any) -> Any:
    return findings["locked"]


def test_a_browser_has_its_voices_on_every_visit_and_no_others(visit: Any) -> None:
    assert visit["anna"] == visit["again"] == ["Anna"]
    assert visit["ben"] == ["Ben"]


def test_without_cookies_a_visit_has_its_voices(visit: Any) -> None:
    assert visit["bare"] == ["Nobody"]
    assert visit["other"] == []


def test_a_stranger_speaks_with_own_voices_only(visit: Any) -> None:
    assert visit["spoken"] > 1000
    assert "No voice is called 'Anna'" in visit["refused"]


def test_the_page_itself_carries_the_headers(visit: Any) -> None:
    assert "frame-ancestors 'self'" in visit["page"]["content-security-policy"]
    assert visit["page"]["x-content-type-options"] == "nosniff"


def test_where_keys_are_set_nothing_is_seen_without_one(locked: Any) -> None:
    assert set(locked["before"].values()) == {401}
    assert locked["wrong"] == 400


def test_a_key_opens_page_and_routes_beside_it(locked: Any) -> None:
    assert locked["right"] == 200
    api = locked["after"].pop("/v1/models")
    assert api == 401  # programs send theirs with each request
    assert 401 not in locked["after"].values()


@pytest.fixture
def shielded(browser: Any, tmp_path: Path) -> Iterator[str]:
    with FakeEngine() as engine:
        application = application_of(StudioSettings(data=tmp_path, guests=True), engine)
        with Server(application) as url:
            yield url


def test_the_page_speaks_under_its_own_policy(shielded: str, open_page: Any) -> None:
    """The browser blocks nothing that the page needs, and sends no request to another site."""
    page = open_page("about:blank")
    refused: list[str] = []
    requested: list[str] = []
    page.on("console", lambda each: refused.append(each.text) if each.type == "error" else None)
    page.on("request", lambda request: requested.append(request.url))
    page.goto(shielded)
    heard = "window.timbre?.players[0]?.now?.made && timbre.players[0].now.report?.played > 4800"
    page.wait_for_function("window.timbre?.players[0]?.speaker.node")
    page.get_by_role("button", name="Hear a welcome").click()
    page.wait_for_function(heard)
    assert [text for text in refused if "Content Security Policy" in text] == []
    near = (shielded, "data:", "blob:", "about:")
    assert [url for url in requested if not url.startswith(near)] == []
