"""Groups of spoken takes on disk: one sound file and one list of what is in it for each group.

FLAC or Ogg where soundfile is installed, WAV without it. A group is there once its list is. All of
a folder was spoken by the same weights.
"""

from __future__ import annotations

import hashlib
import json
import wave
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.quality.voice_card.plan import Take
from engine import SAMPLE_RATE, Pcm, Waveform, atomic_replace, write_atomic

BLOCK = SAMPLE_RATE  # libsndfile's Vorbis writer overflows its stack on long buffers
OGG_LEVEL = 0.0  # of compression: 90 kbit/s; DistillMOS moves by 0.04, at 0.3 by 0.1


@dataclass(frozen=True, eq=False)
class Spoken:
    take: Take
    pcm: Pcm
    reason: str = "finished"  # of its end

    @property
    def wave(self) -> Waveform:
        return self.pcm.astype(np.float32) / np.float32(32768)


def formats() -> list[str]:
    """What can be written here, the usual one first."""
    try:
        import soundfile  # noqa: F401
    except ImportError:
        return ["wav"]
    return ["flac", "ogg", "wav"]


def write(folder: Path, group: str, spoken: Sequence[Spoken], kind: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pcm = np.concatenate([each.pcm for each in spoken])
    with atomic_replace(folder / f"{group}.{kind}") as part:
        _write_sound(part, pcm, kind)
    lengths = [len(each.pcm) for each in spoken]
    takes = [
        {**asdict(each.take), "samples": length, "reason": each.reason}
        for each, length in zip(spoken, lengths, strict=True)
    ]
    card = {"sound": f"{group}.{kind}", "takes": takes}
    write_atomic(folder / f"{group}.json", json.dumps(card, indent=0).encode())


def _write_sound(path: Path, pcm: Pcm, kind: str) -> None:
    if kind == "wav":
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
            file.writeframes(pcm.astype("<i2").tobytes())
        return
    import soundfile

    form, level = {"flac": ("FLAC", 1.0), "ogg": ("OGG", OGG_LEVEL)}[kind]
    with soundfile.SoundFile(
        path, "w", SAMPLE_RATE, 1, format=form, compression_level=level
    ) as file:
        for start in range(0, len(pcm), BLOCK):
            file.write(pcm[start : start + BLOCK])


def claim(folder: Path, name: str, weights: Iterable[Path]) -> None:
    """Note in a folder whose weights speak there, or refuse: others have spoken in it. What was
    spoken before such a note was made is taken to be theirs."""
    digest = hashlib.sha256()
    for path in sorted(weights):
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    path, checksum = folder / "source", digest.hexdigest()
    if path.exists():
        *_, before, known = path.read_text("utf-8").splitlines()
        if known != checksum:
            raise SystemExit(f"{folder} was spoken by {before}, not by {name}: use another card.")
        return
    if groups(folder):
        print(f"{folder}: the groups there are taken to be spoken by {name}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(path, f"{name}\n{checksum}\n".encode())


def groups(folder: Path) -> list[str]:
    """The groups that are there."""
    return sorted(path.stem for path in folder.glob("*.json"))


def read(folder: Path, group: str) -> Iterator[Spoken]:
    card = json.loads((folder / f"{group}.json").read_text())
    pcm = _read_sound(folder / card["sound"])
    start = 0
    for each in card["takes"]:
        stop, reason = start + each.pop("samples"), each.pop("reason")
        yield Spoken(Take(**each), pcm[start:stop], reason)
        start = stop


def _read_sound(path: Path) -> Pcm:
    if path.suffix == ".wav":
        with wave.open(str(path), "rb") as file:
            return np.frombuffer(file.readframes(file.getnframes()), "<i2")
    import soundfile

    pcm: Pcm = soundfile.read(path, dtype="int16")[0]
    return pcm
