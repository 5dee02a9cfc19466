"""Gradio, imported without what this page does not use.

For every component Gradio parses its source, renders a template and compares that with a stub file
(.pyi) beside it, half of the time of its import; editors read these files, nothing that runs does.
pandas is for tables, which this page has not: it is read when somebody asks for something of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any, Final

MODULE, WRITER = "gradio.component_meta", "create_or_modify_pyi"
LATER: Final = "pandas"


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
        if name not in (MODULE, LATER):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            wrapped = _WithoutStubs if name == MODULE else LazyLoader
            spec.loader = wrapped(spec.loader)
        return spec


def _write_nothing(*_: object) -> None:
    """In place of Gradio's writer."""


def leave_out() -> None:
    """Before Gradio is imported."""
    finder: Any = _Finder
    if MODULE not in sys.modules and finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
