"""OpenAI's voices and voice consents: recordings of a consent are kept with the voice."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from httpx import Response

from engine import Clone, Engine, Library
from engine.testing import FakeCheckpoint, FakeEngine, fake_capabilities
from studio.api import create_api
from studio.voices.consent_recordings import FOLDER, MOST, consent_of, consent_sound
from tests.studio.api.routes.test_voices import recording, speak

PATH = "/v1/audio/voice_consents"


def agree(client: TestClient, name: str = "Ada agrees", **fields: Any) -> Response:
    data = {"name": name, "language": "en-US", **fields}
    return client.post(PATH, data=data, files={"recording": ("yes.wav", recording(3), "audio/wav")})


def make(client: TestClient, consent: str, name: str = "Ada") -> Response:
    data = {"name": name, "consent": consent, "type": "audio_sample"}
    files = {"audio_sample": ("ada.wav", recording(), "audio/wav")}
    return client.post("/v1/audio/voices", data=data, files=files)


def test_a_consent_is_kept_listed_renamed_and_deleted(client: TestClient) -> None:
    made = [agree(client, f"Number {number}").json() for number in range(3)]
    assert {each["object"] for each in made} == {"audio.voice_consent"}
    page = client.get(f"{PATH}?limit=2").json()
    assert (len(page["data"]), page["has_more"]) == (2, True)
    rest = client.get(f"{PATH}?limit=2&after={page['last_id']}").json()
    assert (len(rest["data"]), rest["has_more"]) == (1, False)
    assert sorted(each["id"] for each in page["data"] + rest["data"]) == sorted(
        each["id"] for each in made
    )
    path = f"{PATH}/{made[0]['id']}"
    assert client.get(path).json() == made[0]
    renamed = client.post(path, json={"name": "Ada, again"}).json()
    assert renamed == {**made[0], "name": "Ada, again"} == client.get(path).json()
    assert client.delete(path).json() == {
        "id": made[0]["id"],
        "object": "audio.voice_consent",
        "deleted": True,
    }
    assert client.get(path).status_code == 404
    assert len(client.get(PATH).json()["data"]) == 2


def test_a_voice_keeps_its_consent(client: TestClient, library: Library) -> None:
    consent = agree(client).json()
    voice = make(client, consent["id"]).json()
    assert (voice["object"], voice["type"]) == ("audio.voice", "audio_sample")
    assert client.delete(f"{PATH}/{consent['id']}").json()["deleted"]
    saved = library.get(voice["id"])
    kept, sound = consent_of(library, saved), consent_sound(library, saved)
    assert kept
    assert (kept.id, kept.name, kept.language) == (consent["id"], "Ada agrees", "en-US")
    assert sound
    assert soundfile.info(io.BytesIO(sound)).format == "FLAC"  # ours, not what was sent
    assert 1 < soundfile.info(io.BytesIO(sound)).duration < 3.1
    assert speak(client, voice={"id": voice["id"]}) == speak(client, voice="Ada")
    deleted = client.delete(f"/v1/audio/voices/{voice['id']}").json()
    assert (deleted["object"], deleted["deleted"]) == ("audio.voice.deleted", True)
    assert library.purge(older_than=-1) == 1
    assert not list(library.folder.rglob("consent.*"))


@pytest.mark.parametrize("consent", ["cons_000000000000000000000000", "cons_../../voices", "no"])
def test_a_voice_needs_a_consent_that_is_there(client: TestClient, consent: str) -> None:
    answer = make(client, consent)
    assert answer.status_code == (400 if consent == "no" else 404)
    assert answer.json()["error"]["param"] == "consent"
    assert client.get("/v1/audio/voices").json()["uploaded_voices"] == []


def test_hostile_consents_are_refused(client: TestClient, library: Library) -> None:
    noise = {"recording": ("yes.wav", b"RIFF" + b"x" * 999, "audio/wav")}
    fields = {"name": "Ada", "language": "en"}
    assert client.post(PATH, data=fields, files=noise).status_code == 422
    assert client.post(PATH, data=fields, files=noise).json()["error"]["param"] == "recording"
    assert agree(client, language="en_US; rm").status_code == 422
    assert agree(client, name="a\x00b").status_code == 422
    assert agree(client, name="x" * 201).status_code == 422
    missing = client.post(PATH, files={"name": (None, "Ada"), "language": (None, "en")})
    assert missing.json()["error"]["param"] == "recording"
    for name in ("..", "%2e%2e%2fvoices", "cons_" + "0" * 24):
        assert client.get(f"{PATH}/{name}").status_code in (404, 405)
    assert not list((library.folder / FOLDER).glob("*"))


def test_damaged_cards_are_left_out(client: TestClient, library: Library, tmp_path: Path) -> None:
    good = agree(client).json()
    folder = library.folder / FOLDER
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps({**good, "id": "cons_" + "1" * 24}))
    for number, text in enumerate(("", "[]", "{", '{"id": 1}', "[" * 4000)):
        (folder / f"cons_{number:024x}.json").write_text(text)
    (folder / f"cons_{'f' * 24}.json").symlink_to(outside)
    assert [each["id"] for each in client.get(PATH).json()["data"]] == [good["id"]]


def test_consents_are_bounded(
    client: TestClient, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.voices.consent_recordings.MOST", 2)
    assert MOST > 2
    assert [agree(client).status_code for _ in range(3)] == [200, 200, 409]


def test_a_described_voice_stays_the_same(client: TestClient, library: Library) -> None:
    fields = {"name": "Nurse", "prompt": "A warm, low voice.", "type": "prompt"}
    voice = client.post("/v1/audio/voices", json=fields).json()
    assert (voice["type"], voice["prompt"]) == ("prompt", "A warm, low voice.")
    saved = library.get(voice["id"])
    assert saved.card.kind == "design"
    assert isinstance(saved.voice, Clone)
    assert speak(client, voice={"id": voice["id"]}) == speak(client, voice="Nurse")
    form = {key: (None, value) for key, value in {**fields, "name": "Other"}.items()}
    form["script_hint"] = (None, "Good evening to you all.")
    assert client.post("/v1/audio/voices", files=form).json()["type"] == "prompt"
    (other,) = [each for each in library.list() if each.name == "Other"]
    assert other.card.transcript == "Good evening to you all."
    blank = client.post("/v1/audio/voices", json={**fields, "name": "Third", "prompt": "  "})
    assert (blank.status_code, blank.json()["error"]["param"]) == (400, "prompt")
    assert client.post("/v1/audio/voices", json=fields).status_code == 409


def test_a_description_needs_a_model_that_designs(library: Library) -> None:
    loaded = FakeCheckpoint(fake_capabilities(design=False))
    with FakeEngine([loaded]) as engine:
        client = TestClient(create_api(engine, library))
        answer = client.post(
            "/v1/audio/voices", json={"name": "A", "prompt": "A voice.", "type": "prompt"}
        )
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "not_capable")


def test_an_id_means_the_voice_with_this_id(
    client: TestClient, engine: Engine, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = library.save("Ada", Clone(np.full(16, 1, np.float32)), consent=True)
    library.rename(renamed.id, "Bea")
    library.save("ada", Clone(np.full(16, 2, np.float32)), consent=True)
    calls: list[Any] = []
    submit = engine.submit
    monkeypatch.setattr(engine, "submit", lambda each: calls.append(each.voice) or submit(each))
    for voice in ({"id": "ada"}, "ada", "Bea"):
        speak(client, voice=voice)
    assert [each.vector[0] for each in calls] == [1, 2, 1]
