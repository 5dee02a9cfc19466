"""Timbre beside the reference package, code by code: the same sentence, greedy, in float32.

The package pins another transformers, so a Python of its own runs it
(`engine/worker/reference_package.py`).
"""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engine import (
    Codes,
    Design,
    InvalidSetting,
    Preset,
    SamplingParams,
    SpeechEngine,
    SpeechRequest,
    Voice,
)

SCRIPT = Path(inspect.getfile(SpeechEngine)).parent / "worker" / "reference_package.py"
TEXT = "The train leaves at a quarter to eight, and nobody is on the platform yet."
FRAMES = 48
LONGEST = 3600.0  # seconds
GREEDY = SamplingParams(greedy=True, predictor_greedy=True, repetition_penalty=1.0)


def reference_voice(python: Path, voice: Voice) -> dict[str, str]:
    """The voice in the package's words; what can't be compared is refused before anything loads."""
    if shutil.which(python) is None:
        raise InvalidSetting("{python} is no program that can be run.", python=str(python))
    if isinstance(voice, Preset) and not voice.instruct:
        return {"speaker": voice.name}
    if isinstance(voice, Design):
        return {"instruct": voice.instruct}
    raise InvalidSetting(
        "With --reference a preset or a voice in words has to speak: name one with --voice."
    )


def reference_codes(python: Path, model: str, voice: Voice) -> tuple[str, Codes]:
    """The package's version, and its codes: [frames, codebooks]."""
    sent = {
        "model": model.partition("@")[0],
        "who": reference_voice(python, voice),
        "text": TEXT,
        "frames": FRAMES,
    }
    try:
        done = subprocess.run(
            [str(python), "-W", "ignore", str(SCRIPT)],
            input=f"{json.dumps(sent)}\n",
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=True,
        )
        result = json.loads(done.stdout.splitlines()[-1])
        return str(result["version"]), np.asarray(result["codes"], np.int64)
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        lines = str(getattr(error, "stderr", "") or error).strip().splitlines() or [""]
        raise InvalidSetting(
            "{python} could not run the reference package: {why} "
            "(pip install qwen-tts==0.1.1 in an environment of its own)",
            python=str(python),
            why=lines[-1][:200],
        ) from error


def own_codes(speaker: SpeechEngine, voice: Voice) -> Codes:
    request = SpeechRequest(
        TEXT, voice, "english", GREEDY, seed=0, max_frames=FRAMES, live=False, spell_out=False
    )
    with speaker.submit(request) as stream:
        return np.concatenate([np.asarray(chunk.codes, np.int64) for chunk in stream])


def compared(
    python: Path, model: str, voice: Voice, open_exact: Callable[[], SpeechEngine]
) -> dict[str, Any]:
    """What the card says of it. `open_exact`: an engine with full weights in float32."""
    version, reference = reference_codes(python, model, voice)
    with open_exact() as exact:
        ours = own_codes(exact, voice)
    both = min(len(ours), len(reference))
    same = int((ours[:both] == reference[:both]).all(1).sum())
    most = max(len(ours), len(reference))
    return {"reference": f"qwen-tts {version}", "frames_as_reference": f"{same} of {most}"}
