"""zaphodvox speaks with a preset, a recording and a description, each at the path that it knows."""

import sys
import tempfile
from pathlib import Path

from sounds import recording
from zaphodvox.qwen.encoder import QwenEncoder
from zaphodvox.qwen.voice import QwenVoice

folder = Path(tempfile.mkdtemp())
reference = folder / "me.wav"
reference.write_bytes(recording())
encoder = QwenEncoder(url=sys.argv[1])
voices = {
    "preset": QwenVoice(voice_id="clara", language="English", seed=7),
    "clone": QwenVoice(ref_audio=str(reference), language="English"),
    "design": QwenVoice(description="A warm, low voice of a woman.", language="English"),
}
for name, voice in voices.items():
    file = folder / f"{name}.wav"
    encoder.t2s("The train leaves at seven.", voice, file)
    assert file.read_bytes()[:4] == b"RIFF", name
    assert file.stat().st_size > 20_000, name
