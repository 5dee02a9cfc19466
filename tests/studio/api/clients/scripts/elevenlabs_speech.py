"""ElevenLabs' SDK lists voices, speaks whole and streams, with the times of characters, and as it
reads a text."""

import base64
import sys

from elevenlabs import ElevenLabs

client = ElevenLabs(base_url=sys.argv[1], api_key="none")
voices = client.voices.get_all().voices
assert "clara" in {voice.voice_id for voice in voices}, voices
assert client.voices.search().voices
assert client.voices.get("clara").name == "clara"
assert client.voices.settings.get("clara").speed == 1.0
assert any(model.can_do_text_to_speech for model in client.models.list())
assert client.user.subscription.get().status == "active"
assert client.user.get().subscription.character_limit > 1_000_000

text = "The train leaves at seven."
whole = b"".join(client.text_to_speech.convert("clara", text=text, output_format="mp3_44100_128"))
assert len(whole) > 4_000, len(whole)
parts = list(client.text_to_speech.stream("clara", text=text, output_format="pcm_24000"))
assert sum(map(len, parts)) > 20_000

timed = client.text_to_speech.convert_with_timestamps("clara", text=text, output_format="pcm_24000")
seconds = len(base64.b64decode(timed.audio_base_64)) / 48_000
assert "".join(timed.alignment.characters) == text, timed.alignment
assert 0.5 < timed.alignment.character_end_times_seconds[-1] <= seconds + 0.001, seconds
lines = list(
    client.text_to_speech.stream_with_timestamps("clara", text=text, output_format="pcm_24000")
)
assert sum(len(base64.b64decode(line.audio_base_64)) for line in lines) > 20_000
assert "".join(lines[-1].alignment.characters) == text, lines[-1]

# The SDK asks by wss:// whatever the base_url says; without TLS the address is given to it.
client.text_to_speech._ws_base_url = sys.argv[1].replace("http", "ws")
spoken = client.text_to_speech.convert_realtime(
    "clara", text=iter(["The train ", "leaves at ", "seven."]), output_format="pcm_24000"
)
assert sum(map(len, spoken)) > 20_000
