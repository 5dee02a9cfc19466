"""JSON bodies with far too many values: refused before they cost anything, listeners go on."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request, Response, routing
from fastapi.exceptions import RequestValidationError
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from starlette.routing import Route

from engine import EngineSettings, Library
from engine.testing import FakeEngine
from studio.api import create_api
from studio.api.bodies.json_body import DEPTH, ITEMS, KEYS, SEPARATORS, BoundedJson, Direct, parse
from studio.api.bodies.schemas import SpeechBody
from studio.api.errors import ApiError, explain

MIB = 1 << 20
BLOCKED = 0.25  # seconds of work that may hold the loop; before, 2 to 30

ONES = "[" + "1," * MIB + "1]"
KEYED = "{" + ",".join(f'"k{number}":1' for number in range(200_000)) + "}"
ATTACKS = {
    "items": ("/v1/audio/speech/batch", f'{{"items":{ONES}}}'),
    "few items": ("/v1/audio/speech/batch", '{"items":[' + "1," * 50_000 + "1]}"),
    "item fields": ("/v1/audio/speech/batch", f'{{"items":[{KEYED}]}}'),
    "voices": ("/v1/audio/voices/blend", f'{{"name":"x","voices":{ONES}}}'),
    "few voices": ("/v1/audio/voices/blend", '{"name":"x","voices":[' + "1," * 8000 + "1]}"),
    "unknown keys": ("/v1/audio/speech", KEYED),
    "embedding": ("/v1/audio/speech", f'{{"input":"x","speaker_embedding":{ONES}}}'),
    "words": ("/v1/audio/speech", '{"input":"x","speaker_embedding":[' + '"a",' * 8000 + '"a"]}'),
    "depth": ("/v1/audio/speech", "[" * MIB),
    "deep keys": ("/v1/audio/speech", '{"a":' * 100_000 + "1" + "}" * 100_000),
    "largest": ("/v1/audio/speech/batch", '{"items":[' + "1," * (8 * MIB - 16) + "1]}"),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    with FakeEngine(settings=EngineSettings(max_num_seqs=4)) as engine:
        yield engine


async def longest_block(work: Any) -> tuple[Any, float]:
    """The result, and the most work (CPU time) that the loop did in one go."""
    worst, stop = 0.0, False

    async def tick() -> None:
        nonlocal worst
        while not stop:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            worst = max(worst, time.thread_time() - before)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    result = await work
    await asyncio.sleep(0.01)
    stop = True
    await ticking
    return result, worst


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_body_holds_the_loop(engine: FakeEngine, tmp_path: Any, attack: str) -> None:
    path, body = ATTACKS[attack]

    async def ask() -> tuple[httpx.Response, float]:
        transport = httpx.ASGITransport(create_api(engine, Library(tmp_path)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.get("/v1/models")
            headers = {"content-type": "application/json"}
            return await longest_block(client.post(path, content=body, headers=headers))

    answer, blocked = asyncio.run(ask())
    assert answer.status_code in (400, 413)
    assert len(answer.content) < 2000
    assert blocked < BLOCKED


@pytest.mark.parametrize(
    "text", [ONES, KEYED, "[" * 1000, json.dumps([[]] * (ITEMS + 1)), '{"a":1,}', "", "NaN,"]
)
def test_what_is_too_much_or_no_json_is_an_api_error(text: str) -> None:
    with pytest.raises(ApiError):
        parse(text)
    with pytest.raises(ApiError):
        parse(text.encode())


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0) if isinstance(value, dict | list) else 0


@given(values)
def test_what_is_small_is_what_json_says(value: Any) -> None:
    if depth(value) <= DEPTH:
        assert parse(json.dumps(value)) == value
    else:
        with pytest.raises(ApiError):
            parse(json.dumps(value))


def test_a_full_batch_is_not_too_much() -> None:
    vector = [0.125] * 2048
    body = json.dumps({"items": [{"input": "x", "speaker_embedding": vector}] * 32})
    assert body.count(",") < SEPARATORS
    assert len(parse(body)["items"]) == 32
    assert len(parse(json.dumps({str(number): 1 for number in range(KEYS)}))) == KEYS


def test_a_body_is_refused_before_the_rest_of_it_arrives(engine: FakeEngine, tmp_path: Any) -> None:
    sent = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b"1," * 30_000

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(create_api(engine, Library(tmp_path)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            headers = {"content-type": "application/json"}
            return await client.post("/v1/audio/speech", content=pieces(), headers=headers)

    assert asyncio.run(ask()).status_code == 413
    assert sent == 4


def test_a_file_that_windows_wrote_is_json(engine: FakeEngine, tmp_path: Any) -> None:
    """Its editors and PowerShell begin UTF-8 with a mark: `curl -d @speech.json`."""
    client = TestClient(create_api(engine, Library(tmp_path)))
    body = json.dumps({"input": "Hello.", "voice": "ryan"}).encode("utf-8-sig")
    headers = {"content-type": "application/json"}
    answer = client.post("/v1/audio/speech", content=body, headers=headers)
    assert answer.status_code == 200, answer.text


BODIES = (
    *(
        {"input": "Hello", "voice": "ryan"},
        {"text": "Hello", "speaker": {"id": "x"}},
        None,
        [],
        "a",
    ),
    *(
        {},
        {"input": 1},
        {"input": "x", "speed": 9, "top_k": "a"},
        {"input": "x", "voice": {"id": ""}},
    ),
    *(
        {"input": "x", "vois": 1},
        {"input": "x", "speaker_embedding": [1, None]},
        {"a": [[[[[[1]]]]]]},
    ),
    {"input": "x", "response_format": "opus", "sample_rate": 44100},
)


@pytest.mark.parametrize("body", BODIES, ids=json.dumps)
def test_a_direct_route_gives_and_refuses_what_fastapi_would(body: Any) -> None:
    async def speak(body: SpeechBody) -> Response:
        return Response(repr(body))

    async def refused(request: Request, error: Exception) -> Response:
        return explain(error).response()

    known = (RequestValidationError, ValidationError, ApiError)
    app = FastAPI(exception_handlers=dict.fromkeys(known, refused))
    router = APIRouter(route_class=BoundedJson)
    router.post("/solved", response_class=Response)(speak)
    app.include_router(router)
    app.router.routes.append(Route("/direct", Direct(SpeechBody, speak), methods=["POST"]))
    with TestClient(app) as client:
        direct, solved = (client.post(path, json=body) for path in ("/direct", "/solved"))
    assert (direct.status_code, direct.text) == (solved.status_code, solved.text)
    assert dict(direct.headers) == dict(solved.headers)


def test_speech_is_a_direct_route(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "run_endpoint_function", None)  # FastAPI calls nothing
    assert client.post("/v1/audio/speech", json={"input": "Hello"}).status_code == 200
    told = client.post("/v1/audio/speech", json={"input": 1}).json()["error"]
    assert told["param"] == "input"
    monkeypatch.undo()
    allowed = client.get("/v1/audio/speech")
    assert (allowed.status_code, allowed.headers["allow"]) == (405, "OPTIONS, POST")
