"""Resumes training from an export and a small file with the remaining weights.

An export holds the networks for inference. Training also has discriminators, a phone recognizer and
auxiliary heads. Both together give the states from which `recipe.sh` continues with new schedules.

    python -m training.resume keep FOLDER-OF-STATES parts.pt
    python -m training.resume join presets/mini parts.pt FOLDER-OF-STATES
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from engine.model.configs import TalkerConfig
from engine.model.speaker import SpeakerEncoder
from engine.model.talker import Talker
from engine.worker.loading import weight_loader
from training import model_config, tokenizer
from training import state as states
from training.codec import Codec
from training.growth import grown
from training.losses.wave_losses import NETWORKS as LOSS_NETWORKS
from training.train_speaker import save_encoder

CODEC_HEAD = "phone_head."


def keep(folder: Path, out: Path) -> None:
    """Save the weights that an export of these states lacks, in half precision. What told the
    speakers apart is not kept: the vectors were smoothed since, and it is learned in a minute."""
    codec = _load_last_codec(folder)
    kept = {
        "head": {n: v for n, v in codec["codec"].items() if n.startswith(CODEC_HEAD)},
        "phones": states.load(folder / "talker.pt")["phones"],
    }
    kept |= {name: codec[name] for name in LOSS_NETWORKS if name in codec}
    states.save(states.to_half(kept), out)


def _load_last_codec(folder: Path) -> dict[str, Any]:
    later = folder / "decoder.pt"
    return states.load(later if later.exists() else folder / "codec.pt")


def join(export: Path, parts: Path, out: Path) -> None:
    """States to continue from, weights alone, and their tokenizer. An export of a smaller codec or
    talker than the recipe's grows."""
    kept = states.load(parts)
    codec, talker = codec_of(export), talker_like(export)
    encoder = SpeakerEncoder(model_config.speaker_config())
    weight_loader.load(export, {"talker.": talker, "speaker_encoder.": encoder}, "cpu")
    codec.load_state_dict(codec.state_dict() | kept["head"])
    losses = {name: kept[name] for name in LOSS_NETWORKS if name in kept}
    states.save({"codec": grown(Codec(), codec.state_dict()), **losses}, out / "codec.pt")
    save_encoder(encoder, out / "speaker.pt")
    larger = grown(Talker(model_config.talker_config()), talker.state_dict())
    states.save({"talker": larger, "phones": kept["phones"]}, out / "talker.pt")
    (out / "tokenizer").mkdir(exist_ok=True)
    for name in tokenizer.FILES:
        shutil.copy(export / name, out / "tokenizer")


def talker_like(export: Path) -> Talker:
    """A talker of an export's sizes, untrained."""
    sizes = json.loads((export / "config.json").read_text())["talker_config"]
    return Talker(TalkerConfig.from_dict(sizes))


def codec_of(export: Path) -> Codec:
    """Encoder and decoder of an export as a training Codec."""
    codec = Codec(json.loads((export / "speech_tokenizer/config.json").read_text())).eval()
    sound = {"encoder.": codec.encoder, "decoder.": codec.decoder}
    weight_loader.load(export / "speech_tokenizer", sound, "cpu")
    return codec


def main() -> None:
    what, *paths = sys.argv[1:] or [""]
    if what == "keep" and len(paths) == 2:
        keep(*map(Path, paths))
    elif what == "join" and len(paths) == 3:
        join(*map(Path, paths))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
