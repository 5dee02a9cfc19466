"""Makes golden tensors for tests with the reference package (qwen-tts 0.1.1).

One sentence per kind of request, greedy, in float32. Runs in the environment that
`bench/reference/qwen_tts.py` describes; RECORDING is a mono 24 kHz file whose transcript is --said.

    bench/.reference/bin/python -m bench.reference.make_golden --model presets/mini \\
        --speaker clara --recording RECORDING --said TEXT --out tests/mini
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.reference.qwen_tts import stand_in

TEXT = "The train leaves at seven forty-five."
INSTRUCTION = "A bright, quick female voice."
GREEDY: dict[str, Any] = {
    "do_sample": False,
    "subtalker_dosample": False,
    "repetition_penalty": 1.0,
    "max_new_tokens": 48,
}
SILENCE = 12_000  # samples that the engine appends to a reference before it is encoded


@contextlib.contextmanager
def as_base(folder: str) -> Iterator[str]:
    """A copy marked as a Base model, since the package loads a speaker encoder only for those."""
    with tempfile.TemporaryDirectory() as made:
        copy = shutil.copytree(folder, Path(made, "model"))
        config = json.loads((copy / "config.json").read_text())
        (copy / "config.json").write_text(json.dumps(config | {"tts_model_type": "base"}))
        yield str(copy)


class Recorder:
    """A model of the package that keeps the codes of its last call."""

    def __init__(self, folder: str) -> None:
        import torch
        from qwen_tts import Qwen3TTSModel

        torch.set_num_threads(1)
        with as_base(folder) as base:
            self.model = Qwen3TTSModel.from_pretrained(
                base, device_map="cpu", dtype=torch.float32, attn_implementation="eager"
            )
        self.model.model.eval()
        self._inner = self.model.model.generate
        self.model.model.generate = self._generate
        self.codes: Any = None

    def _generate(self, *args: Any, **choices: Any) -> Any:
        codes, hidden = self._inner(*args, **choices)
        self.codes = codes[0]
        return codes, hidden

    def kind(self, kind: str) -> None:
        self.model.model.tts_model_type = kind


def clones(recorder: Recorder, wave: Any, transcript: str) -> tuple[Any, Any]:
    """Clone prompts by vector and in context."""
    recorder.kind("base")
    create = recorder.model.create_voice_clone_prompt
    alone = create((wave, 24_000), x_vector_only_mode=True)[0]
    padded = np.concatenate((wave, np.zeros(SILENCE, np.float32)))
    context = create((padded, 24_000), ref_text=transcript)[0]
    return alone, replace(context, ref_spk_embedding=alone.ref_spk_embedding)


def record(recorder: Recorder, args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors by `case.stage`, and the cases' parameters."""
    import soundfile
    import torch

    wave, _ = soundfile.read(args.recording, dtype="float32")
    model, tensors, cases = recorder.model, {}, {}
    alone, context = clones(recorder, wave, args.said)

    def keep(name: str, kind: str, call: Any, request: dict[str, Any], **more: Any) -> None:
        recorder.kind(kind)
        waves, _ = call(text=TEXT, language="English", **request, **more, **GREEDY)
        tensors[f"{name}.codes"] = recorder.codes.contiguous()
        tensors[f"{name}.wav"] = torch.from_numpy(np.asarray(waves[0], np.float32))
        frames = len(recorder.codes)
        ended = frames < GREEDY["max_new_tokens"] - 1
        cases[name] = {"text": TEXT, "language": "English", **request}
        cases[name] |= {"frames": frames, "ended_by_eos": ended}

    keep("preset", "custom_voice", model.generate_custom_voice, {"speaker": args.speaker})
    keep("design", "voice_design", model.generate_voice_design, {"instruct": INSTRUCTION})
    clone = model.generate_voice_clone
    keep("clone", "base", clone, {}, voice_clone_prompt=[alone])
    keep("clone_in_context", "base", clone, {}, voice_clone_prompt=[context])
    cases["clone"] |= {"x_vector_only_mode": True}
    cases["clone_in_context"] |= {"ref_text": args.said}
    tensors |= {
        "reference_wav": torch.from_numpy(np.asarray(wave, np.float32)),
        "reference_codes": context.ref_code.contiguous(),
        "reference_embedding": alone.ref_spk_embedding.float().contiguous(),
    }
    return tensors, cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--speaker", required=True)
    parser.add_argument("--recording", required=True)
    parser.add_argument("--said", required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    stand_in()
    with contextlib.redirect_stdout(sys.stderr):
        tensors, cases = record(Recorder(args.model), args)
    from safetensors.torch import save_file

    args.out.mkdir(parents=True, exist_ok=True)
    save_file({name: x.clone() for name, x in tensors.items()}, args.out / "golden.safetensors")
    card = {"cases": cases, "greedy": GREEDY}
    (args.out / "golden.json").write_text(json.dumps(card, indent=1) + "\n")
    print({name: case["frames"] for name, case in cases.items()})


if __name__ == "__main__":
    main()
