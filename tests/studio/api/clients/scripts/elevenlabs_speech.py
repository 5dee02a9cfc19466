"""ElevenLabs' SDK lists voices, speaks whole and streams."""

import sys

from elevenlabs import ElevenLabs

client = ElevenLabs(base_url=sys.argv[1], api_key="none")
voices = client.voices.get_all().voices
assert "clara" in {voice.voice_id for voice in voices}, voices
assert client.voices.search().voices
text = "The train leaves at seven."
whole = b"".join(client.text_to_speech.convert("clara", text=text, output_format="mp3_44100_128"))
assert len(whole) > 4_000, len(whole)
parts = list(client.text_to_speech.stream("clara", text=text, output_format="pcm_24000"))
assert sum(map(len, parts)) > 20_000
