"""The licences of everything that requirements.txt brings along, as a page.

`python .ci/licences.py > docs/licences.md`, in an environment with requirements.txt installed.
What is read is what each package says of itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# Licences

Everything that `requirements.txt` brings along, directly or not, on Linux with Python 3.11 and the
CPU's PyTorch, and the licence that each package states. Timbre itself is Apache-2.0. None of these
asks for more than to be named, but for those under the MPL and the LGPL, which ask that changes
to their own files be shared: Timbre uses them as they are. PyTorch for GPUs also brings NVIDIA's
libraries, under NVIDIA's own terms; they are downloaded by whoever installs them and are not
passed on here.

The models are not part of this: Qwen3-TTS is Apache-2.0, and so is what is embedded.

`python .ci/licences.py > docs/licences.md` made this page; `tests/test_licences.py` holds it to
what is installed.

| package | licence |
|---|---|
"""
# What a package's own words leave out: the library that its wheels carry inside.
INSIDE = {"av": "LGPL-3.0-or-later", "soundfile": "LGPL-2.1-or-later"}
SHORT = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache": "Apache-2.0",
    "BSD": "BSD",
    "BSD License": "BSD",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.1-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}


def packages(requirements: Path) -> dict[str, Distribution]:
    """All that is installed because of these lines, by name."""
    lines = requirements.read_text("utf-8").splitlines()
    wanted = [line.partition("#")[0].strip() for line in lines if line[:1] not in ("", "#", "-")]
    found: dict[str, Distribution] = {}
    waiting = [Requirement(line) for line in wanted]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or not _needed(requirement):
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # for another system
        waiting += [Requirement(each) for each in found[name].requires or ()]
    return dict(sorted(found.items()))


def licence(package: Distribution) -> str:
    """What a package says of its licence, in a few words."""
    said = next(_said(package), "not stated")
    inside = INSIDE.get(canonicalize_name(package.metadata["Name"]))
    return f"{said} AND {inside}" if inside else said


def _said(package: Distribution) -> Iterator[str]:
    told = package.metadata
    if told.get("License-Expression"):
        yield told["License-Expression"]
    classes = told.get_all("Classifier") or []
    named = [each.rpartition(" :: ")[2] for each in classes if each.startswith("License :: ")]
    named = [each for each in named if each != "OSI Approved"]
    if named:
        yield " AND ".join(sorted({SHORT.get(each, each) for each in named}))
    line = (told.get("License") or "").strip().splitlines()[:1]
    if line and len(line[0]) < 60:
        yield SHORT.get(line[0], line[0])


def _needed(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def page() -> str:
    found = packages(ROOT / "requirements.txt")
    rows = (f"| {name} | {_cell(licence(own))} |\n" for name, own in found.items())
    return HEAD + "".join(rows)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("|", "/"))


if __name__ == "__main__":
    sys.stdout.write(page())
