"""Gradio's components, imported without the stub files (.pyi) that each import writes anew.

For every component Gradio parses its source, renders a template and compares that with a file
beside it, half of the time of its import; editors read these files, nothing that runs does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

MODULE, WRITER = "gradio.component_meta", "create_or_modify_pyi"


class _WithoutStubs(Loader):
    def __init__(self, own: Loader) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        if hasattr(module, WRITER):
            setattr(module, WRITER, _write_nothing)


class _Finder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == MODULE else None
        if spec is not None and spec.loader is not None:
            spec.loader = _WithoutStubs(spec.loader)
        return spec


def _write_nothing(*_: object) -> None:
    """In place of Gradio's writer."""


def leave_out_stubs() -> None:
    """Before Gradio is imported."""
    finder: Any = _Finder
    if MODULE not in sys.modules and finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
