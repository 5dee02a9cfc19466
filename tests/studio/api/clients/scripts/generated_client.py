"""A client that openapi-python-client makes out of /openapi.json: speech, voices, errors."""

import importlib
import io
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from sounds import recording

URL, NAME = sys.argv[1], "timbre_client"
folder = Path(tempfile.mkdtemp())
command = [Path(sys.executable).parent / "openapi-python-client", "generate", "--meta", "none"]
made = subprocess.run(
    [*command, "--url", f"{URL}/openapi.json", "--output-path", folder / NAME],
    capture_output=True,
    text=True,
    check=True,
)
# It warns of what it leaves out, as "WARNING parsing POST /v1/…".
assert "parsing" not in made.stdout + made.stderr, made.stdout + made.stderr
sys.path.insert(0, str(folder))


def part(name: str) -> ModuleType:
    return importlib.import_module(f"{NAME}.{name}")


def operation(name: str) -> ModuleType:
    (found,) = (folder / NAME / "api").rglob(f"{name}.py")
    return part(".".join(found.with_suffix("").relative_to(folder / NAME).parts))


models, types = part("models"), part("types")
client = part("client").Client(base_url=URL, timeout=60)
speak = operation("speech_v1_audio_speech_post")

# Bytes, whole and as they come.
wav = models.SpeechBodyResponseFormat.WAV
body = models.SpeechBody(input_="The train leaves at seven.", response_format=wav, seed=1)
spoken = speak.sync(client=client, body=body)
assert isinstance(spoken, types.File), spoken
assert spoken.payload.getvalue()[:4] == b"RIFF"
assert len(spoken.payload.getvalue()) > 20_000
refused = speak.sync(client=client, body=models.SpeechBody(input_=" "))
assert isinstance(refused, models.Error), refused
assert (refused.error.code, refused.error.param) == ("invalid_text", "input"), refused
unknown = speak.sync_detailed(client=client, body=models.SpeechBody(input_="Hi.", voice="nobody"))
assert unknown.status_code == 404, unknown
assert unknown.parsed.error.code == "voice_not_found", unknown

# Voices: a form with a file, a path, a preview.
audio = types.File(payload=io.BytesIO(recording()), file_name="me.wav", mime_type="audio/wav")
create = operation("upload_v1_audio_voices_post").sync
voice = create(client=client, body=models.NewVoice(name="Generated", audio=audio))
assert voice.error.code == "missing", voice
assert voice.error.param == "consent", voice
audio.payload.seek(0)
voice = create(client=client, body=models.NewVoice(name="Generated", audio=audio, consent="true"))
assert voice["name"] == "Generated", voice
listed = operation("voices_v1_audio_voices_get").sync_detailed(client=client)
assert b"Generated" in listed.content, listed
heard = operation("preview_v1_audio_voices_name_preview_get").sync("Generated", client=client)
assert heard.payload.getvalue()[:4] == b"RIFF", heard
gone = operation("delete_v1_audio_voices_name_delete").sync("Generated", client=client)
assert gone["deleted"] is True, gone
again = operation("delete_v1_audio_voices_name_delete").sync("Generated", client=client)
assert again.error.code == "voice_not_found", again

# ElevenLabs' path, a list of consents.
text = models.SpeechText(text="Hello there.")
path = operation("text_to_speech_v1_text_to_speech_voice_post")
assert len(path.sync("alloy", client=client, body=text).payload.getvalue()) > 2_000
consents = operation("listing_v1_audio_voice_consents_get").sync(client=client)
assert consents["object"] == "list", consents
