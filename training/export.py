"""Exports the trained parts in the published layout.

Preset speakers are rows of the talker's codec embedding: each gets its target vector, so that
presets, clones and blends share one space. The talker's weights are written in bfloat16, the
codec's in float16, whose finer steps it needs.

    python -m training.export --codec codec.pt --speaker speaker.pt --talker talker.pt \\
        --tokenizer DIR --out presets/mini
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from engine.model.speaker import SpeakerEncoder
from engine.model.talker import Talker
from engine.worker.loading.weight_loader import export
from training import model_config
from training import state as states
from training.batching.speaker_targets import speaker_targets
from training.codec import Codec
from training.data.speakers import NAMED
from training.tokenizer import token_id
from training.train_speaker import load_encoder


@torch.no_grad()
def set_preset_vectors(talker: Talker) -> None:
    """Give each preset its target vector."""
    rows = talker.model.codec_embedding.weight
    theirs = speaker_targets(torch.tensor([speaker.axes() for speaker in NAMED]))
    rows[model_config.FIRST_SPEAKER : model_config.FIRST_SPEAKER + len(NAMED)] = theirs


def half(tensors: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    return {name: tensor.to(dtype).contiguous() for name, tensor in tensors.items()}


def write(
    folder: Path, tokenizer: Path, codec: Codec, speaker: SpeakerEncoder, talker: Talker
) -> None:
    """Write the checkpoint; `folder` is replaced, except for its README.md."""
    inner = folder / "speech_tokenizer"
    inner.mkdir(parents=True, exist_ok=True)
    for path in sorted(tokenizer.glob("*")):
        shutil.copy(path, folder / path.name)
    pieces = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    texts = {
        folder / "config.json": model_config.model(token_id(pieces, "assistant")),
        folder / "generation_config.json": model_config.GENERATION,
        inner / "config.json": model_config.codec(),
        inner / "preprocessor_config.json": model_config.PREPROCESSOR,
    }
    for path, content in texts.items():
        path.write_text(json.dumps(content, indent=1))
    codec.copy_codebooks()
    model = half(export({"talker.": talker, "speaker_encoder.": speaker}), torch.bfloat16)
    sound = half(export({"encoder.": codec.encoder, "decoder.": codec.decoder}), torch.float16)
    for name in [name for name in sound if name.endswith("codebook.cluster_usage")]:
        if name.startswith("encoder."):  # the reference package needs this key
            sound[name.replace("cluster_usage", "initialized")] = torch.ones(1)
    save_file(model, folder / "model.safetensors", {"format": "pt"})
    save_file(sound, inner / "model.safetensors", {"format": "pt"})
    for weights in folder.rglob("model.safetensors"):
        weights.chmod(0o644)  # safetensors lets its owner alone read it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("codec", "speaker", "talker", "tokenizer", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    codec, talker = Codec(), Talker(model_config.talker_config())
    codec.load_state_dict(states.load(args.codec)["codec"])
    talker.load_state_dict(states.load(args.talker)["talker"])
    set_preset_vectors(talker)
    write(args.out, args.tokenizer, codec, load_encoder(args.speaker), talker)
    size = sum(path.stat().st_size for path in args.out.rglob("*") if path.is_file())
    print(f"{args.out}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
