"""Another checkpoint in the place of one that is here: found or downloaded, checked, loaded.

An engine keeps as many places as it was opened with. Knows files and names, no device.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.checkpoints.hub import resolve
from engine.engine import Engine
from engine.messages import Message
from engine.open import check_one_codec, model_name


def exchange(
    engine: Engine, out: str, model: str, note: Callable[[Message], None] = lambda said: None
) -> str:
    """Speak with `model`, a folder or a hub id, instead of `out`. Returns its name.

    Takes long: it may download. `note` is told what is going on. Raises CheckpointError for
    what cannot be used, EngineError when `out` is speaking; then `out` stays.
    """

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
    note(Message("Reading {model}", model=model))
    name = model_name(folder)
    checkpoint = LocalCheckpoint(folder, engine.settings.max_seq_len, name)
    _check_codec(engine, out, folder)
    note(Message("Loading {name}", name=name))
    engine.exchange(out, name, checkpoint)
    engine.load(name)
    return name


def _check_codec(engine: Engine, out: str, folder: Path) -> None:
    """It must be that of the others that stay."""
    others = {
        name: own.folder
        for name, own in engine.checkpoints().items()
        if name != out and isinstance(own, LocalCheckpoint)
    }
    check_one_codec({**others, model_name(folder): folder})
