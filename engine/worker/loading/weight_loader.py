"""Load a checkpoint's safetensors files into networks, and export them under published names.

Parameter names are the published ones, but for two fused weights (see engine.model.layers). A
network is built without memory (`empty_network`) and filled one tensor at a time (`load`), so that
it never exists twice. Files and index are not trusted: only safetensors are read, and only from the
folder itself. Knows no configs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from engine.checkpoints.files import PREFIX, open_regular, read_json
from engine.errors import CheckpointError
from engine.model.convs import Foldable
from engine.model.layers import Attention, GatedMLP
from engine.model.quantized_linear import QuantizedLinear

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
FLOATS = ("F64", "F32", "F16", "BF16")
MAP_FROM = 64 << 20  # bytes of a table
UNUSED = (  # published, but not needed here
    "encoder.quantizer.*.codebook.initialized",
    "encoder.quantizer.*.codebook.cluster_usage",  # of codebooks that are not in use
    "encoder.quantizer.*.codebook.embed_sum",
    "encoder.upsample.*",
    "encoder.decoder.*",
    "encoder.decoder_transformer.*",
    "*.rotary_emb.inv_freq",
)

Network = TypeVar("Network", bound=nn.Module)

log = logging.getLogger("timbre")


def empty_network(make: Callable[[], Network], dtype: torch.dtype) -> Network:
    """A network for inference, without memory until `load` fills it."""
    with torch.device("meta"), _NoNumbers():
        return make().to(dtype).eval().requires_grad_(False)


class _NoNumbers(TorchFunctionMode):
    """Layers draw no first weights. Where there is no memory torch has no kernel for that, and
    imports its compiler instead, which takes seconds."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if getattr(func, "__module__", "") == "torch.nn.init":
            return given.get("tensor", args[0] if args else None)
        return func(*args, **given)


def load(
    folder: Path,
    parts: Mapping[str, nn.Module],
    device: torch.device | str,
    unused: Iterable[str] = (),
) -> None:
    """Fill networks from the tensors below their prefixes ("talker.", "decoder.", ...).

    Empty networks are allocated on `device`; others are filled in place. Raises CheckpointError
    before anything is read where names or shapes do not fit. Other tensors are ignored, with a
    warning unless they match one of the patterns `unused` or UNUSED.
    """
    with _checked_tensors(folder, parts, unused) as (entries, tensors):
        for entry in entries:
            mapped = entry.map(tensors, device)
            if not mapped and not entry.pack(tensors):
                entry.fill(tensors, device)
            entry.check_finite(folder)
            if mapped:
                entry.map(tensors, device)  # without the pages that the check has touched
    for part in parts.values():
        for module in part.modules():
            if isinstance(module, Foldable):
                module.unfold()


def load_rest(
    folder: Path,
    parts: Mapping[str, nn.Module],
    take: Callable[[], None],
    unused: Iterable[str] = (),
) -> None:
    """Fill what `take` leaves without memory, on a CPU, of networks whose weights were loaded from
    these very files before. Raises CheckpointError where names or shapes do not fit."""
    with _checked_tensors(folder, parts, unused) as (entries, tensors):
        take()
        for entry in entries:
            if getattr(entry.owner, entry.name).is_meta and not entry.map(tensors, "cpu"):
                entry.fill(tensors, "cpu")


def check(folder: Path, parts: Mapping[str, nn.Module], unused: Iterable[str] = ()) -> None:
    """Raise CheckpointError where names or shapes do not fit. No weights are read."""
    with _checked_tensors(folder, parts, unused):
        pass


@contextmanager
def _checked_tensors(
    folder: Path, parts: Mapping[str, nn.Module], unused: Iterable[str]
) -> Iterator[tuple[list[_Entry], Mapping[str, _Stored]]]:
    entries = [entry for prefix, part in parts.items() for entry in _entries(prefix, part)]
    with _open_tensors(folder) as stored:
        tensors = _without_prefix(folder, stored)
        _check(folder, entries, tensors, (*UNUSED, *unused))
        yield entries, tensors


def export(parts: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Copies of the networks' tensors by their published names, as `load` reads them."""
    entries = [entry for prefix, part in parts.items() for entry in _entries(prefix, part)]
    places = (place for entry in entries for place in entry.places(entry.tensor.detach()))
    return {name: piece.clone() for name, piece in places}


@dataclass(frozen=True)
class _Entry:
    """One tensor of a network, and the published tensors that it consists of."""

    owner: nn.Module
    name: str
    tensor: Tensor
    names: tuple[str, ...]
    rows: tuple[int, ...] = ()  # of each name, where there are several

    def places(self, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
        """The part of `tensor` for each published name."""
        pieces = tensor.split(self.rows) if self.rows else (tensor,)
        return zip(self.names, pieces, strict=True)

    def fill(self, tensors: Mapping[str, _Stored], device: torch.device | str) -> None:
        target = self.tensor.detach()
        if target.is_meta:
            # empty_like of a tensor without memory imports sympy
            target = torch.empty(target.shape, dtype=target.dtype, device=device)
            self._set(target)
        for name, place in self.places(target):
            place.copy_(tensors[name].read())

    def pack(self, tensors: Mapping[str, _Stored]) -> bool:
        """Round weights that are kept in few bits while they are read."""
        if not isinstance(self.owner, QuantizedLinear) or self.name != "weight":
            return False
        self.owner.pack(tensors[name].read() for name in self.names)
        return True

    def map(self, tensors: Mapping[str, _Stored], device: torch.device | str) -> bool:
        """Leave a large table in its file, where a CPU reads a few rows of it at a time."""
        large = isinstance(self.owner, nn.Embedding) and self.tensor.nbytes >= MAP_FROM
        if not large or torch.device(device).type != "cpu" or not self.tensor.is_meta:
            return False
        stored = tensors[self.names[0]].read()
        if stored.dtype != self.tensor.dtype:
            return False
        self._set(stored)
        return True

    def check_finite(self, folder: Path) -> None:
        """A number that is none would be heard as noise, or as silence."""
        packed = isinstance(self.owner, QuantizedLinear) and self.name == "weight"
        tensor = getattr(self.owner, "scales" if packed else self.name)  # scales: of the largest
        if tensor.numel() and not torch.isfinite(torch.stack(tensor.detach().aminmax())).all():
            raise CheckpointError(
                "The weights in {folder} are damaged: {name} holds numbers that are not finite. "
                "Download the checkpoint again.",
                folder=folder,
                name=self.names[0],
            )

    def _set(self, tensor: Tensor) -> None:
        if isinstance(self.tensor, nn.Parameter):
            tensor = nn.Parameter(tensor, self.tensor.requires_grad)
        setattr(self.owner, self.name, tensor)


def _entries(prefix: str, network: nn.Module) -> Iterator[_Entry]:
    for path, tensor in network.state_dict(keep_vars=True).items():
        parent, _, name = path.rpartition(".")
        owner = network.get_submodule(parent)
        pieces = _pieces(network, parent)
        if not pieces:
            yield _Entry(owner, name, tensor, (prefix + path,))
            continue
        above = prefix + parent.rpartition(".")[0]
        names = tuple(f"{above}.{piece}.{name}" for piece in pieces)
        yield _Entry(owner, name, tensor, names, tuple(pieces.values()))


def _pieces(network: nn.Module, path: str) -> dict[str, int]:
    """Names and rows of the published weights behind a fused one; empty for any other."""
    parent, _, name = path.rpartition(".")
    owner = network.get_submodule(parent)
    if isinstance(owner, Attention) and name == "qkv_proj":
        kept = owner.kv_heads * owner.head_dim
        return {"q_proj": owner.heads * owner.head_dim, "k_proj": kept, "v_proj": kept}
    if isinstance(owner, GatedMLP) and name == "gate_up_proj":
        rows = owner.gate_up_proj.out_features // 2
        return {"gate_proj": rows, "up_proj": rows}
    return {}


@dataclass(frozen=True)
class _Stored:
    """A tensor in an open file."""

    file: Any
    path: Path
    name: str

    @property
    def shape(self) -> list[int]:
        return list(self.file.get_slice(self.name).get_shape())

    @property
    def is_float(self) -> bool:
        return self.file.get_slice(self.name).get_dtype() in FLOATS

    def read(self) -> Tensor:
        # A file of its own: pages of one that stays open would count as memory until it is closed.
        with safe_open(self.path, "pt") as file:
            tensor: Tensor = file.get_tensor(self.name)
        return tensor


@contextmanager
def _open_tensors(folder: Path) -> Iterator[dict[str, _Stored]]:
    """Every tensor of the folder by name, while its files are open."""
    found: dict[str, _Stored] = {}
    with ExitStack() as stack:
        for path in weight_files(folder):
            with open_regular(path):  # safetensors would wait for a pipe
                pass
            try:
                file = stack.enter_context(safe_open(path, "pt"))
            except (SafetensorError, OSError) as error:
                raise CheckpointError(
                    "{path} is no complete safetensors file ({error}). Download it again.",
                    path=path,
                    error=error,
                ) from error
            found |= {name: _Stored(file, path, name) for name in file.keys()}  # noqa: SIM118
        yield found


def _without_prefix(folder: Path, stored: dict[str, _Stored]) -> dict[str, _Stored]:
    """The tensors without the wrapper's prefix; a name without it is taken first."""
    wrapped = {name: each for name, each in stored.items() if name.startswith(PREFIX)}
    if not wrapped:
        return stored
    log.warning(
        "The weights in %s have names that start with %r, which is left out.", folder, PREFIX
    )
    plain = {name: each for name, each in stored.items() if name not in wrapped}
    return {name.removeprefix(PREFIX): each for name, each in wrapped.items()} | plain


def weight_files(folder: Path) -> list[Path]:
    """The weight files to read, in order; other files may lie beside them."""
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    if (folder / INDEX).is_file():
        return [folder / name for name in sorted(_shards(folder / INDEX))]
    raise CheckpointError(
        "{folder} has no {name}. Only safetensors are read: convert other files first.",
        folder=folder,
        name=SINGLE,
    )


def _shards(index: Path) -> set[str]:
    """The file names in an index; none of them leads out of the folder."""
    try:
        names = set(read_json(index)["weight_map"].values())
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            "{index} is no index of weights. Download it again.", index=index
        ) from error
    for name in names:
        if not isinstance(name, str) or not _is_plain(name):
            raise CheckpointError(
                "{index} points to {name!r}, which is no file beside it.", index=index, name=name
            )
    return names


def _is_plain(name: str) -> bool:
    outside = any(mark in name for mark in ("/", "\\", ":", "\0"))
    return name.endswith(".safetensors") and not outside


def _check(
    folder: Path,
    entries: list[_Entry],
    tensors: Mapping[str, _Stored],
    unused: Iterable[str],
) -> None:
    places = (place for entry in entries for place in entry.places(entry.tensor))
    wanted = {name: list(piece.shape) for name, piece in places}
    known = sorted(wanted.keys() & tensors.keys())
    patterns = tuple(unused)
    extra = sorted(
        name
        for name in tensors.keys() - wanted.keys()
        if not any(fnmatchcase(name, pattern) for pattern in patterns)
    )
    numbered = {_any_number(name) for name in wanted}
    problems = {
        "missing": sorted(wanted.keys() - tensors.keys()),
        # one layer or codebook more: the config is another model's
        "unexpected": [name for name in extra if _any_number(name) in numbered],
        "of another shape": [
            f"{name} is {tensors[name].shape}, not {wanted[name]}"
            for name in known
            if tensors[name].shape != wanted[name]
        ],
        "not floating point": [name for name in known if not tensors[name].is_float],
    }
    found = [f"{problem}: {_first(names)}" for problem, names in problems.items() if names]
    if found:
        raise CheckpointError(
            "The weights in {folder} do not fit its config. {there}. "
            "Check that both are of one checkpoint, or download it again.",
            folder=folder,
            there="; ".join(found),
        )
    if extra:
        log.warning("The weights in %s have tensors that are not used: %s.", folder, _first(extra))


def _any_number(name: str) -> str:
    """The name with its numbers of layers and codebooks replaced."""
    return re.sub(r"\.\d+(?=\.|$)", ".#", name)


def _first(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
