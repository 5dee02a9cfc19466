"""Measures the reference package (qwen-tts 0.1.1) on the same checkpoint and sentences.

It runs in its own environment, because it pins another transformers:

    python3 -m venv bench/.reference
    bench/.reference/bin/pip install torch==2.13.0 transformers==4.57.3 accelerate librosa \
        soundfile einops onnxruntime
    bench/.reference/bin/pip install --no-deps qwen-tts==0.1.1
    bench/.reference/bin/python -m bench.reference.qwen_tts --model DIR

torchaudio and sox are only for its 25 Hz tokenizer, so empty modules replace them. The package does
not stream: its first audio is its whole result.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.machinery
import json
import random
import sys
import time
import types
from pathlib import Path

SENTENCES = Path(__file__).parents[1].joinpath("sentences.txt").read_text().splitlines()


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
    voice, rows, chance = speaker(args.model, args.kind), [], random.Random(7)
    for index in range(args.requests + 1):  # the first request is a warm-up
        text, frames = chance.choice(SENTENCES), chance.randint(*args.frames)
        torch.manual_seed(index)
        start = time.perf_counter()
        waves, rate = call(text=text, language="English", max_new_tokens=frames + 1, **voice)
        if index:
            rows.append((time.perf_counter() - start, len(waves[0]) / rate))
    seconds, audio = map(sum, zip(*rows, strict=True))
    report = {"requests": len(rows), "audio_seconds": audio, "rtf": seconds / audio}
    print(json.dumps(report | {"first_audio_ms_mean": 1e3 * seconds / len(rows)}))


if __name__ == "__main__":
    main()
