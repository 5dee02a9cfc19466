"""From model names to a running engine, and from one model to another while it runs.

The one place on the host side that loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.checkpoints.config_file import codec_digest
from engine.checkpoints.hub import resolve
from engine.config import EngineSettings, load_profile
from engine.engine import Engine
from engine.errors import CheckpointError, InvalidSetting, OtherCodec, TimbreError
from engine.messages import Message
from engine.plan import Worker
from engine.speech_engine import SpeechEngine
from engine.types import Capabilities
from engine.zerogpu import Lend, ZeroGpuEngine

if TYPE_CHECKING:
    import torch

WEIGHTS = ("auto", "full", "8bit", "4bit")
DTYPES = ("auto", "float32", "bfloat16", "float16")


def open_engine(
    models: Sequence[str | Path],
    device: str = "auto",
    dtype: str = "auto",
    profile: str | None = None,
    preload: bool = True,
    start: bool = True,
    weights: str = "auto",
    **changes: Any,
) -> Engine:
    """An engine with these checkpoints: folders, or hub ids that are downloaded first.

    `profile` None: cpu on CPUs, balanced on GPUs. `changes` are single settings of
    EngineSettings. `preload`: the first model is on the device when this returns.
    `weights`: one of WEIGHTS, in how many bits a CPU keeps the talker's; auto takes 8 where the
    model is large, which is not heard. `start` False: no thread is started, the caller runs the
    loop; then nothing can be preloaded.
    """
    if not models:
        raise CheckpointError("There is no model. Name a folder or a hub id.")
    from engine.worker.device import pick_device
    from engine.worker.worker import TorchWorker, WorkerSettings

    try:
        place = pick_device(None if device == "auto" else device)
    except RuntimeError as error:
        raise InvalidSetting(
            "No device is called '{device}'. Try auto, cpu or cuda.", device=device
        ) from error
    _check_present(place)
    folders = _named([resolve(str(model)) for model in models])
    check_one_codec(folders)
    settings = _settings(profile, place.type, changes)
    checkpoints = _checkpoints(folders, settings)
    held = WorkerSettings(
        settings.max_num_seqs, settings.max_seq_len, str(place), _dtype(dtype),
        weights=_weights(weights), trace=True,
    )  # fmt: skip
    make: Callable[[Any], Worker] = partial(TorchWorker, settings=held)
    engine = Engine(make(checkpoints), checkpoints, settings, start=start, rebuild=make)
    if preload and start:
        _load_first(engine)
    return engine


def open_zerogpu(
    models: Sequence[str | Path],
    lend: Lend,
    device: str = "cuda",
    dtype: str = "auto",
    profile: str | None = None,
    **changes: Any,
) -> ZeroGpuEngine:
    """An engine whose device is lent to one request at a time (ZeroGPU: `spaces.GPU`).

    Nothing is loaded here; the process that gets the device opens the files downloaded here.
    """
    folders = _named([resolve(str(model)) for model in models])
    check_one_codec(folders)
    settings = _settings(profile, device, changes)
    own: dict[str, Any] = {**changes, "max_num_seqs": 1}
    places = tuple(folders.values())
    make = partial(open_engine, places, device, dtype, profile, start=False, **own)
    return ZeroGpuEngine(_checkpoints(folders, settings), settings, make, lend)


def _check_present(device: torch.device) -> None:
    """Torch takes the name of any CUDA device, and complains at the first tensor."""
    import torch

    if device.type == "cuda" and (device.index or 0) >= (there := torch.cuda.device_count()):
        raise InvalidSetting(
            "This machine has no '{device}'; torch sees {there} CUDA devices. Try --device cpu, "
            "or look at the driver and at whether torch was installed with CUDA.",
            device=str(device),
            there=there,
        )


def _load_first(engine: Engine) -> None:
    try:
        engine.load(next(iter(engine.capabilities())))
    except BaseException:
        engine.close()
        raise


def read_capabilities(models: Sequence[str | Path]) -> dict[str, Capabilities]:
    """What these checkpoints can do, by name; their weights are not loaded."""
    folders = _named([resolve(str(model)) for model in models])
    return {name: LocalCheckpoint(at, name=name).capabilities for name, at in folders.items()}


def check_one_codec(folders: Mapping[str, Path]) -> None:
    """The models of one engine share a codec, so their checkpoints must have the same one."""
    if len(folders) < 2:
        return
    (first, own), *others = ((name, codec_digest(at)) for name, at in folders.items())
    strangers = [name for name, digest in others if digest != own]
    if strangers:
        raise OtherCodec(
            "{there} and {first} have different codecs, and one engine has one. "
            "Serve them in processes of their own.",
            there=", ".join(strangers),
            first=first,
        )


def _named(folders: Sequence[Path]) -> dict[str, Path]:
    """Folders by their names, numbered where two are the same."""
    named: dict[str, Path] = {}
    for folder in folders:
        base = folder.resolve()
        name = model_name(base)
        twins = sum(own == name or own.startswith(f"{name} (") for own in named)
        named[f"{name} ({twins + 1})" if twins else name] = base
    return named


def model_name(folder: Path) -> str:
    """The folder's name; in the hub's cache that of the repository."""
    snapshot = folder.parent.name == "snapshots" and folder.parent.parent.name
    return snapshot.rpartition("--")[2] if snapshot else folder.name


def _settings(profile: str | None, device: str, changes: Mapping[str, Any]) -> EngineSettings:
    settings = load_profile(profile or ("cpu" if device == "cpu" else "balanced"), **changes)
    if settings.pipeline_depth is None:
        settings = settings.model_copy(update={"pipeline_depth": 0 if device == "cpu" else 1})
    return settings


def _checkpoints(
    folders: Mapping[str, Path], settings: EngineSettings
) -> dict[str, LocalCheckpoint]:
    return {
        name: LocalCheckpoint(folder, settings.max_seq_len, name)
        for name, folder in folders.items()
    }


def _weights(name: str) -> str:
    if name not in WEIGHTS:
        raise InvalidSetting(
            "No weights are called '{name}'. Choose from {there}.",
            name=name,
            there=", ".join(WEIGHTS),
        )
    return name


def _dtype(name: str) -> torch.dtype | None:
    """None: what suits the device."""
    import torch

    if name not in DTYPES:
        raise InvalidSetting(
            "No dtype is called '{name}'. Choose from {there}.", name=name, there=", ".join(DTYPES)
        )
    return None if name == "auto" else getattr(torch, name)


def exchange(
    engine: SpeechEngine,
    out: str,
    model: str,
    note: Callable[[Message], None] = lambda message: None,
) -> str:
    """Replace the model `out` by `model`, a folder or a hub id, and return its name.

    May download, so it may take long; `note` is called with each step. Raises CheckpointError for
    what cannot be used, EngineError while a request uses `out`, OutOfMemory where there is no room;
    then `out` stays, or is loaded again.
    """
    name, checkpoint = _prepare(engine, out, model, note)
    note(Message("Loading {name}", name=name))
    before = engine.checkpoints().get(out)
    engine.exchange(out, name, checkpoint)
    try:
        engine.load(name)
    except TimbreError:
        if before is not None:
            engine.exchange(name, out, before)
            engine.load(out)
        raise
    return name


def add_model(
    engine: SpeechEngine, model: str, note: Callable[[Message], None] = lambda message: None
) -> str:
    """Load `model`, a folder or a hub id, beside the others and return its name.

    As `exchange`; what `note` raises ends it while it downloads.
    """
    name, checkpoint = _prepare(engine, "", model, note)
    if name in engine.checkpoints():
        raise InvalidSetting("{name} is here already. Load it in the list.", name=name)
    note(Message("Loading {name}", name=name))
    engine.add(name, checkpoint)
    return name


def _prepare(
    engine: SpeechEngine, out: str, model: str, note: Callable[[Message], None]
) -> tuple[str, LocalCheckpoint]:
    """A checkpoint that may stand beside all but `out`, downloaded and checked."""
    from engine.worker.loading.model_loader import check_weights

    def downloading(done: int, total: int) -> None:
        note(
            Message(
                "Downloading {model}: {done:.0f} of {total:.0f} MB",
                model=model,
                done=done / 1e6,
                total=total / 1e6,
            )
        )

    note(Message("Looking for {model}", model=model))
    folder = resolve(model.strip(), progress=downloading).resolve()
    size = sum(each.stat().st_size for each in folder.glob("*.safetensors"))
    note(Message("Reading {model}, {size:.2f} GB", model=model, size=size / 1e9))
    name = model_name(folder)
    checkpoint = LocalCheckpoint(folder, engine.settings.max_seq_len, name)
    _check_same_codec(engine, out, folder)
    check_weights(folder)
    return name, checkpoint


def _check_same_codec(engine: SpeechEngine, out: str, folder: Path) -> None:
    """It must be the codec of the models that stay."""
    others = {
        name: own.folder
        for name, own in engine.checkpoints().items()
        if name != out and isinstance(own, LocalCheckpoint)
    }
    check_one_codec({**others, model_name(folder): folder})
