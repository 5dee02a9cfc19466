"""Recorded people for the codec and the speaker encoder, out of packages that anyone can install.

    python -m training.data.recordings pack ROOT OUT       # ROOT: where packages were unpacked
    python -m training.data.recordings unpack OUT FOLDER   # shards, as of the teacher's speech

`pack` joins what each person says and writes an Opus file (24 kHz, mono) for each; it needs ffmpeg.
`unpack` needs soundfile alone. Nothing of it is committed; licences are in training/README.md. Some
people are held out, to be judged by. No texts: phones are unknown, and say so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from training.data.speech_format import FRAME, PHONE_STEP, RATE, UNKNOWN, Wave

# Where recordings are: a pattern, and which part of the path or name identifies the speaker.
SOURCES = {
    "flite": "flite-voices/*.wav",
    "asterisk": "asterisk-*/**/*.g722",
    "klettres": "klettres-data/usr/share/klettres/*/**/*.ogg",
    "ktuberling": "ktuberling-data/usr/share/ktuberling/sounds/*/*.*",
    "menardi": "asterisk-prompt-it-menardi-wav/**/*.wav",
    "tuxpaint": "tuxpaint-stamps-default/**/*_desc_*.ogg",
}
HELD_OUT = (
    "tuxpaint-ro",
    "tuxpaint-el",
    "klettres-uk",
    "ktuberling-ca",
    "asterisk-fr",
    "klettres-hu",
)
LEARNED = "people"  # the folder of those who are not held out
SOUNDS = (".ogg", ".wav", ".g722")
MOST = 6 * 60  # seconds of one person
FILES = 400  # of one person, at most, evenly from all
BLOCK = 4 * RATE  # samples that are levelled together
LEVEL = 0.08  # root of the mean square of what is loud enough
KILOBITS = 28
SEGMENT = 8 * RATE


def person(source: str, path: Path) -> str:
    """The speaker: in most packages a language's reader."""
    if source == "tuxpaint":
        who = path.stem.split("_desc_")[-1]
    elif source in ("klettres", "ktuberling"):
        parts = path.parts
        who = parts[parts.index("klettres" if source == "klettres" else "sounds") + 1]
    elif source == "asterisk":
        who = next(part for part in path.parts if part.startswith("asterisk-")).split("-")[3]
    else:
        who = path.stem.split("_")[0]
    return f"{source}-{who.split('@')[0].split('.')[0]}"


def found(root: Path) -> dict[str, list[Path]]:
    """The recordings of each person."""
    people: dict[str, list[Path]] = defaultdict(list)
    for source, pattern in SOURCES.items():
        for path in sorted(root.glob(pattern)):
            if path.suffix in SOUNDS and path.is_file() and "silence" not in path.parts:
                people[person(source, path)].append(path)
    return people


def decoded(paths: list[Path]) -> Wave:
    """All of these, end to end, without the silence around them."""
    if paths[0].suffix == ".g722":
        return telephone(paths)
    return np.concatenate([trimmed(read(path)) for path in paths])


def telephone(paths: list[Path]) -> Wave:
    """Recordings in G.722, whose bytes can follow each other."""
    command = ["ffmpeg", "-nostdin", "-v", "quiet", "-f", "g722", "-i", "-"]
    command += ["-ac", "1", "-ar", str(RATE), "-f", "f32le", "-"]
    whole = b"".join(path.read_bytes() for path in paths)
    made = subprocess.run(command, input=whole, stdout=subprocess.PIPE, check=False).stdout
    return np.frombuffer(made[: len(made) // 4 * 4], np.float32)


def read(path: Path) -> Wave:
    """A recording, mono; nothing if it cannot be read."""
    import soundfile
    import soxr

    try:
        wave, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError:
        return np.zeros(0, np.float32)
    mono: Wave = soxr.resample(wave.mean(1), rate, RATE).astype(np.float32)
    return mono


def trimmed(wave: Wave) -> Wave:
    """Without most of the silence at its ends."""
    hops = np.square(wave[: len(wave) // 480 * 480].reshape(-1, 480)).mean(1)
    loud = np.flatnonzero(hops > hops.max(initial=0) / 3000)
    if not len(loud):
        return wave[:0]
    first, last = max(0, loud[0] - 4), min(len(hops), loud[-1] + 9)
    return wave[first * 480 : last * 480]


def levelled(wave: Wave) -> Wave:
    """Each block at the same level, by what is loud in it."""
    rows = np.pad(wave, (0, -len(wave) % BLOCK)).reshape(-1, BLOCK)
    hops = np.square(rows.reshape(len(rows), -1, 480)).mean(2)
    loud = hops > hops.max(1, keepdims=True) / 300
    rms = np.sqrt((hops * loud).sum(1) / loud.sum(1).clip(1))
    gain = np.minimum(LEVEL / rms.clip(1e-4), 0.95 / np.abs(rows).max(1).clip(1e-4))
    smooth = np.interp(np.arange(rows.size), (np.arange(len(rows)) + 0.5) * BLOCK, gain)
    return (rows.ravel() * smooth).clip(-1, 1)[: len(wave)].astype(np.float32)


def pack_one(name: str, paths: list[Path], out: Path) -> str:
    path = out / ("aside" if name in HELD_OUT else LEARNED) / f"{name}.opus"
    if path.exists():
        return f"{name}: there already"
    wave = levelled(decoded(paths[:: 1 + len(paths) // FILES])[: MOST * RATE])
    if len(wave) < 8 * RATE:
        return f"{name}: {len(wave) / RATE:.0f} s are too few"
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "f32le", "-ar", str(RATE)]
    command += ["-ac", "1", "-i", "-", "-c:a", "libopus", "-b:a", f"{KILOBITS}k"]
    command += ["-compression_level", "3", str(path)]
    subprocess.run(command, input=wave.tobytes(), check=True)
    return f"{name}: {len(paths)} files, {len(wave) / RATE:.0f} s"


def pack(root: Path, out: Path) -> None:
    there = found(root)
    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(partial(pack_one, out=out), there.keys(), there.values()):
            print(line, flush=True)


def shard(wave: Wave, number: int) -> dict[str, object]:
    """A person's speech as an `.npz` of the teacher's form, in segments of some seconds."""
    whole = wave[: len(wave) // FRAME * FRAME]
    labels = np.full(len(whole) // PHONE_STEP, UNKNOWN, np.uint8)
    offsets = [*range(0, len(whole) - SEGMENT, SEGMENT), len(whole)]
    utterances = [{"text": "", "speaker": number, "style": 0} for _ in offsets[1:]]
    samples = np.round(whole * 32767).astype(np.int16)
    places = np.zeros(len(labels), np.uint16)
    return {
        "samples": samples,
        "phones": labels,
        "places": places,
        "offsets": np.array(offsets),
        "meta": np.array(json.dumps(utterances)),
    }


def unpack(packed: Path, folder: Path) -> None:
    """Shards 00000, 00001, … of what `pack` wrote: one person each, in the order of their names."""
    import soundfile

    folder.mkdir(parents=True, exist_ok=True)

    def one(each: tuple[int, Path]) -> None:
        number, path = each
        wave, rate = soundfile.read(path, dtype="float32")
        if rate != RATE:  # a decoder of Opus may choose its own
            wave = np.interp(
                np.arange(len(wave) * RATE // rate) * rate / RATE, np.arange(len(wave)), wave
            )
        part = folder / f"{number:05d}.part.npz"
        np.savez(part, **shard(wave.clip(-1, 1).astype(np.float32), number))  # type: ignore[arg-type]
        part.rename(folder / f"{number:05d}.npz")

    recordings = sorted((packed / LEARNED).glob("*.opus"))
    if not recordings:
        raise SystemExit(f"{packed / LEARNED} has no recordings")
    with ThreadPoolExecutor() as pool:
        list(pool.map(one, enumerate(recordings)))
    (folder / "done").touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("pack", "unpack"))
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    {"pack": pack, "unpack": unpack}[args.what](args.source, args.out)


if __name__ == "__main__":
    main()
