"""Limits hold for every way in: page, uploads, sockets, guesses, proxies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from secrets import token_hex
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import httpx
import numpy as np
import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from gradio.context import LocalContext
from pydantic import SecretStr
from starlette.responses import PlainTextResponse
from starlette.testclient import WebSocketDenialResponse
from starlette.types import Receive, Scope, Send

from engine import Clone, InvalidVoice, Library, Preset, SpeechRequest, SpeechStream, TooMany
from engine.testing import Costs, FakeEngine
from studio.api import ApiSettings, create_api
from studio.api.application import OURS
from studio.api.rates import Rates
from studio.server import visitors
from studio.server.admission import admission
from studio.server.middleware.page_routes import PageRoutes
from studio.server.serving import configure, listen
from studio.settings import StudioSettings
from studio.ui.login import Login
from tests.support.serving import running

SOCKET = "/v1/audio/speech/stream"


LONG = "kV3-qp8Zr_xT41mLwB9s"
LOGIN = Login((SecretStr("right"), SecretStr(LONG)))


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for Gradio with its login: reads what is sent, and knows two passwords."""
    request = Request(scope, receive)
    body = await request.body() if scope["method"] == "POST" else b""
    given = unquote(body.decode().removeprefix("password="))
    wrong = scope["path"] == "/login" and not LOGIN._allows("anybody", given)
    await PlainTextResponse("", 400 if wrong else 200)(scope, receive, send)


def visit(address: str = "192.0.2.1", rates: Rates | None = None, **limits: Any) -> TestClient:
    limits_of = rates or Rates(ApiSettings(**limits))
    routes = PageRoutes(page, lambda scope: True, OURS, limits_of)
    return TestClient(routes, client=(address, 1), raise_server_exceptions=False)


def join(client: TestClient, body: bytes = b"{}") -> int:
    return client.post("/gradio_api/queue/join", content=body).status_code


def test_events_of_the_page_are_counted() -> None:
    rates = Rates(ApiSettings(page_rate="5/minute"))
    one, other = visit(rates=rates), visit("192.0.2.2", rates)
    assert [join(one) for _ in range(7)] == [200] * 5 + [429] * 2
    answer = one.post("/gradio_api/run/speak", json={})
    assert answer.status_code == 429
    assert 50 < int(answer.headers["retry-after"]) <= 61
    assert answer.json()["detail"] == answer.json()["error"]["message"], "the page shows `detail`"
    assert (join(other), one.get("/").status_code) == (200, 200)


@pytest.mark.parametrize("declared", [True, False])
def test_uploads_have_a_quota(declared: bool) -> None:
    client, piece = visit(page_bytes=2**20), bytes(2**18)
    sent = []
    for _ in range(8):
        content = piece if declared else iter([piece])
        sent.append(client.post("/gradio_api/upload", content=content).status_code)
    assert sent[:4] == [200] * 4
    assert sent[-3:] == [429] * 3


def test_a_project_that_is_sent_again_locks_nobody_out() -> None:
    client = visit(page_bytes=2**20)
    for _ in range(4):
        assert client.post("/timbre/projects", content=bytes(2**19)).status_code == 200
    assert client.post("/gradio_api/upload", content=bytes(2**18)).status_code == 200
    assert join(client) == 200


def test_wrong_passwords_meet_a_limit() -> None:
    rates = Rates(ApiSettings())
    guesser, other = visit(rates=rates), visit("192.0.2.2", rates)

    def log_in(client: TestClient, password: str) -> int:
        return client.post("/login", data={"password": password}).status_code

    assert [log_in(guesser, str(number)) for number in range(12)] == [400] * 10 + [429] * 2
    assert log_in(guesser, "right") == 429  # else it could be found by trying on
    assert log_in(guesser, LONG) == 200
    assert log_in(guesser, LONG[:-1]) == 429
    assert log_in(other, "right") == 200


def test_wrong_keys_meet_a_limit_and_who_is_in_stays(tmp_path: Any) -> None:
    with FakeEngine() as engine:
        keys = ("first", "second", LONG)
        api = create_api(engine, Library(tmp_path), ApiSettings(keys=keys))
        here, there = TestClient(api, client=("192.0.2.1", 1)), TestClient(api)

        def models(client: TestClient, key: str) -> int:
            headers = {"Authorization": f"Bearer {key}"}
            return client.get("/v1/models", headers=headers).status_code

        assert models(here, "first") == 200
        assert [models(here, str(number)) for number in range(12)] == [401] * 10 + [429] * 2
        assert here.get("/v1/models").status_code == 401  # no key is no guess
        assert [models(here, "first"), models(here, "second")] == [200, 429]
        assert [models(here, LONG), models(here, LONG[:-1])] == [200, 429]
        assert models(there, "second") == 200


def test_sockets_of_one_address_are_a_share(tmp_path: Any) -> None:
    with FakeEngine() as engine:
        api = create_api(engine, Library(tmp_path), ApiSettings(sockets=3, address_sockets=1))
        here, there = TestClient(api, client=("192.0.2.1", 1)), TestClient(api)
        with here.websocket_connect(SOCKET):
            with pytest.raises(WebSocketDenialResponse) as refused, here.websocket_connect(SOCKET):
                pass
            assert refused.value.status_code == 429
            with there.websocket_connect(SOCKET):
                pass
        with here.websocket_connect(SOCKET):
            pass


@contextmanager
def an_event_of(address: str) -> Iterator[None]:
    """As Gradio runs one."""
    request = SimpleNamespace(scope={"client": (address, 1)})
    token = LocalContext.request.set(SimpleNamespace(request=request, session_hash="x"))
    try:
        yield
    finally:
        LocalContext.request.reset(token)


def test_speech_of_the_page_counts_for_the_rate_of_its_address(tmp_path: Any) -> None:
    settings = ApiSettings(address_rate="2/minute")
    configured = StudioSettings(data=tmp_path, api=settings)
    request = SpeechRequest("Hi.", Preset("ryan"))
    with FakeEngine() as engine:
        engine.admission_hook = admission(configured, Rates(settings))
        with an_event_of("192.0.2.1"):
            for _ in range(2):
                engine.submit(request).cancel()
            with pytest.raises(TooMany) as refused:
                engine.submit(request)
        assert refused.value.retry_after > 50
        with an_event_of("192.0.2.2"):
            engine.submit(request).cancel()
        engine.submit(request).cancel()  # a program's is counted at the API's door


def test_guests_without_cookies_share_what_their_address_has(tmp_path: Any) -> None:
    settings = StudioSettings(data=tmp_path, guests=True, guest_requests=1)
    with FakeEngine(costs=Costs(step=0.05)) as engine:
        engine.admission_hook = admission(settings, Rates(settings.api))
        held = [ask_as_somebody_new(engine) for _ in range(visitors.OF_ONE_ADDRESS)]
        with pytest.raises(TooMany):
            ask_as_somebody_new(engine)
        for stream in held:
            stream.cancel()


def ask_as_somebody_new(engine: FakeEngine) -> SpeechStream:
    mark, place = visitors._asking.set(token_hex()), visitors._address.set("192.0.2.1")
    try:
        return engine.submit(SpeechRequest("x" * 99, Preset("ryan")))
    finally:
        visitors._asking.reset(mark)
        visitors._address.reset(place)


def test_no_way_leads_into_a_full_library(tmp_path: Any) -> None:
    library = Library(tmp_path, most=2)
    voice = Clone(np.ones(16, np.float32))
    first = library.save("A", voice, consent=True)
    file, ticket = library.export(first.id), library.delete(first.id)
    library.save("B", voice)
    library.save("C", voice)
    for enter in (
        lambda: library.save("D", voice),
        lambda: library.import_file(file),
        lambda: library.restore(ticket),
    ):
        with pytest.raises(InvalidVoice, match="full"):
            enter()


@contextmanager
def echo(proxies: tuple[str, ...]) -> Iterator[str]:
    """A server that answers with the client's address as it sees it."""
    application = FastAPI()

    @application.get("/")
    async def who(request: Request) -> str:
        return request.client.host if request.client else ""

    with ExitStack() as held:
        address = held.enter_context(listen("127.0.0.1", 0))
        held.enter_context(running(configure(application, proxies), [address]))
        yield "http://{}:{}".format(*address.getsockname())


@pytest.mark.parametrize(
    ("proxies", "believed"),
    [
        ((), "127.0.0.1"),
        (("10.0.0.0/8",), "127.0.0.1"),
        (("127.0.0.1",), "198.51.100.7"),
        (("127.0.0.0/8", "198.51.100.7"), "203.0.113.9"),
    ],
)
def test_only_a_proxy_that_is_named_says_who_asks(proxies: tuple[str, ...], believed: str) -> None:
    """What a client writes itself stands before what the proxy adds."""
    with echo(proxies) as url:
        headers = {"X-Forwarded-For": "203.0.113.9, 198.51.100.7"}
        assert httpx.get(url, headers=headers).json() == believed
