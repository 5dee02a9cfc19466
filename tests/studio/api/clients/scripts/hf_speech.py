"""Hugging Face's InferenceClient speaks at a URL, with parameters of ours."""

import sys

from huggingface_hub import InferenceClient

client = InferenceClient(token="none")
text, url = "The train leaves at seven.", f"{sys.argv[1]}/v1/audio/speech"
sound = client.text_to_speech(text, model=url)
assert sound[:3] == b"ID3" or sound[0] == 0xFF, sound[:40]
wav = client.text_to_speech(
    text, model=url, extra_body={"voice": "clara", "response_format": "wav"}
)
assert wav[:4] == b"RIFF", wav[:40]
