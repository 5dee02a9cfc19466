"""Downloads of takes: one in any format, several together, and what the page plays and draws."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from fastapi import FastAPI
from fastapi.testclient import TestClient

from engine import SOUND_FORMATS
from studio.takes import downloads
from studio.takes.take_store import WAVE_PARTS, Takes
from tests.support.player_stage import noise as frames_of_noise


@pytest.fixture
def takes(tmp_path: Path) -> Takes:
    return Takes(tmp_path)


def noise(samples: int) -> np.ndarray:
    return frames_of_noise(3)[:samples]


def client_of(takes: Takes) -> TestClient:
    app = FastAPI()
    app.include_router(downloads.router(takes))
    return TestClient(app)


@pytest.mark.parametrize("kind", SOUND_FORMATS)
def test_a_take_is_downloaded_in_every_format(takes: Takes, kind: str) -> None:
    take = takes.add(np.arange(24_000, dtype=np.int16), "x", "ryan", 1)
    with client_of(takes) as client:
        answer = client.get(f"/{downloads.link(take.id, kind)}")
        assert client.get(f"/{downloads.PATH}/gone.{kind}").status_code == 404
        assert client.get(f"/{downloads.PATH}/{take.id}.exe").status_code == 404
    disposition = answer.headers["content-disposition"]
    assert f'.{kind}"' in disposition
    assert disposition.endswith(f"x-ryan.{kind}")
    assert soundfile.info(io.BytesIO(answer.content)).duration == pytest.approx(1, abs=0.1)


def test_takes_are_downloaded_together(takes: Takes) -> None:
    spoken = [takes.add(noise(480), "Same words", "ryan", seed) for seed in range(3)]
    with client_of(takes) as client:
        query = [("id", take.id) for take in (spoken[2], spoken[0], spoken[2])]
        answer = client.get(f"/{downloads.PATH}.zip", params=query)
        assert client.get(f"/{downloads.PATH}.zip?id={spoken[0].id}&id=gone").status_code == 404
        many = "&".join(["id=x"] * (downloads.MOST + 1))
        assert client.get(f"/{downloads.PATH}.zip?{many}").status_code == 422
    with zipfile.ZipFile(io.BytesIO(answer.content)) as pack:
        assert pack.namelist() == ["01-Same-words-ryan.wav", "02-Same-words-ryan.wav"]
        for name, take in zip(pack.namelist(), (spoken[0], spoken[2]), strict=True):
            pcm, _ = soundfile.read(io.BytesIO(pack.read(name)), dtype="int16")
            np.testing.assert_array_equal(pcm, takes.pcm(take.id))


def test_too_much_sound_for_one_file_is_refused(
    takes: Takes, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = takes.add(noise(480), "x", "ryan", 1)
    monkeypatch.setattr(downloads, "LONGEST", 0.01)
    with client_of(takes) as client:
        answer = client.get(f"/{downloads.PATH}.zip?id={take.id}")
    assert answer.status_code == 413
    assert "too long" in answer.text


@pytest.mark.parametrize("start", [0, 100, 480, 999])
def test_the_page_gets_the_samples_of_a_take_from_anywhere(takes: Takes, start: int) -> None:
    take = takes.add(noise(480), "x", "ryan", 1)
    with client_of(takes) as client:
        answer = client.get(f"/{downloads.PATH}/{take.id}.pcm?from={start}")
        assert client.get(f"/{downloads.PATH}/gone.pcm").status_code == 404
    np.testing.assert_array_equal(np.frombuffer(answer.content, "<i2"), takes.pcm(take.id)[start:])


def test_a_wave_shows_where_a_take_is_loud(takes: Takes) -> None:
    pcm = np.concatenate([np.zeros(4000, np.int16), noise(4000), np.zeros(4000, np.int16)])
    wave = takes.wave(takes.add(pcm, "x", "ryan", 1).id)
    assert len(wave) == WAVE_PARTS
    third = WAVE_PARTS // 3
    assert (
        max(wave[: third - 1]) == max(wave[-third + 1 :]) == 0 < min(wave[third + 2 : -third - 2])
    )
    assert takes.wave("gone") == ()
