"""Any sample rate that is asked for, with nothing to hear where pieces meet."""

from __future__ import annotations

import io
from typing import Any, get_args

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import SAMPLE_RATE, Pcm
from studio.api.responses.audio_output import Output, Render, render
from studio.api.responses.encoding import OPUS_RATES, SampleRate

RATES = get_args(SampleRate)
TONE = 440.0
PATH = "/v1/audio/speech"


def tone(seconds: float = 0.5, rate: int = SAMPLE_RATE) -> Pcm:
    time = np.arange(int(seconds * rate)) / rate
    return np.round(8000 * np.sin(2 * np.pi * TONE * time)).astype(np.int16)


def streamed(pcm: Pcm, cuts: list[int], output: Output) -> bytes:
    made = Render(output)
    return b"".join(made.feed(part) for part in np.split(pcm, sorted(cuts))) + made.finish()


@settings(max_examples=30)
@given(st.lists(st.integers(0, 12_000), max_size=8), st.sampled_from(RATES))
def test_pieces_are_the_whole_however_it_is_cut(cuts: list[int], rate: int) -> None:
    output = Output("pcm", sample_rate=rate)
    assert streamed(tone(), cuts, output) == render(tone(), output)


@pytest.mark.parametrize("rate", RATES)
def test_a_tone_stays_the_tone(rate: int) -> None:
    """Of the right length and pitch, and no louder error anywhere than resampling has."""
    found = np.frombuffer(
        streamed(tone(), [1920, 3840, 9600], Output("pcm", sample_rate=rate)), "<i2"
    )
    wanted = tone(rate=rate)
    assert abs(len(found) - len(wanted)) <= 2
    inner = slice(rate // 50, -rate // 50)
    length = min(len(found), len(wanted))
    error = found[:length].astype(int) - wanted[:length]
    assert np.abs(error[inner]).max() <= 80  # of 8,000


@pytest.mark.parametrize("format", ["wav", "mp3", "flac", "opus"])
def test_files_say_their_rate(client: TestClient, format: str) -> None:
    for rate in (8000, 16000, 48000):
        answer = ask(client, format, rate)
        assert answer.status_code == 200, answer.text
        sound, found = soundfile.read(io.BytesIO(answer.content))
        assert found == rate or format == "opus"  # it is decoded at 48 kHz by some
        assert len(sound) / found == pytest.approx(
            plain_seconds(client), abs=0.3
        )  # a frame of MP3 has 0.14 s


def test_a_stream_and_a_whole_answer_are_the_same(client: TestClient) -> None:
    assert (
        ask(client, "pcm", 8000, stream=True).content
        == ask(client, "pcm", 8000, stream=False).content
    )


def test_what_cannot_be_is_refused(client: TestClient) -> None:
    assert ask(client, "pcm", 12345).status_code == 400
    for rate in set(RATES) - set(OPUS_RATES):
        answer = ask(client, "opus", rate)
        assert answer.status_code == 400
        assert "opus" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("name", "rate"), [("pcm_16000", 16000), ("mp3_44100_128", 44100)])
def test_elevenlabs_formats_have_their_rate(client: TestClient, name: str, rate: int) -> None:
    voice = client.get("/v1/voices").json()["voices"][0]["voice_id"]
    body = {"text": "The morning train.", "seed": 1}
    answer = client.post(f"/v1/text-to-speech/{voice}?output_format={name}", json=body)
    assert answer.status_code == 200, answer.text
    if name.startswith("pcm"):
        whole = client.post(f"/v1/text-to-speech/{voice}?output_format=pcm_24000", json=body)
        assert len(answer.content) == pytest.approx(len(whole.content) * rate / 24000, abs=8)
    else:
        assert soundfile.read(io.BytesIO(answer.content))[1] == rate


def ask(client: TestClient, format: str, rate: int, **fields: Any) -> Any:
    body = {"input": "The morning train.", "seed": 1, "response_format": format}
    return client.post(PATH, json={**body, "sample_rate": rate, **fields})


def plain_seconds(client: TestClient) -> float:
    return len(ask(client, "pcm", SAMPLE_RATE).content) / 2 / SAMPLE_RATE
