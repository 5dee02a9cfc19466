"""Opens an engine from model names, and adds or replaces models while it runs.

The only module on the host side that imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, count
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.checkpoints.config_file import codec_digest
from engine.checkpoints.hub import resolve
from engine.config import EngineSettings, load_profile
from engine.engine import Engine
from engine.errors import CheckpointError, InvalidSetting, OtherCodec, TimbreError
from engine.machine import may_have_gpu
from engine.messages import Message
from engine.remote.boot import BootedProcess
from engine.remote.process import OnLoss, process_engine
from engine.remote.remote_engine import RemoteEngine
from engine.remote.replicas import ReplicaPool, Replicas
from engine.remote.zerogpu import Lend, LentDevice
from engine.speech_engine import SpeechEngine
from engine.types import Capabilities

if TYPE_CHECKING:
    import torch

MINI = Path(__file__).parents[1] / "presets" / "mini"  # Timbre Mini, the embedded model
WEIGHTS = ("auto", "full", "8bit", "4bit")
DTYPES = ("auto", "float32", "bfloat16", "float16")
DEVICE = re.compile(r"auto|(cpu|cuda|mps|xpu)(:[0-9]{1,3})?")
NO_CUDA = (
    "This machine has no '{device}'; torch sees {there} CUDA devices. Try --device cpu, "
    "or look at the driver and at whether torch was installed with CUDA."
)


def open_engine(
    models: Sequence[str | Path] = (MINI,),
    device: str = "auto",
    dtype: str = "auto",
    profile: str | None = None,
    preload: bool = True,
    start: bool = True,
    weights: str = "auto",
    cache: str | Path | None = None,
    beside: bool = False,
    reads_text: bool = True,
    **changes: Any,
) -> Engine:
    """An engine with these checkpoints: folders, or hub ids that are downloaded first; without any,
    with Timbre Mini.

    `profile` None: cpu on CPUs, the defaults on GPUs. `changes` are single settings of
    EngineSettings. `preload`: load the first model before returning. `weights`: one of WEIGHTS,
    the precision of the talker's weights on a CPU; auto takes 8 bits for large models, with no
    audible difference. `cache`: a folder where a first start keeps what later ones then need not
    make; `beside`: another process makes it, which ends by itself, and the plain form
    speaks meanwhile. `reads_text` False: requests come with their ids. `start` False: no thread is
    started, the caller runs the loop, and nothing is preloaded.
    """
    if not models:
        raise CheckpointError("There is no model. Name a folder or a hub id.")
    check_choices(device, dtype, profile, weights, lent=not start)
    from engine.worker.device import pick_device
    from engine.worker.worker import TorchWorker
    from engine.worker.worker_settings import WorkerSettings

    place = pick_device(None if device == "auto" else device)
    _check_present(place)
    folders = _named([resolve(str(model)) for model in models])
    check_one_codec(folders)
    settings = _settings(profile, place.type, changes)
    checkpoints = _checkpoints(folders, settings, reads_text)
    held = WorkerSettings(
        settings.max_num_seqs, settings.max_seq_len, str(place), _dtype(dtype),
        weights=weights, cache=None if cache is None else Path(cache),
        compiles_beside=beside, fast=True,
    )  # fmt: skip
    make: Callable[[Any], Any] = partial(TorchWorker, settings=held)  # of local checkpoints
    engine = Engine(make(checkpoints), checkpoints, settings, start=start, rebuild=make)
    if preload and start:
        _load_first(engine)
    return engine


def forget_packed(model: Path, cache: Path) -> None:
    """Delete what starts on a CPU have kept of a model whose folder is deleted next."""
    from engine.worker.cpu_start import CpuStart
    from engine.worker.loading.start_cache import StartCache

    for weights in WEIGHTS:
        CpuStart(StartCache(cache), model, weights).forget()


def open_process(
    models: Sequence[str | Path],
    device: str = "auto",
    dtype: str = "auto",
    profile: str | None = None,
    weights: str = "auto",
    cache: str | Path | None = None,
    beside: bool = False,
    booted: BootedProcess | None = None,
    on_loss: OnLoss | None = None,
    **changes: Any,
) -> RemoteEngine:
    """The engine of `open_engine` in a process of its own, so that this one needs no torch, unless
    a model is added or replaced. `booted`: a process that was started for it already. `on_loss` is
    called where it ends by itself, before it is started again.
    """
    check_choices(device, dtype, profile, weights)
    named = tuple(map(str, models))
    how: dict[str, Any] = {"device": device, "dtype": dtype, "profile": profile, "weights": weights}
    how |= {"cache": cache, "beside": beside, "reads_text": False, **changes}
    # what the first request needs here is read while that process loads
    from engine.requests import input_processor  # noqa: F401

    Thread(target=_read_texts, args=(named,), name="timbre-tokenizers", daemon=True).start()
    engine = process_engine(partial(_open_here, named, how), booted, on_loss)
    try:
        for each in engine.checkpoints().values():
            if isinstance(each, LocalCheckpoint):
                each.check_text()
    except BaseException:
        engine.close()
        raise
    return engine


def _read_texts(models: Sequence[str]) -> None:
    """Read the tokenizers of models that are here, so that they need not be waited for."""
    for model in models:
        with suppress(TimbreError):  # said by who asks for it
            LocalCheckpoint(resolve(model, offline=True).resolve())


def check_choices(
    device: str, dtype: str, profile: str | None, weights: str, lent: bool = False
) -> None:
    """Raises InvalidSetting for names that nothing has, and for a GPU where there is no driver:
    before torch is imported. `lent`: the device may come later (ZeroGPU)."""
    if not DEVICE.fullmatch(device):
        raise InvalidSetting(
            "No device is called '{device}'. Try auto, cpu, cuda, mps or xpu.", device=device
        )
    if device.startswith("cuda") and not lent and not may_have_gpu():
        raise InvalidSetting(NO_CUDA, device=device, there=0)
    if dtype not in DTYPES:
        raise InvalidSetting(
            "No dtype is called '{name}'. Choose from {there}.", name=dtype, there=", ".join(DTYPES)
        )
    if weights not in WEIGHTS:
        raise InvalidSetting(
            "No weights are called '{name}'. Choose from {there}.",
            name=weights,
            there=", ".join(WEIGHTS),
        )
    load_profile(profile)


def _open_here(
    models: Sequence[str], how: Mapping[str, Any], checkpoints: Mapping[str, LocalCheckpoint]
) -> Engine:
    """Open the models, or those of the checkpoints, if any are, that were not deleted meanwhile."""
    there = [each.folder for each in checkpoints.values() if each.folder.is_dir()]
    return open_engine(there or models, **how)


def open_zerogpu(
    models: Sequence[str | Path],
    lend: Lend,
    device: str = "cuda",
    dtype: str = "auto",
    profile: str | None = None,
    **changes: Any,
) -> RemoteEngine:
    """An engine whose device is allocated to one request at a time (ZeroGPU: `spaces.GPU`).

    Models are downloaded here and loaded by the process that gets the device.
    """
    folders = _named([resolve(str(model)) for model in models])
    check_one_codec(folders)
    settings = _settings(profile, device, changes)
    engine_settings: dict[str, Any] = {**changes, "max_num_seqs": 1}
    places = tuple(folders.values())
    make = partial(open_engine, places, device, dtype, profile, start=False, **engine_settings)
    return RemoteEngine(_checkpoints(folders, settings), settings, LentDevice(make, lend))


def open_cluster(
    models: Sequence[str | Path],
    replicas: Replicas,
    device: str = "cpu",
    profile: str | None = None,
    **changes: Any,
) -> RemoteEngine:
    """An engine whose requests are spoken by replicas that were opened with the same values.

    Models are read here without their weights, which needs no device.
    """
    folders = _named([resolve(str(model)) for model in models])
    check_one_codec(folders)
    settings = _settings(profile, device, changes)
    return RemoteEngine(_checkpoints(folders, settings), settings, ReplicaPool(replicas, settings))


def _check_present(device: torch.device) -> None:
    """Torch accepts the name of any CUDA device and fails only at the first tensor."""
    import torch

    if device.type == "mps" and not torch.backends.mps.is_available():
        raise InvalidSetting("This machine has no 'mps': that is the GPU of an Apple computer.")
    if device.type == "xpu" and (device.index or 0) >= torch.xpu.device_count():
        raise InvalidSetting(
            "This machine has no '{device}': that is an Intel GPU, and a torch built for it.",
            device=str(device),
        )
    if device.type == "cuda" and (device.index or 0) >= (there := torch.cuda.device_count()):
        raise InvalidSetting(NO_CUDA, device=str(device), there=there)


def _load_first(engine: Engine) -> None:
    try:
        engine.load(next(iter(engine.capabilities())))
    except BaseException:
        engine.close()
        raise


def fitting(models: Sequence[str | Path], others: Sequence[Path]) -> list[str]:
    """Those of the folders `others` that one engine can have beside `models`."""
    found: list[str] = []
    mine = codec_digest(resolve(str(models[0]))) if others else ""
    for folder in others:
        with suppress(TimbreError, OSError):  # it was damaged, or deleted meanwhile
            LocalCheckpoint(folder)
            found += [str(folder)] if codec_digest(folder) == mine else []
    return found


def read_capabilities(models: Sequence[str | Path]) -> dict[str, Capabilities]:
    """What these checkpoints can do, by name; their weights are not loaded."""
    folders = _named([resolve(str(model)) for model in models])
    return {name: LocalCheckpoint(at, name=name).capabilities for name, at in folders.items()}


def check_one_codec(folders: Mapping[str, Path]) -> None:
    """All models of an engine share one codec, so it must be the same in every checkpoint."""
    if len(folders) < 2:
        return
    (first, first_digest), *others = ((name, codec_digest(at)) for name, at in folders.items())
    strangers = [name for name, digest in others if digest != first_digest]
    if strangers:
        raise OtherCodec(
            "{there} and {first} have different codecs, and one engine has one. "
            "Serve them in processes of their own.",
            there=", ".join(strangers),
            first=first,
        )


def _named(folders: Sequence[Path]) -> dict[str, Path]:
    """Folders by name, numbered where two have the same name."""
    named: dict[str, Path] = {}
    for folder in folders:
        base = folder.resolve()
        name = model_name(base)
        numbered = (f"{name} ({number})" for number in count(2))
        named[next(each for each in chain([name], numbered) if each not in named)] = base
    return named


def model_name(folder: Path) -> str:
    """The folder's name; in the hub's cache the repository's."""
    snapshot = folder.parent.name == "snapshots" and folder.parent.parent.name
    return snapshot.rpartition("--")[2] if snapshot else folder.name


def _settings(profile: str | None, device: str, changes: Mapping[str, Any]) -> EngineSettings:
    small = device in ("cpu", "mps", "xpu")
    settings = load_profile(profile or ("cpu" if small else None), **changes)
    if settings.pipeline_depth is None:
        settings = settings.model_copy(update={"pipeline_depth": 0 if small else 1})
    return settings


def _checkpoints(
    folders: Mapping[str, Path], settings: EngineSettings, reads_text: bool = True
) -> dict[str, LocalCheckpoint]:
    return {
        name: LocalCheckpoint(folder, settings.max_seq_len, name, reads_text)
        for name, folder in folders.items()
    }


def _dtype(name: str) -> torch.dtype | None:
    """None: the device's default."""
    import torch

    return None if name == "auto" else getattr(torch, name)


def exchange(
    engine: SpeechEngine,
    out: str,
    model: str,
    note: Callable[[Message], None] = lambda message: None,
) -> str:
    """Replace the model `out` by `model`, a folder or a hub id, and return its name.

    This may download and take long; `note` is called at each stage. Raises CheckpointError for a
    model that cannot be used, EngineError while a request uses `out`, OutOfMemory if it does not
    fit; then `out` stays, or is loaded again.
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

    As `exchange`; an exception from `note` cancels a download.
    """
    name, checkpoint = _prepare(engine, "", model, note)
    if name in engine.checkpoints():
        raise InvalidSetting("{name} is in the list of models already.", name=name)
    note(Message("Loading {name}", name=name))
    engine.add(name, checkpoint)
    return name


def _prepare(
    engine: SpeechEngine, out: str, model: str, note: Callable[[Message], None]
) -> tuple[str, LocalCheckpoint]:
    """A checkpoint, downloaded, and checked against all others but `out`.

    The check of its weights builds its networks without memory, in this process too: with torch.
    """
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
    size = sum(each.stat().st_size for each in folder.glob("*.safetensors") if each.is_file())
    note(Message("Reading {model}, {size:.2f} GB", model=model, size=size / 1e9))
    name = model_name(folder)
    checkpoint = LocalCheckpoint(folder, engine.settings.max_seq_len, name)
    _check_same_codec(engine, out, folder)
    check_weights(folder)
    return name, checkpoint


def _check_same_codec(engine: SpeechEngine, out: str, folder: Path) -> None:
    """The codec must be that of the models that stay."""
    others = {
        name: checkpoint.folder
        for name, checkpoint in engine.checkpoints().items()
        if name != out and isinstance(checkpoint, LocalCheckpoint)
    }
    check_one_codec({**others, model_name(folder): folder})
