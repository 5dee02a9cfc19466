"""What Mini's codec keeps of people: who they are, and how natural they sound.

    python -m bench.quality.people_through_codec RECORDINGS --codec presets/mini --codec NEW

RECORDINGS has files PERSON_anything.wav at 24 kHz. For each person: Resemblyzer's likeness of the
recordings to what the codec makes of them, of one recording to the person's others, and DistillMOS
before and after. A codec is an exported model's folder or a training state. With --free latents
skip quantisation too: what is then still lost, encoder and decoder lose.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
import soundfile
import torch

from bench.quality.judges import Judges
from engine import SAMPLE_RATE, Waveform
from training import state as states
from training.codec import ALL_CODEBOOKS, UNQUANTISED, Codec
from training.hear_codec import recordings, roundtrip
from training.resume import codec_of


def load(path: Path) -> Codec:
    """The codec of an exported model's folder, or of a training state."""
    if path.is_dir():
        return codec_of(path)
    codec = Codec().eval()
    codec.load_state_dict(states.load(path)["codec"])
    return codec


def people(folder: Path) -> dict[str, list[Waveform]]:
    """The recordings of each person."""
    found = defaultdict(list)
    for path in recordings(folder):
        wave, rate = soundfile.read(path, dtype="float32")
        if rate != SAMPLE_RATE or wave.ndim != 1:
            raise SystemExit(f"{path} is not mono at {SAMPLE_RATE} Hz")
        found[path.stem.split("_")[0]].append(wave)
    return found


def heard(judges: Judges, waves: list[Waveform]) -> tuple[list[Waveform], list[float]]:
    """Vectors of who it sounds like, and how natural each is."""
    sounds = [judges.prepared(wave) for wave in waves]
    return [judges.embedding(s) for s in sounds], [judges.naturalness(s) for s in sounds]


def line(
    judges: Judges, codecs: list[tuple[Codec, int]], person: str, waves: list[Waveform]
) -> str:
    vectors, natural = heard(judges, waves)
    text = f"{person:16s} {len(waves):2d}  {np.mean(natural):5.2f}"
    for codec, depth in codecs:
        made = [roundtrip(codec, torch.from_numpy(wave), depth).numpy() for wave in waves]
        like, after = heard(judges, made)
        alike = np.mean([a @ b for a, b in zip(vectors, like, strict=True)])
        text += f"   {alike:.3f} {np.mean(after):5.2f}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--codec", type=Path, action="append", required=True)
    parser.add_argument("--free", action="store_true", help="also without quantisation")
    args = parser.parse_args()
    codecs = []
    for path in args.codec:
        codec = load(path)
        codecs += [(codec, ALL_CODEBOOKS)] + [(codec, UNQUANTISED)] * args.free
    judges = Judges()
    print("person, recordings, DistillMOS; then for each codec: likeness to itself, DistillMOS")
    for person, waves in people(args.recordings).items():
        print(line(judges, codecs, person, waves), flush=True)


if __name__ == "__main__":
    main()
