"""What a codec makes of recordings. (Of a whole card: `bench.quality.voice_card speak --codec`.)

    python -m training.hear_codec --state codec.pt --recordings FOLDER --out FOLDER

With --free the latents skip quantisation: what is then still lost, the decoder loses.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from training import state as states
from training.codec import ALL_CODEBOOKS, UNQUANTISED, Codec
from training.data.speech_format import FRAME, RATE


def recordings(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.wav"))
    if not found:
        raise SystemExit(f"{folder} has no recordings (*.wav)")
    return found


@torch.no_grad()
def roundtrip(codec: Codec, wave: torch.Tensor, depth: int = ALL_CODEBOOKS) -> torch.Tensor:
    """A wave [samples] coded and decoded."""
    whole = torch.nn.functional.pad(wave, (0, -len(wave) % FRAME))
    return codec(whole[None], torch.tensor([depth], device=wave.device)).wave[0, : len(wave)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--recordings", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--free", action="store_true", help="without quantisation")
    args = parser.parse_args()
    import soundfile

    codec = Codec().eval()
    codec.load_state_dict(states.load(args.state)["codec"])
    args.out.mkdir(parents=True, exist_ok=True)
    for path in recordings(args.recordings):
        wave, rate = soundfile.read(path, dtype="float32")
        if rate != RATE:
            raise SystemExit(f"{path} has {rate} Hz, not {RATE}")
        made = roundtrip(codec, torch.from_numpy(wave), UNQUANTISED if args.free else ALL_CODEBOOKS)
        soundfile.write(args.out / path.name, made.numpy(), RATE)


if __name__ == "__main__":
    main()
