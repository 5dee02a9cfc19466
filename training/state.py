"""Training states on disk, as one file or split into pieces.

A state is a dictionary for torch.save. Pieces are consecutive parts of that file.

    python -m training.state weights codec.pt small.pt   # weights only, to continue from
    python -m training.state split codec.pt FOLDER
    python -m training.state join FOLDER/codec.pt codec.pt
    python -m training.state mean before.pt:0.4 after.pt:0.6 talker.pt   # of their weights
"""

from __future__ import annotations

import argparse
import os
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

PIECE = 15 * 2**20
LARGEST_HALF = 6e4
KEPT = {"codec", "discriminators", "recognizer", "speaker", "talker", "phones", "step", "seconds"}
AVERAGED = {"codec", "speaker", "talker", "phones"}
PAUSE = 5.0  # seconds; a longer time between two steps does not count as training


class Clock:
    """Seconds of training so far, without the time in which the process was stopped."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._last = seconds, time.monotonic()

    def tick(self) -> float:
        now = time.monotonic()
        self.seconds += min(now - self._last, PAUSE)
        self._last = now
        return self.seconds


def save(state: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    torch.save(state, part)
    os.replace(part, path)


def load(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    return state


def matching_weights(network: nn.Module, saved: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The network's state with the saved tensors of equal shape; the others stay as they are."""
    weights = network.state_dict()
    alike = {name: saved[name] for name in weights if same_shape(weights, saved, name)}
    if len(alike) < len(weights):
        first = next(name for name in weights if name not in alike)
        count = f"{len(weights) - len(alike)} of {len(weights)}"
        print(f"{type(network).__name__}: {count} weights are not the saved ones ({first}, …)")
    return weights | alike


def same_shape(
    one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor], name: str
) -> bool:
    return name in one and name in other and one[name].shape == other[name].shape


def rng_state(device: torch.device) -> dict[str, torch.Tensor]:
    """The states of the random generators."""
    streams = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        streams["cuda"] = torch.cuda.get_rng_state()
    return streams


def set_rng_state(streams: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(streams["cpu"])
    if "cuda" in streams:
        torch.cuda.set_rng_state(streams["cuda"])


def split(path: Path, folder: Path) -> list[Path]:
    """Cut a file into numbered pieces, in place of those of an earlier one."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in numbered_pieces(folder, path.name).values():
        old.unlink()
    data = path.read_bytes()
    pieces = []
    for index, start in enumerate(range(0, len(data), PIECE)):
        piece = folder / f"{path.name}.{index:02d}"
        piece.write_bytes(data[start : start + PIECE])
        pieces.append(piece)
    return pieces


def numbered_pieces(folder: Path, name: str) -> dict[int, Path]:
    """The pieces of `name` in their order."""
    paths = [path for path in folder.glob(f"{name}.*") if path.suffix[1:].isdecimal()]
    return dict(sorted((int(path.suffix[1:]), path) for path in paths if path.stem == name))


def join(folder: Path, name: str, path: Path) -> Path:
    """Put the pieces of the state `name` together again."""
    pieces = numbered_pieces(folder, name)
    if missing := sorted(set(range(max(pieces, default=0) + 1)) - set(pieces)):
        raise SystemExit(f"{folder} lacks {', '.join(f'{name}.{index:02d}' for index in missing)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(b"".join(piece.read_bytes() for piece in pieces.values()))
    if not zipfile.is_zipfile(part):  # which tells by its end
        raise SystemExit(f"{folder} lacks what comes after {name}.{max(pieces):02d}")
    os.replace(part, path)
    return path


def save_weights(path: Path, out: Path) -> None:
    """Save what an export or a new schedule (`--restart`) needs, in half precision."""
    kept = {name: to_half(value) for name, value in load(path).items() if name in KEPT}
    if not kept:
        raise SystemExit(f"{path} has none of {', '.join(sorted(KEPT))}")
    save(kept, out)


def to_half(value: Any) -> Any:
    """Tensors of a state in float16 where their values fit."""
    if isinstance(value, dict):
        return {name: to_half(each) for name, each in value.items()}
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
        return value
    return value.half() if value.numel() and value.abs().max() < LARGEST_HALF else value


def save_mean(parts: Sequence[tuple[Path, float]], out: Path) -> None:
    """Save the mean of the networks that several states have, each counting its share. They have
    to descend from one another: a mean of unrelated networks is useless."""
    known = [(load(path), share) for path, share in parts]
    found = {}
    for name in sorted(AVERAGED.intersection(name for state, _ in known for name in state)):
        networks = [(state.get(name, {}), share) for state, share in known]
        weights = mean_weights(networks)
        if left := sorted(set().union(*(network for network, _ in networks)) - set(weights)):
            print(f"{name}: left out, not in one shape in all states: {', '.join(left)}")
        if weights:
            found[name] = weights
    if not found:
        raise SystemExit("These states have no weights in common.")
    save(found, out)


def mean_weights(parts: Sequence[tuple[Mapping[str, torch.Tensor], float]]) -> dict[str, Any]:
    """The weighted mean of weights; what not all have in one shape is left out."""
    first, whole = parts[0][0], sum(share for _, share in parts)
    alike = [name for name in first if all(same_shape(first, part, name) for part, _ in parts)]
    return {
        name: torch.stack([part[name].float() * (share / whole) for part, share in parts]).sum(0)
        for name in alike
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("weights", "split", "join", "mean"))
    parser.add_argument("path", nargs="+", help="with mean each has its share: PATH:SHARE")
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    if args.what == "mean":
        pairs = [path.rpartition(":") for path in args.path]
        save_mean([(Path(path), float(share)) for path, _, share in pairs], args.out)
        return
    (path,) = map(Path, args.path)
    if args.what == "weights":
        save_weights(path, args.out)
    elif args.what == "split":
        split(path, args.out)
    else:
        join(path.parent, path.name, args.out)


if __name__ == "__main__":
    main()
