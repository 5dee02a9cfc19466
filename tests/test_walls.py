"""Import rules of the packages, and which module reads arguments and environment."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("engine", "studio", "bench", "training", "tests")
DEVICE = ("engine.worker", "engine.model")
HEAVY = ("torch", "transformers", "torchaudio")

# The one place on the host side that may reach across, inside a function.
BRIDGE = "engine/open.py"
# Benches of what lies below the engine: networks, kernels, single steps.
BELOW = (
    "bench/gpu/",
    "bench/random_",
    "bench/quality/bits",
    "bench/cpu_parts",
)  # measure its parts


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(part.startswith(".") for part in path.relative_to(ROOT).parts):
                yield path
    if "app" in folders:
        yield from sorted(ROOT.glob("app.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path: Path) -> list[tuple[str, str | None]]:
    """Module and name of every import anywhere in a file; relative ones are within its folder."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [(node.module or "", alias.name) for alias in node.names]
    return found


def host_side() -> Iterator[Path]:
    for path in sources("engine", "studio", "app"):
        if not name_of(path).startswith(("engine/worker/", "engine/model/")):
            yield path


def within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def public_names() -> set[str]:
    import engine

    return set(engine.__all__)


def test_the_studio_knows_only_the_public_face_of_the_engine():
    public = public_names()
    for path in sources("studio"):
        for module, name in imports(path):
            assert not within(module, HEAVY), f"{path}: {module} is the engine's business"
            if within(module, ("engine",)):
                assert module == "engine", f"{path}: {module} is behind the wall: use engine"
                assert name in public, f"{path}: engine.{name} is not public"


def importing(paths: Iterable[Path], packages: tuple[str, ...]) -> list[tuple[str, str]]:
    """The files that import one of these packages, and what."""
    return [
        (name_of(path), module)
        for path in paths
        for module, _ in imports(path)
        if within(module, packages)
    ]


def test_the_host_side_knows_no_tensors():
    found = importing(host_side(), (*HEAVY, *DEVICE))
    assert [each for each in found if each[0] != BRIDGE] == []


def test_nobody_outside_reaches_into_the_worker():
    found = importing(sources("bench", "app"), ("engine.worker",))
    assert [each for each in found if not each[0].startswith(BELOW)] == []


def test_importing_the_engine_leaves_the_heavy_libraries_out():
    code = f"import sys, engine; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


MOST_MODULES = 20  # of a folder
# Names that modules had while the project spoke a language of its own.
PRIVATE_NAMES = {
    "asking",
    "between",
    "bundles",
    "choosing",
    "course",
    "desk",
    "draining",
    "eight",
    "fake",
    "feeding",
    "few",
    "filling",
    "forecast",
    "gate",
    "generalising",
    "guiding",
    "hearing",
    "homes",
    "hosting",
    "inbox",
    "intake",
    "lane",
    "lent",
    "listening",
    "mailbox",
    "manner",
    "marking",
    "open_text",
    "pace",
    "pair",
    "parts",
    "people",
    "place",
    "planning",
    "pool",
    "prediction",
    "presses",
    "products",
    "room",
    "roster",
    "runaway",
    "said",
    "seams",
    "settling",
    "shapes",
    "sounding",
    "spans",
    "spelling",
    "straying",
    "talkers",
    "talking",
    "telling",
    "tidying",
    "together",
    "uploads",
    "verdict",
    "voicing",
    "walk",
    "wire",
    "wording",
}


def contracts() -> list[dict[str, Any]]:
    api = pytest.importorskip("importlinter.api", reason="requirements-dev.txt")
    return list(api.read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"])


def test_packages_import_downwards_and_nothing_in_a_circle(tmp_path: Path):
    """The contracts in pyproject.toml, for imports anywhere in a file."""
    assert len(contracts()) == 5
    code = "from importlinter.cli import lint_imports_command as lint; lint()"
    command = [sys.executable, "-c", code, "--no-logo", "--cache-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_order_of_packages_is_told_whole():
    for contract in contracts():
        for half in contract.get("containers", ()):
            root = ROOT / half.replace(".", "/")
            folders = {path.parent.name for path in root.glob("*/__init__.py")}
            assert folders - {"testing"} <= set(contract["layers"]), half


def test_production_imports_no_test_doubles():
    found = importing(sources("app", "engine", "studio"), ("engine.testing", "tests"))
    assert [each for each in found if not each[0].startswith("engine/testing/")] == []


def test_folders_hold_few_modules():
    counts = Counter(path.parent for path in sources(*OURS) if path.name != "__init__.py")
    assert {name_of(folder): n for folder, n in counts.items() if n > MOST_MODULES} == {}


def test_modules_have_the_names_of_the_field():
    private = [name_of(path) for path in sources(*OURS) if path.stem in PRIVATE_NAMES]
    assert private == []


FOLDERS = "engine|studio|training|bench|presets|tests"


def test_every_path_in_the_architecture_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(rf"`((?:app\.py|(?:{FOLDERS})(?:/[\w./]*)?))`", text)
    linked = re.findall(r"\]\(([^)#:]+)\)", text)
    assert len(named) > 30
    assert [path for path in {*named, *linked} if not (ROOT / path).exists()] == []


def test_every_public_name_is_there_once():
    import engine

    assert len(engine.__all__) == len(set(engine.__all__))
    assert all(hasattr(engine, name) for name in engine.__all__)


def test_only_the_graphs_name_graphs():
    wanted = "CUDA" + "Graph"
    named = [name_of(path) for path in sources("engine", "studio", "app") if wanted in _code(path)]
    assert set(named) <= {"engine/worker/cuda_graphs.py"}


@functools.cache
def _code(path: Path) -> str:
    """A file without its comments and docstrings."""
    parsed = ast.parse(path.read_text(encoding="utf-8"))  # of its own: it is changed
    for node in ast.walk(parsed):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                body[0] = ast.Expr(ast.Constant(...))
    return ast.unparse(parsed)


def test_only_the_app_reads_arguments_and_environment():
    for path in sources("engine", "studio"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                read = f"{node.value.id}.{node.attr}"
                wanted = read not in ("os.environ", "os.getenv", "sys.argv")
                assert wanted, f"{path}: {read} is app.py's"


def test_every_module_says_what_it_does():
    ours = [path for path in sources("engine", "studio", "app") if tree(path).body]
    assert [name_of(path) for path in ours if not ast.get_docstring(tree(path))] == []


def test_nothing_is_pickled():
    ours = [*sources("engine", "studio", "app")]
    assert importing(ours, ("pickle", "marshal", "shelve", "dill", "joblib")) == []
    assert [name_of(path) for path in ours if "torch.load(" in _code(path)] == []
