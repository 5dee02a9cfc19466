"""litellm speaks through its openai/ provider."""

import sys

import litellm

url = sys.argv[1]
speech = litellm.speech(
    model="openai/tts-1",
    voice="alloy",
    input="The train leaves at seven.",
    api_base=f"{url}/v1",
    api_key="none",
    response_format="wav",
)
sound = speech.content
assert sound[:4] == b"RIFF", sound[:40]
assert len(sound) > 20_000, len(sound)
