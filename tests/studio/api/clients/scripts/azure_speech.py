"""Azure's class of OpenAI's SDK speaks at a deployment's path."""

import sys

import openai

client = openai.AzureOpenAI(
    azure_endpoint=sys.argv[1], api_key="none", api_version="2025-04-01-preview", max_retries=0
)
speech = client.audio.speech.create(
    model="tts", voice="alloy", input="The train leaves at seven.", response_format="wav"
)
assert speech.content[:4] == b"RIFF", speech.content[:40]
assert len(speech.content) > 20_000, len(speech.content)
