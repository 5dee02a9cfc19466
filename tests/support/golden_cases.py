"""The cases of the golden folders: each request, and the reference's output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from safetensors.torch import load_file
from torch import Tensor

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.plan import Prompt
from engine.types import Clone, Design, Preset
from tests.conftest import golden_folders


@dataclass(frozen=True, eq=False)
class Case:
    folder: Path
    name: str
    asked: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.folder.name}-{self.name}"

    def tensor(self, stage: str) -> Tensor:
        return tensors(self.folder)[f"{self.name}.{stage}"]

    @property
    def frames(self) -> int:
        frames: int = self.asked["frames"]
        return frames

    @property
    def voice(self) -> Preset | Clone | Design:
        if "speaker" in self.asked:
            return Preset(self.asked["speaker"], self.asked.get("instruct", ""))
        if "instruct" in self.asked:
            return Design(self.asked["instruct"])
        made = tensors(self.folder)
        vector = made["reference_embedding"].numpy()
        if self.asked.get("x_vector_only_mode"):
            return Clone(vector)
        return Clone(vector, self.asked["ref_text"], made["reference_codes"].numpy())

    @property
    def layout(self) -> Literal["whole", "streamed"]:
        """The case's layout, or the package's default: streamed for clones."""
        whole = self.asked.get("non_streaming_mode", not isinstance(self.voice, Clone))
        return "whole" if whole else "streamed"

    def prompt(self, checkpoint: LocalCheckpoint) -> Prompt:
        ids = checkpoint.text_ids(self.asked["text"])
        return checkpoint.prompt(ids, self.voice, self.asked["language"], self.layout, False)


@cache
def tensors(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "golden.safetensors")


@cache
def record(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "golden.json").read_text("utf-8"))
    return loaded


def speech_cases() -> list[Case]:
    """Every request of every golden folder."""
    return [
        Case(folder, name, case)
        for folder in golden_folders()
        for name, case in record(folder)["cases"].items()
        if "text" in case
    ]


def sampler_cases() -> list[Case]:
    """Every recorded sampling distribution of every golden folder."""
    return [
        Case(folder, name, case)
        for folder in golden_folders()
        for name, case in record(folder)["cases"].items()
        if "history" in case
    ]
