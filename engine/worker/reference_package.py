"""Run by another Python, which has qwen-tts: the codes that the reference package finds likeliest.

Reads one line of JSON, `{"model", "who", "text", "frames"}` with who `{"speaker": NAME}` or
`{"instruct": WORDS}`, and prints one. Needs nothing of Timbre. torchaudio and sox are only for the
package's 25 Hz tokenizer, so empty modules replace them.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import json
import sys
import types
from importlib.metadata import version
from typing import Any

UNREACHED = ("sox", "torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi")


def stand_in() -> None:
    for name in UNREACHED:
        module = sys.modules.setdefault(name, types.ModuleType(name))
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    for name in UNREACHED:
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])


def codes_of(model: str, who: dict[str, str], text: str, frames: int) -> list[list[int]]:
    import torch
    from qwen_tts import Qwen3TTSModel

    reference: Any = Qwen3TTSModel.from_pretrained(
        model, device_map="cpu", dtype=torch.float32, attn_implementation="eager"
    )
    found: list[Any] = []
    generate = reference.model.generate

    def kept(*args: Any, **choices: Any) -> Any:
        codes, hidden = generate(*args, **choices)
        found.append(codes[0])
        return codes, hidden

    reference.model.generate = kept
    call = reference.generate_custom_voice if "speaker" in who else reference.generate_voice_design
    greedy = {"do_sample": False, "subtalker_dosample": False, "repetition_penalty": 1.0}
    call(text=text, language="English", max_new_tokens=frames + 1, **who, **greedy)
    return [list(map(int, row)) for row in found[0][:frames]]


def main() -> None:
    task = json.loads(sys.stdin.readline())
    stand_in()
    with contextlib.redirect_stdout(sys.stderr):
        codes = codes_of(**task)
    print(json.dumps({"version": version("qwen-tts"), "codes": codes}))


if __name__ == "__main__":
    main()
