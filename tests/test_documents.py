"""Documents name only files, folders, modules and headings that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "bench/*.md", "training/*.md")
    for path in ROOT.glob(pattern)
    if path.name not in {"CHANGELOG.md", "SECURITY.md"}
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"[\w./-]+")
MODULE = re.compile(r"python -m ((?:bench|training)(?:\.\w+)*)")
DOCKERFILE = re.compile(r"```dockerfile\n(.*?)```", re.S)
COPIED = re.compile(r"^COPY (.+) \S+$", re.M)

ROOMS = ("bench/", "docs/", "engine/", "presets/", "studio/", "tests/", "training/")
OUTPUTS = ("bench/.reference/", "training/runs/")  # what commands write


def headings(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def missing_links(path: Path) -> Iterator[str]:
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (heading and heading not in headings(there)):
            yield target


def missing_paths(text: str) -> Iterator[str]:
    """Quoted words that begin with a folder of the repository; patterns and outputs are none."""
    for quoted in QUOTED.findall(text):
        for word in WORD.findall(quoted):
            name = word.rstrip("/.")
            pattern = f"{word}*" in quoted or f"{word}<" in quoted or f"{word}{{" in quoted
            if not word.startswith(ROOMS) or word.startswith(OUTPUTS) or pattern:
                continue
            if not (ROOT / name).exists():
                yield name


def missing_modules(text: str) -> Iterator[str]:
    for name in MODULE.findall(text):
        path = name.replace(".", "/")
        if not any((ROOT / f"{path}{ending}").exists() for ending in (".py", "/__main__.py")):
            yield name


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [*missing_links(path), *missing_paths(text), *missing_modules(text)] == []


def test_images_of_documents_copy_what_docker_is_sent() -> None:
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    blocks = [
        block
        for path in DOCUMENTS
        for block in DOCKERFILE.findall(path.read_text(encoding="utf-8"))
    ]
    copied = [name for block in blocks for names in COPIED.findall(block) for name in names.split()]
    assert "requirements-ray.txt" in copied
    assert [name for name in copied if f"!{name}" not in sent or not (ROOT / name).exists()] == []


def test_a_name_that_is_gone_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a](gone.md) [b](#nothing) [c](https://example.org)\n# Here\n[d](#here)\n")
    assert [*missing_links(page)] == ["gone.md", "#nothing"]
    text = "`engine/gone.py`, `engine/loop.py`, `bench/results/*`, `python -m bench.gone`"
    assert [*missing_paths(text)] == ["engine/gone.py"]
    assert [*missing_modules(text)] == ["bench.gone"]
