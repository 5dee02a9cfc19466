"""Measures the reference package (qwen-tts 0.1.1) on the same checkpoint and jobs.

It runs in its own environment, because it pins another transformers:

    python3 -m venv bench/.reference
    bench/.reference/bin/pip install torch==2.13.0 transformers==4.57.3 accelerate librosa \
        soundfile einops onnxruntime
    bench/.reference/bin/pip install --no-deps qwen-tts==0.1.1
    bench/.reference/bin/python -m bench.reference.qwen_tts --model DIR

torchaudio and sox are only for its 25 Hz tokenizer, so empty modules replace them. The package does
not stream: its first audio is its whole result. Jobs and figures are those of `python -m bench`,
but a job may end before its frames are over.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.machinery
import json
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.load_generator import Measured, Run
from bench.report import figures
from bench.workload import Job, Work

UNREACHED = ("sox", "torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi")


def stand_in() -> None:
    """Install empty modules for imports that are not used."""
    for name in UNREACHED:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
    for name in UNREACHED:
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])


def speaker(folder: str, capability: str) -> dict[str, str]:
    """The request's voice: the first preset, or an instruction."""
    config = json.loads(Path(folder, "config.json").read_text())
    names = list(config["talker_config"].get("spk_id") or {})
    return {"speaker": names[0]} if capability == "custom_voice" else {"instruct": "a calm voice"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--kind", choices=("custom_voice", "voice_design"), default="custom_voice")
    parser.add_argument("--requests", type=int, default=6)
    parser.add_argument("--frames", type=int, nargs=2, default=(25, 90))
    return parser.parse_args()


def measured(speak: Callable[[Job], float], jobs: Sequence[Job]) -> dict[str, Any]:
    """Figures of `speak`, which gives the seconds of audio that it made. The first job is also the
    warm-up."""
    speak(jobs[0])
    streams = []
    for job in jobs:
        start = time.perf_counter()
        audio = speak(job)
        took = time.perf_counter() - start
        streams.append(Measured(first=took, total=took, audio=audio, deficit=0.0))
    return figures(Run("reference", streams, sum(stream.total for stream in streams)))


def main() -> None:
    args = arguments()
    stand_in()
    with contextlib.redirect_stdout(sys.stderr):
        import torch
        from qwen_tts import Qwen3TTSModel

        model = Qwen3TTSModel.from_pretrained(args.model, device_map="cpu", dtype=torch.float32)
    model.model.tts_model_type = args.kind
    call = (
        model.generate_custom_voice if args.kind == "custom_voice" else model.generate_voice_design
    )
    voice = speaker(args.model, args.kind)

    def speak(job: Job) -> float:
        torch.manual_seed(job.seed)
        waves, rate = call(
            text=job.text, language="English", max_new_tokens=job.frames + 1, **voice
        )
        return len(waves[0]) / rate

    jobs = Work(("preset",), *args.frames).jobs(args.requests)
    print(json.dumps({"loads": [measured(speak, jobs)]}))


if __name__ == "__main__":
    main()
