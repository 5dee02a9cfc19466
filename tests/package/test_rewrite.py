"""The wheel's modules: every import of ours lies below timbre, and nothing else is changed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def hook() -> Any:
    path = ROOT / "package" / "build_hook.py"
    spec = importlib.util.spec_from_file_location("build_hook", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KNOWN = {"engine.plan", "studio.cli", "studio.cluster"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from engine import Preset", "from timbre.engine import Preset"),
        ("from engine.plan import (\n    A,\n)", "from timbre.engine.plan import (\n    A,\n)"),
        ("import engine", "import timbre.engine as engine"),
        ("import engine.plan as plan", "import timbre.engine.plan as plan"),
        ("import os, engine, app as s", "import os, timbre.engine as engine, timbre.app as s"),
        ("if x:\n\tfrom studio import a  # ü", "if x:\n\tfrom timbre.studio import a  # ü"),
        ("x = 'ü'; import app; y = 1", "x = 'ü'; import timbre.app as app; y = 1"),
        ("if x: from presets.a import b", "if x: from timbre.presets.a import b"),
        ("import engines, application", "import engines, application"),
        ("from . import engine", "from . import engine"),
        ("from .engine import plan", "from .engine import plan"),
        ("from engineering import engine", "from engineering import engine"),
        ('"""from engine.plan import X"""', '"""from engine.plan import X"""'),
        ("x = '\u2028'\nimport engine", "x = '\u2028'\nimport timbre.engine as engine"),
        ("x = 'studio.css'", "x = 'studio.css'"),
        ("x = f'{__package__}.cli'", "x = f'{__package__}.cli'"),
    ],
)  # fmt: skip
def test_imports_and_nothing_else_change(hook: Any, before: str, after: str):
    assert hook.rewrite(before, KNOWN) == after


@pytest.mark.parametrize(
    "source",
    [
        "import engine.plan",
        "x = 'engine.plan'",
        "x = 'engine.plan.Step'",
        "x = 'studio.cluster.router:SpeechRouter'",
        "x = f'studio.cluster.{name}'",
        "run([python, '-c', 'import sys; from engine.plan import main; main()'])",
        "x = 'python -m studio.cli'",
        "from engine . plan import x",
        "from \\\n  engine import x",
    ],
)
def test_what_cannot_be_rewritten_stops_the_build(hook: Any, source: str):
    with pytest.raises(hook.CannotRewrite):
        hook.rewrite(source, KNOWN)
