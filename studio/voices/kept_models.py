"""Models of one's own that are kept: each lies with its training, and is loaded beside the model
that it was made of. Its voice is a preset with the name of the training.

Knows folders and names; no engine, no pages, no torch.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine import InvalidSetting, folded, write_atomic

if TYPE_CHECKING:  # a container without the trainer serves too
    from training.voice.job import JobFolder

FOLDER: Final = "training"  # of all trainings, in the data folder
ID: Final = re.compile(r"[0-9a-f]{12}")  # of a training; others are copies that somebody has made
LONGEST: Final = 32  # letters of a folder's name, of up to four bytes each
_UNSAFE = re.compile(r"[^\w -]")  # in the name of a folder


@dataclass(frozen=True)
class KeptModel:
    """`name`: of the model, as an engine lists it."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def speaker(self) -> str:
        """The preset that was trained."""
        return next(reversed(_speakers(self.folder)))

    def delete(self) -> None:
        shutil.rmtree(self.folder)


def kept_model(folder: JobFolder) -> KeptModel | None:
    """What is kept of a training."""
    there = sorted(folder.kept.glob("*/config.json"))
    return KeptModel(there[0].parent) if there else None


def kept_models(data: Path) -> list[Path]:
    """The folders of all that are kept."""
    there = (path.parent for path in (data / FOLDER).glob("*/kept/*/config.json"))
    return sorted(path for path in there if ID.fullmatch(path.parent.parent.name))


def keep_model(folder: JobFolder, models: Collection[str], speakers: Collection[str]) -> KeptModel:
    """Keep the model of a training under its name, which no model and no speaker here has, in
    place of the one that was kept before.

    Raises InvalidSetting where there is none.
    """
    if not folder.merged.is_dir():
        raise InvalidSetting("This training has no voice yet.")
    name, before = folder.read().name, kept_model(folder)
    *others, own = _speakers(folder.merged)
    known = [each for each in speakers if not before or folded(each) != folded(before.speaker)]
    _rename(folder.merged, own, _free(name.strip().lower(), [*known, *others]))
    place = folder.kept / _free(_UNSAFE.sub("_", name)[:LONGEST].strip() or "voice", models)
    folder.kept.mkdir(exist_ok=True)
    folder.merged.rename(place)
    if before:
        before.delete()
    return KeptModel(place)


def _free(name: str, taken: Collection[str]) -> str:
    """The name, numbered where it is taken."""
    there, numbered = set(map(folded, taken)), (f"{name} {number}" for number in count(2))
    return next(each for each in chain([name], numbered) if folded(each) not in there)


def _speakers(model: Path) -> dict[str, int]:
    """The presets and their rows; the one that was trained is the last."""
    found: dict[str, int] = _config(model)["talker_config"]["spk_id"]
    return found


def _rename(model: Path, old: str, new: str) -> None:
    config = _config(model)
    talker = config["talker_config"]
    for key in ("spk_id", "spk_is_dialect"):
        talker[key] = {new if name == old else name: each for name, each in talker[key].items()}
    write_atomic(model / "config.json", json.dumps(config, indent=1).encode())


def _config(model: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((model / "config.json").read_bytes())
    return found
