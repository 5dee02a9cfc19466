"""Builds the wheel: the checkout's packages, as one package called timbre.

In a checkout `app.py`, `engine`, `studio`, `presets` and `training/voice` lie at the top level,
where their names are short. In site-packages such names would belong to everybody, so a wheel has
`timbre/engine` and so on, and every import of ours is written anew on the way: `from engine.plan
import X` becomes `from timbre.engine.plan import X`. A module that names another one in any other
way, as a string or by `import engine.plan`, stops the build: use `__package__`, or `from … import`.
"""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NAME = "timbre"
OURS = ("app", "engine", "studio", "presets", "training")
FOLDERS = ("engine", "studio", "presets", "training/voice")  # how the model was made stays out
TESTING = "engine/testing"  # twins for tests alone
# What may name a module in a string: engine.plan, studio.cluster.router:SpeechRouter, -m engine.x
REFERENCE = re.compile(r"(?:^|-m |import |from )(\w+(?:\.\w+)?)(?=[.:]|\b)")
# A requirement that belongs to an extra of the package, not to the package itself.
EXTRAS = {"page": ("gradio",)}
FILES = {
    "cluster": "requirements-ray.txt",
    "mcp": "requirements-mcp.txt",
    "transcribe": "requirements-transcribe.txt",
    "watermark": "requirements-watermark.txt",
    "wyoming": "requirements-wyoming.txt",
}


class CannotRewrite(ValueError):
    """A module names another one in a way that would not hold in the wheel."""


def modules(root: Path) -> set[str]:
    """Our modules of two words: engine.plan, studio.cluster. Others begin with one of these."""
    found = (path.relative_to(root) for each in OURS for path in (root / each).glob("*"))
    return {f"{path.parts[0]}.{path.stem}" for path in found if path.suffix in ("", ".py")}


def rewrite(source: str, known: Collection[str], name: str = "") -> str:
    """The source with its absolute imports of our packages below `timbre`; no line moves.

    `known`: see `modules`. `name`: of the file, for messages.
    """
    tree = ast.parse(source)
    _refuse_strings(tree, known, name)
    lines = source.encode().split(b"\n")  # columns count bytes
    for line, column, old, new in sorted(_changes(tree, name), reverse=True):
        text, rest = lines[line - 1][:column], lines[line - 1][column:]
        if not rest.startswith(old):
            raise CannotRewrite(f"{name}:{line}: write the import on one line")
        lines[line - 1] = text + new + rest[len(old) :]
    return b"\n".join(lines).decode()


def _changes(tree: ast.Module, name: str) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Line, column, what stands there and what shall, for each import of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if _is_ours(node.module):
                old, new = f"from {node.module} ", f"from {NAME}.{node.module} "
                yield node.lineno, node.col_offset, old.encode(), new.encode()
        elif isinstance(node, ast.Import):
            for each in filter(lambda alias: _is_ours(alias.name), node.names):
                if "." in each.name and not each.asname:
                    what = f"import {each.name}"
                    raise CannotRewrite(f"{name}:{node.lineno}: {what}: write from … import")
                new = f"{NAME}.{each.name}" + ("" if each.asname else f" as {each.name}")
                yield each.lineno, each.col_offset, each.name.encode(), new.encode()


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in OURS


def _refuse_strings(tree: ast.Module, known: Collection[str], name: str) -> None:
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = set(REFERENCE.findall(node.value))
            if id(node) not in documentation and not named.isdisjoint(known):
                where = f"{name}:{node.lineno}: {node.value!r}"
                raise CannotRewrite(f"{where} names a module: begin with __package__")


def assemble(root: Path, target: Path) -> None:
    """Write the package into the folder `target` from the checkout `root`."""
    shutil.copytree(root / "package" / NAME, target, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "app.py", target)
    left_out = shutil.ignore_patterns("__pycache__", "*.pyc", "node_modules")
    for each in FOLDERS:
        shutil.copytree(root / each, target / each, ignore=left_out)
    shutil.copy(root / "training" / "__init__.py", target / "training")
    shutil.rmtree(target / TESTING)
    known = modules(root)
    for path in target.rglob("*.py"):
        name = path.relative_to(target).as_posix()
        if path.parent != target or name == "app.py":  # package/timbre is written as it shall be
            path.write_text(rewrite(path.read_text("utf-8"), known, name), encoding="utf-8")


def requirements(path: Path) -> list[str]:
    """The lines of a requirements file, without comments and what other files add."""
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("-")]


class BuildHook(BuildHookInterface[Any]):
    """Puts the rewritten packages into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            raise CannotRewrite(
                "A checkout runs as it is, by python app.py; it cannot be installed"
            )
        self._folder = tempfile.TemporaryDirectory()
        target = Path(self._folder.name) / NAME
        assemble(Path(self.root), target)
        build_data["force_include"][str(target)] = NAME

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()


class MetadataHook(MetadataHookInterface):
    """Takes dependencies from requirements.txt, the one place that lists them, and the README
    without what Hugging Face Spaces read above it."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        text = (root / "README.md").read_text("utf-8").split("\n---\n", 1)[1].lstrip()
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        every = requirements(root / "requirements.txt")
        extras = {
            extra: [each for each in every if re.split("[^a-z0-9-]", each)[0] in names]
            for extra, names in EXTRAS.items()
        }
        for extra, file in FILES.items():
            extras[extra] = requirements(root / file)
        metadata["dependencies"] = [each for each in every if each not in extras["page"]]
        metadata["optional-dependencies"] = {"api": [], **extras}
