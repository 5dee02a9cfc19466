"""Guests on one server: each has their own voices, and none sees another's."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from engine import Clone, Engine, Library, Preset, SpeechRequest, TooMany
from studio.api import ApiSettings, create_api
from studio.retention import guests_folder, tidy
from studio.server import public_server, visitors
from studio.server.visitors import COOKIE, Share, shelf, visitor
from studio.settings import StudioSettings
from studio.takes.take_store import DAY, Takes
from tests.support.serving import wait_until

KEYS = ("first-secret", "second-secret")


def strangers(engine: Engine, data: Path, **changes: Any) -> FastAPI:
    settings = StudioSettings(data=data, guests=True, hosts=("testserver",), **changes)
    api = create_api(engine, Library(shelf(data)), settings.api)
    public_server.protect(api, engine, settings)
    return api


@pytest.fixture
def open_to_all(engine: Engine, tmp_path: Path) -> FastAPI:
    return strangers(engine, tmp_path)


def browser(api: FastAPI) -> TestClient:
    return TestClient(api)


def keep(client: TestClient, name: str, **headers: str) -> None:
    vector = json.dumps(np.arange(1, 17).tolist())
    form = {"name": name, "consent": "true", "embedding": vector}
    parts = {field: (None, value) for field, value in form.items()}
    answer = client.post("/v1/audio/voices", files=parts, headers=headers)
    assert answer.status_code == 200, answer.text


def kept(client: TestClient, **headers: str) -> list[str]:
    found = client.get("/v1/audio/voices", headers=headers).json()["uploaded_voices"]
    return [each["name"] for each in found]


def test_every_path_and_every_way_to_send_a_key_is_the_visitors(open_to_all: FastAPI) -> None:
    client = TestClient(open_to_all)
    mine, another = "my-own-secret-1f6b0c9d", "another-secret-77e2a4"
    keep(client, "Anna", authorization=f"Bearer {mine}")
    keep(client, "Bob", **{"xi-api-key": another})
    assert kept(client, **{"xi-api-key": mine}) == ["Anna"]
    sent = client.get("/v2/voices", headers={"xi-api-key": another}).json()["voices"]
    names = [each["name"] for each in sent]
    assert "Bob" in names
    assert "Anna" not in names


@pytest.mark.parametrize("key", ["none", "sk-no-key-required", "sk-" + 48 * "x"])
def test_a_key_that_anybody_would_choose_is_nobodys_shelf(open_to_all: FastAPI, key: str) -> None:
    """Clients that must send a key send such ones, as the examples of docs/api.md do."""
    anna, ben = browser(open_to_all), browser(open_to_all)
    header = {"authorization": f"Bearer {key}"}
    keep(anna, "Anna", **header)
    assert kept(anna, **header) == ["Anna"]  # by the cookie, which OpenAI's client keeps
    assert kept(ben, **header) == []
    assert ben.delete("/v1/audio/voices/anna", headers=header).status_code == 404


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/dev/captioned_speech"])
def test_a_guest_has_a_share_on_every_path(
    open_to_all: FastAPI, engine: Engine, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(engine, "submit", lambda *_: seen.append(visitor()) or _no_more())
    browser(open_to_all).post(path, json={"input": "Hello.", "voice": "ryan"})
    assert seen
    assert all(seen)


def _no_more() -> None:
    raise TooMany("Enough.", 1.0)


def test_a_browser_finds_its_own_voices_and_no_others(open_to_all: FastAPI) -> None:
    anna, ben = browser(open_to_all), browser(open_to_all)
    for client, name in ((anna, "Anna"), (ben, "Ben"), (anna, "Aunt")):
        kept(client)  # the first answer brings the cookie
        keep(client, name)
    assert kept(anna) == ["Anna", "Aunt"]
    assert kept(ben) == ["Ben"]
    assert kept(browser(open_to_all)) == []


def test_two_strangers_may_use_one_name(open_to_all: FastAPI) -> None:
    for client in (browser(open_to_all), browser(open_to_all)):
        kept(client)
        keep(client, "Grandmother")
        assert kept(client) == ["Grandmother"]


def test_nobody_deletes_or_speaks_with_anothers_voice(open_to_all: FastAPI) -> None:
    anna, ben = browser(open_to_all), browser(open_to_all)
    kept(anna)
    keep(anna, "Anna")
    body = {"input": "Hello.", "voice": "Anna", "response_format": "pcm"}
    assert ben.delete("/v1/audio/voices/anna").status_code == 404
    assert ben.post("/v1/audio/speech", json=body).status_code == 404
    assert anna.post("/v1/audio/speech", json=body).status_code == 200


def test_a_key_is_a_shelf_wherever_it_is_used_from(engine: Engine, tmp_path: Path) -> None:
    api = strangers(engine, tmp_path, api=ApiSettings(keys=KEYS))
    first, second = ({"authorization": f"Bearer {key}"} for key in KEYS)
    keep(browser(api), "Anna", **first)
    assert kept(browser(api), **first) == ["Anna"]
    assert kept(browser(api), **second) == []


def test_a_shelf_tells_nobody_whose_it_is(engine: Engine, tmp_path: Path) -> None:
    api = strangers(engine, tmp_path, api=ApiSettings(keys=KEYS))
    keep(browser(api), "Anna", authorization=f"Bearer {KEYS[0]}")
    written = [str(path) for path in tmp_path.rglob("*")]
    written += [path.read_text("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    assert not any(KEYS[0] in each for each in written)


def test_the_operators_own_voices_stay_his(engine: Engine, tmp_path: Path) -> None:
    Library(tmp_path / "voices").save("Secret", Clone(np.ones(16, np.float32)))
    assert kept(browser(strangers(engine, tmp_path))) == []


@pytest.mark.parametrize(
    ("scheme", "frames", "wanted"),
    [
        ("http", (), {"HttpOnly", "SameSite=Lax"}),
        ("https", (), {"HttpOnly", "SameSite=Lax", "Secure"}),
        ("http", ("https://example.org",), {"HttpOnly", "SameSite=Lax"}),
        (
            "https",
            ("https://example.org",),
            {"HttpOnly", "SameSite=None", "Secure", "Partitioned"},
        ),
    ],
)
def test_the_cookie_works_where_the_page_is(
    engine: Engine, tmp_path: Path, scheme: str, frames: tuple[str, ...], wanted: set[str]
) -> None:
    api = strangers(engine, tmp_path, frame_ancestors=frames)
    answer = browser(api).get("/health", headers={"x-forwarded-proto": scheme})
    parts = set(answer.headers["set-cookie"].split("; "))
    assert wanted <= parts
    assert len(next(part for part in parts if part.startswith(COOKIE))) > 30


def test_who_brings_a_cookie_is_given_no_other(open_to_all: FastAPI) -> None:
    client = browser(open_to_all)
    assert "set-cookie" in client.get("/health").headers
    assert "set-cookie" not in client.get("/health").headers


@pytest.mark.parametrize("cookie", ["", ";;;", f"{COOKIE}=", f'{COOKIE}="', "\xe4=1", "a" * 5000])
def test_a_broken_cookie_is_no_cookie(open_to_all: FastAPI, cookie: str) -> None:
    sent = {"cookie": cookie.encode("latin-1")}
    answer = browser(open_to_all).get("/health", headers=sent)  # type: ignore[arg-type]
    assert "set-cookie" in answer.headers


@pytest.mark.parametrize("other", ['a={"b": 1}', "version=1", "flag", "a=b c", "a/b=c", "path=/"])
def test_another_programs_cookie_takes_no_visitors_away(open_to_all: FastAPI, other: str) -> None:
    """Programs on one host share their cookies, and a visitor lost is a visitor's voices lost."""
    sent = {"cookie": f"{other}; {COOKIE}=mine"}
    assert "set-cookie" not in browser(open_to_all).get("/health", headers=sent).headers


def test_outside_of_a_request_nobody_asks(tmp_path: Path) -> None:
    assert visitor() == ""
    assert shelf(tmp_path)() == tmp_path / "guests" / "voices"


def test_a_server_for_oneself_gives_no_cookies(engine: Engine, library: Library) -> None:
    api = create_api(engine, library)
    public_server.protect(api, engine, StudioSettings(hosts=("testserver",)))
    answer = browser(api).get("/health")
    assert "set-cookie" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("frames", [(), ("https://example.org", "https://*.hf.space")])
def test_only_these_sites_may_frame_the_page(
    engine: Engine, tmp_path: Path, frames: tuple[str, ...]
) -> None:
    headers = browser(strangers(engine, tmp_path, frame_ancestors=frames)).get("/health").headers
    allowed = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert allowed["frame-ancestors"].split() == ["'self'", *frames]
    assert allowed["object-src"] == "'none'"
    assert "http" not in allowed["connect-src"] + allowed["script-src"] + allowed["font-src"]


class NamedVisitor:
    """A visitor that a test names."""

    who = "anna"


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> type[NamedVisitor]:
    monkeypatch.setattr(visitors, "visitor", lambda: NamedVisitor.who)
    NamedVisitor.who = "anna"
    return NamedVisitor


def test_one_stranger_has_a_share_and_no_more(slow: Engine, named: type[NamedVisitor]) -> None:
    slow.admission_hook = Share(2)
    request = SpeechRequest("A sentence of some length.", Preset("ryan"))
    first, second = slow.submit(request), slow.submit(request)
    with pytest.raises(TooMany, match="Let one finish") as refused:
        slow.submit(request)
    assert refused.value.retry_after > 0
    named.who = "ben"
    slow.submit(request).collect()
    named.who = "anna"
    first.collect()
    slow.submit(request).collect()
    second.cancel()


def test_who_leaves_gives_the_share_back(slow: Engine, named: type[NamedVisitor]) -> None:
    slow.admission_hook = Share(1)
    request = SpeechRequest("A sentence of some length.", Preset("ryan"))
    for _ in range(3):
        with slow.submit(request) as stream:
            next(iter(stream))
        wait_until(lambda stream=stream: stream.end)


def test_a_refused_request_takes_no_share(slow: Engine, named: type[NamedVisitor]) -> None:
    slow.admission_hook = Share(1)
    for _ in range(3):
        with pytest.raises(Exception, match="no text"):
            slow.submit(SpeechRequest("", Preset("ryan")))
    slow.submit(SpeechRequest("Hello.", Preset("ryan"))).collect()


def test_requests_that_are_checked_at_the_same_time_count(
    slow: Engine, named: type[NamedVisitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long texts are checked in threads: whoever sent many at once had as many as were sent."""
    slow.admission_hook = Share(2)
    checked, accept = [], slow._input_processor.process
    all_here = threading.Barrier(5)

    def process(request: SpeechRequest) -> Any:
        with suppress(threading.BrokenBarrierError):
            all_here.wait(0.5)
        return accept(request)

    monkeypatch.setattr(slow._input_processor, "process", process)

    def ask(_: int) -> None:
        with suppress(TooMany):
            checked.append(slow.submit(SpeechRequest("A long text.", Preset("ryan"))))

    with ThreadPoolExecutor(5) as threads:
        list(threads.map(ask, range(5)))
    assert len(checked) == 2
    for stream in checked:
        stream.cancel()


def test_a_program_is_told_when_to_come_back(slow: Engine, tmp_path: Path) -> None:
    client = browser(strangers(slow, tmp_path, guest_requests=1))
    client.get("/health")
    items = [{"input": "A sentence of some length."}] * 3
    answer = client.post("/v1/audio/speech/batch", json={"items": items, "voice": "ryan"})
    assert "Only 1 of your requests" in answer.text


def test_what_strangers_made_goes_and_what_is_fresh_stays(tmp_path: Path) -> None:
    root = guests_folder(tmp_path)
    old, fresh = root / "visitors" / "old" / "anna", root / "visitors" / "fresh" / "ben"
    for folder in (old, fresh, root / "scripts" / "old", tmp_path / "voices" / "mine"):
        folder.mkdir(parents=True)
        (folder / "voice.json").write_text("{}")
    for path in (old / "voice.json", old, old.parent):
        age(path, 8)
    for path in (root / "scripts" / "old" / "voice.json", root / "scripts" / "old"):
        age(path, 8)
    takes = Takes(root / "takes", clock=lambda: time.time() - 8 * DAY)
    starred = takes.add(np.zeros(10, np.int16), "old", "ryan", 1)
    takes.star(starred.id)
    takes._clock = time.time
    young = takes.add(np.zeros(10, np.int16), "young", "ryan", 1)
    assert tidy(root, takes, days=7) == 3
    assert [take.id for take in takes.search()] == [young.id]
    assert fresh.is_dir()
    assert not old.exists()
    assert (tmp_path / "voices" / "mine" / "voice.json").is_file()


def age(path: Path, days: float) -> None:
    before = time.time() - days * DAY
    os.utime(path, (before, before))


def test_tidying_follows_no_links(tmp_path: Path) -> None:
    root = guests_folder(tmp_path)
    (root / "visitors").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "visitors" / "link").symlink_to(outside)
    age(outside, 100)
    assert tidy(root, Takes(root / "takes"), days=7) == 0
    assert outside.is_dir()
