"""What programs find by themselves: methods, headers, parts of sounds, and the OpenAPI document."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
import soundfile
from fastapi import FastAPI
from fastapi.testclient import TestClient

from engine import Engine, Library
from studio.api import ApiSettings, create_api
from studio.api.openapi import FORMS, OPEN_PATHS, SPOKEN, STATUSES
from studio.api.responses.encoding import MEDIA_TYPES

PATH = "/v1/audio/speech"
PREVIEW = "/v1/audio/voices/ryan/preview"
BODY = {"input": "Hello there.", "response_format": "pcm"}


def document(client: TestClient) -> dict[str, Any]:
    read: dict[str, Any] = client.get("/openapi.json").json()
    return read


def paths_of(client: TestClient) -> list[tuple[str, set[str]]]:
    paths = document(client)["paths"].items()
    return [(re.sub("{.*?}", "ryan", path), {each.upper() for each in of}) for path, of in paths]


def test_every_path_says_which_methods_it_has(client: TestClient) -> None:
    every = {"GET", "POST", "PUT", "PATCH", "DELETE"}
    assert len(paths_of(client)) >= 15
    for path, has in paths_of(client):
        for method in every - has:
            if (method, path) == ("DELETE", "/v1/audio/voices/blend"):
                continue  # a voice of that name
            answer = client.request(method, path)
            assert answer.status_code == 405, (method, path)
            assert answer.json()["error"]["code"] == "method_not_allowed"
            allowed = set(answer.headers["allow"].split(", "))
            assert has <= allowed
            assert method not in allowed
        assert client.options(path).status_code in (204, 405)
    assert client.get("/v1/nothing").status_code == 404
    assert client.get("/v2/voices/nothing").json()["error"]["code"] == "not_found"


def test_beside_a_page_paths_and_methods_are_refused_as_without(client: TestClient) -> None:
    api = client.app
    assert isinstance(api, FastAPI)
    api.mount("/", FastAPI())  # which would answer everything
    assert client.post("/v1/chat/completions").status_code == 404
    answer = client.put("/v1/models")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


def test_head_is_get_without_its_body(client: TestClient) -> None:
    for path, has in paths_of(client):
        answer = client.head(path)
        assert answer.content == b""
        if "GET" in has:
            response = client.get(path)
            assert answer.status_code == response.status_code, path
            assert answer.headers["content-type"] == response.headers["content-type"]
            if path != "/metrics":  # it counts what is asked
                assert answer.headers["content-length"] == response.headers["content-length"], path
        else:
            assert answer.status_code == 405, path


def test_a_preview_may_be_asked_for_in_parts(client: TestClient, engine: Engine) -> None:
    whole = client.get(PREVIEW)
    assert engine.stats().ended == {"finished": 1}
    tag, length = whole.headers["etag"], len(whole.content)
    assert soundfile.info(io.BytesIO(whole.content)).duration > 0
    assert whole.headers["accept-ranges"] == "bytes"
    for span, first, last in (
        ("bytes=0-99", 0, 100),
        ("bytes=100-", 100, length),
        ("bytes=-50", length - 50, length),
        (f"bytes=10-{length + 5}", 10, length),
    ):
        part = client.get(PREVIEW, headers={"range": span})
        assert part.status_code == 206
        assert part.content == whole.content[first:last]
        assert part.headers["content-range"] == f"bytes {first}-{last - 1}/{length}"
        assert part.headers["etag"] == tag
    for span in ("bytes=5-2", "bytes=0-1,5-9", "lines=0-1", "bytes=-"):
        assert client.get(PREVIEW, headers={"range": span}).content == whole.content
    beyond = client.get(PREVIEW, headers={"range": f"bytes={length}-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{length}")
    other = {"range": "bytes=0-9", "if-range": '"another"'}
    assert client.get(PREVIEW, headers=other).content == whole.content
    for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        again = client.get(PREVIEW, headers={"if-none-match": known})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get(PREVIEW, headers={"if-none-match": '"x"'}).status_code == 200
    assert client.get(PREVIEW.replace("ryan", "vivian")).headers["etag"] != tag
    assert client.get(PREVIEW.replace("ryan", "vivian")).content != whole.content
    assert client.get(PREVIEW).content == whole.content
    assert engine.stats().ended == {"finished": 2}  # vivian's, once; ryan's was not spoken again


def test_rates_are_told_with_every_answer(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(address_rate="3/minute")))
    seen = [client.get("/v1/models") for _ in range(4)]
    assert [each.status_code for each in seen] == [200, 200, 200, 429]
    assert [each.headers["x-ratelimit-remaining-requests"] for each in seen] == list("2100")
    for answer in seen:
        assert answer.headers["x-ratelimit-limit-requests"] == "3"
        assert re.fullmatch(r"\d+s", answer.headers["x-ratelimit-reset-requests"])
    free = TestClient(create_api(engine, library))
    assert "x-ratelimit-limit-requests" not in free.get("/v1/models").headers


def test_scripts_of_other_pages_may_read_what_was_ignored(engine: Engine, library: Library) -> None:
    settings = ApiSettings(origins=("https://page.example",))
    client = TestClient(create_api(engine, library, settings))
    answer = client.post(PATH, json={**BODY, "user": 1}, headers={"origin": "https://page.example"})
    assert answer.headers["x-ignored-fields"] == "user"
    exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
    assert {"x-ignored-fields", "x-warnings", "x-seed", "etag", "retry-after"} <= set(exposed)
    body = {**BODY, "word_timestamps": True}
    timed = client.post(PATH, json=body, headers={"origin": "https://page.example"})
    told = {name for name in timed.headers if name.startswith("x-")}
    assert told >= {"x-word-timestamps", "x-vllm-omni-total-tokens"}
    assert told - {"x-accel-buffering"} <= set(exposed)


def test_the_document_tells_sounds_errors_keys_and_forms(client: TestClient) -> None:
    whole = document(client)
    assert client.get("/v1/openapi.json").json() == whole
    assert set(whole["components"]["securitySchemes"]) == {"bearer", "xi-api-key"}
    error = {"$ref": "#/components/schemas/Error"}
    for path, operations in whole["paths"].items():
        for method, operation in operations.items():
            for status in STATUSES:
                if (path, status) in (("/health", 503), ("/ready", 503)):
                    continue
                content = operation["responses"][str(status)]["content"]
                assert content["application/json"]["schema"] == error, (path, status)
            assert ("security" in operation) == (path not in OPEN_PATHS)
            ok = operation["responses"]["200"]["content"]
            assert ok
            if (path, method) in SPOKEN:
                assert "audio/wav" in ok
                # Generated clients read an answer as the first kind that they know.
                assert next(iter(ok)) == "application/octet-stream"
                sounds = [of["schema"] for kind, of in ok.items() if kind != "text/event-stream"]
                assert all(each["format"] == "binary" for each in sounds)
    speech = whole["paths"][PATH]["post"]["responses"]["200"]["content"]
    assert {*MEDIA_TYPES.values(), "text/event-stream"} <= set(speech)
    for path, form in FORMS.items():
        content = whole["paths"][path]["post"]["requestBody"]["content"]
        kind = {"$ref": f"#/components/schemas/{form['title']}"}
        assert content["multipart/form-data"]["schema"] == kind
        fields = whole["components"]["schemas"][form["title"]]["properties"]
        assert any(field.get("format") == "binary" for field in fields.values())
    assert "422" in whole["paths"][PATH]["post"]["responses"]
    assert "HTTPValidationError" not in str(whole)


def test_the_document_needs_a_key_where_all_else_does(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(keys=("secret",))))
    for path in ("/openapi.json", "/v1/openapi.json"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"authorization": "Bearer secret"}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/models", "/v2/voices", "/openapi.json", "/v1/x/y"])
def test_answers_of_other_methods_count_for_keys_too(
    engine: Engine, library: Library, path: str
) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(keys=("secret",))))
    for method in ("HEAD", "PATCH", "DELETE", "OPTIONS"):
        assert client.request(method, path).status_code == 401, method
