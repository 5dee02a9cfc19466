"""OpenAI's SDK keeps a consent, makes a voice with it and one out of a description, and speaks."""

import io
import sys
import wave

import openai
from sounds import recording

client = openai.OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="none", max_retries=0)
consents = client.audio.voice_consents
consent = consents.create(
    name="SDK agrees", language="en-US", recording=("yes.wav", recording(), "audio/wav")
)
assert consent.object == "audio.voice_consent", consent
assert consent.id in [each.id for each in consents.list(limit=1)], "pages are followed"
assert consents.retrieve(consent.id).name == "SDK agrees"
assert consents.update(consent.id, name="SDK still agrees").name == "SDK still agrees"

voice = client.audio.voices.create(
    name="SDK voice", consent=consent.id, audio_sample=("me.wav", recording(), "audio/wav")
)
assert (voice.object, voice.type) == ("audio.voice", "audio_sample"), voice
speech = client.audio.speech.create(
    model="gpt-4o-mini-tts",
    voice={"id": voice.id},
    input="The train leaves at seven.",
    response_format="wav",
)
with wave.open(io.BytesIO(speech.content)) as sound:
    assert sound.getframerate() == 24_000

designed = None
try:
    designed = client.audio.voices.create(
        name="SDK design", type="prompt", prompt="A warm, low voice of a woman."
    )
    assert (designed.type, designed.prompt) == ("prompt", "A warm, low voice of a woman.")
except openai.UnprocessableEntityError as error:
    if error.code != "not_capable":  # what a model without design says
        raise

with client.audio.speech.with_streaming_response.create(
    model="gpt-4o-mini-tts",
    voice="alloy",
    input="As events.",
    response_format="pcm",
    stream_format="sse",
) as answer:
    last = [line for line in answer.iter_lines() if line.startswith("data:")][-1]
    assert '"speech.audio.done"' in last, last
    assert '"usage":{"input_tokens":' in last, last

for made in filter(None, (voice, designed)):
    gone = client.audio.voices.delete(made.id)
    assert (gone.deleted, gone.object) == (True, "audio.voice.deleted"), gone
gone = consents.delete(consent.id)
assert (gone.deleted, gone.object) == (True, "audio.voice_consent"), gone
param = None
try:
    client.audio.voices.create(
        name="No", consent=consent.id, audio_sample=("me.wav", recording(), "audio/wav")
    )
except openai.NotFoundError as error:
    param = error.param
assert param == "consent", "a consent that is gone was taken"
