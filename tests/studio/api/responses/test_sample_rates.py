"""Any format, sample and bit rate that is asked for, with nothing to hear where pieces meet."""

from __future__ import annotations

import io
from typing import Any, get_args

import av
import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import SAMPLE_RATE, Pcm
from studio.api.responses.audio_output import Output, Render, render
from studio.api.responses.encoding import MEDIA_TYPES, OPUS_RATES, Format, SampleRate, bit_rates
from tests.studio.api.responses.test_encoding import READABLE

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


@pytest.mark.parametrize("format", READABLE)
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


@settings(max_examples=20)
@given(st.lists(st.integers(0, 12_000), max_size=8), st.sampled_from(["ulaw", "alaw"]))
def test_telephony_is_g711_however_it_is_cut(cuts: list[int], format: Format) -> None:
    """Read by another decoder, it is the sound to the accuracy of 14 and 13 bits in steps."""
    output = Output(format, sample_rate=8000)
    data = streamed(tone(), cuts, output)
    assert data == render(tone(), output)
    wanted = np.frombuffer(render(tone(), Output("pcm", sample_rate=8000)), "<i2").astype(int)
    found = g711(data, format)
    assert len(found) == len(wanted) == len(data)
    assert np.all(np.abs(found - wanted) <= np.maximum(16, np.abs(wanted) / 16))


def g711(data: bytes, format: Format) -> np.ndarray:
    """What ffmpeg decodes."""
    with av.open(io.BytesIO(data), format={"ulaw": "mulaw", "alaw": "alaw"}[format]) as file:
        return np.concatenate([frame.to_ndarray()[0] for frame in file.decode(audio=0)]).astype(int)


@pytest.mark.parametrize("name", ["ulaw", "alaw", "g711_ulaw", "g711_alaw", "ulaw_8000", "pcmu"])
def test_telephony_has_8_khz_by_itself(client: TestClient, name: str) -> None:
    body = {"input": "The morning train.", "seed": 1, "response_format": name}
    answer = client.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] in ("audio/PCMU", "audio/PCMA")
    assert len(answer.content) == pytest.approx(8000 * plain_seconds(client), abs=8)
    assert client.post(PATH, json={**body, "stream": False}).content == answer.content


# sample rates from each group that has a table of its own
CODED = [("mp3", rate) for rate in (44100, 24000, 8000)]
CODED += [("opus", 48000), ("aac", 24000), ("aac", 8000)]


@pytest.mark.parametrize(("format", "rate"), CODED)
def test_bit_rates_are_what_was_asked_for(format: Format, rate: int) -> None:
    noise = np.random.default_rng(1).normal(0, 3000, 3 * SAMPLE_RATE).astype(np.int16)
    there = bit_rates(format, rate)
    for wanted in (there[0], there[len(there) // 2], there[-1]):
        output = Output(format, sample_rate=rate, bit_rate=wanted)
        for data in (render(noise, output), streamed(noise, [1920, 24_000], output)):
            found = len(data) * 8 / 3 / 1000
            assert found == pytest.approx(wanted, rel=0.12, abs=4), (format, rate, wanted)


def test_what_no_encoder_makes_is_refused(client: TestClient) -> None:
    for fields, param in (
        ({"response_format": "mp3", "bit_rate": 320}, "bit_rate"),  # at 24 kHz
        ({"response_format": "wav", "bit_rate": 128}, "bit_rate"),
        ({"response_format": "opus", "bit_rate": 400}, "bit_rate"),
        ({"response_format": "opus_44100_64"}, "sample_rate"),
        ({"response_format": "ulaw_8000", "sample_rate": 16000}, "sample_rate"),
        ({"response_format": "pcm_8000_64"}, "bit_rate"),
        ({"response_format": "pcm_f32le"}, "response_format"),
        ({"response_format": "mp3_44100_²"}, "response_format"),
    ):
        answer = client.post(PATH, json={"input": "Hello.", **fields})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), fields
    same = {"response_format": "ulaw_8000", "sample_rate": 8000, "bit_rate": None}
    assert client.post(PATH, json={"input": "Hello.", **same}).status_code == 200


ELEVENLABS = """
mp3_22050_32 mp3_24000_48 mp3_44100_32 mp3_44100_64 mp3_44100_96 mp3_44100_128 mp3_44100_192
pcm_8000 pcm_16000 pcm_22050 pcm_24000 pcm_32000 pcm_44100 pcm_48000 ulaw_8000 alaw_8000
opus_48000_32 opus_48000_64 opus_48000_96 opus_48000_128 opus_48000_192
wav_8000 wav_16000 wav_22050 wav_24000 wav_32000 wav_44100 wav_48000
"""


@pytest.mark.parametrize("name", ELEVENLABS.split())
def test_elevenlabs_formats_are_what_they_say(client: TestClient, name: str) -> None:
    kind, rate, *bits = name.split("_")
    path = "/v1/text-to-speech/ryan?output_format="
    body = {"text": "The morning train.", "seed": 1}
    answer = client.post(path + name, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPES[kind]
    seconds = plain_seconds(client)
    if kind in ("pcm", "ulaw", "alaw"):
        width = 2 if kind == "pcm" else 1
        assert len(answer.content) / width / int(rate) == pytest.approx(seconds, abs=0.01)
        return
    with av.open(io.BytesIO(answer.content)) as file:
        track = file.streams.audio[0]
        assert track.rate == int(rate)
        if kind == "mp3":
            assert track.codec_context.bit_rate == 1000 * int(bits[0])


@pytest.mark.parametrize("name", ["pcm_12345", "mp3_44100_7", "mp3_44100_144", "ogg_vorbis", ""])
def test_elevenlabs_refusals_have_its_form_too(client: TestClient, name: str) -> None:
    answer = client.post(f"/v1/text-to-speech/ryan?output_format={name}", json={"text": "Hello."})
    assert answer.status_code == 400
    problem = answer.json()
    assert problem["detail"] == {"status": "invalid_value", "message": problem["error"]["message"]}


def ask(client: TestClient, format: str, rate: int, **fields: Any) -> Any:
    body = {"input": "The morning train.", "seed": 1, "response_format": format}
    return client.post(PATH, json={**body, "sample_rate": rate, **fields})


def plain_seconds(client: TestClient) -> float:
    return len(ask(client, "pcm", SAMPLE_RATE).content) / 2 / SAMPLE_RATE
