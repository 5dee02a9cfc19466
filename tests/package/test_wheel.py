"""The wheel as somebody has it who installs it: beside another package called engine, from a folder
of his own, with nothing of the checkout in sight."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEGABYTES = 60
# Imported where their libraries are installed: GPUs, Ray, Spaces.
ELSEWHERE = {"triton", "ray", "cuda", "spaces"}
# The README's example, where `engine` is somebody else's; then everything else is imported.
SPEAK = f"""
import importlib, pkgutil, sys
import engine
from timbre import Preset, SpeechRequest, open_engine

with open_engine(weights="full", max_num_seqs=1) as ours:
    with ours.submit(SpeechRequest("Good morning.", Preset("robert"))) as stream:
        samples = sum(len(chunk.pcm) for chunk in stream)

import timbre
for each in pkgutil.walk_packages(timbre.__path__, "timbre."):
    if each.name == "timbre.__main__" or each.name.endswith("_worker"):
        continue
    try:
        importlib.import_module(each.name)
    except ModuleNotFoundError as error:
        assert error.name.partition(".")[0] in {ELSEWHERE}, error
tops = [name.partition(".")[0] for name in sys.modules]
assert not set(tops) & {{"app", "studio", "presets"}}
print(engine.STEAM, samples, timbre.__version__, tops.count("timbre"), tops.count("engine"))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ["hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run([sys.executable, "-m", *build], cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


class Installed:
    """An environment with the wheel, another `engine`, and this environment's libraries."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        base = folder / "environment"
        # The interpreter of this environment, so that both have the same libraries.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base)], check=True)
        self.bin = base / ("Scripts" if os.name == "nt" else "bin")
        self.home = folder / "somewhere else"
        self.home.mkdir()
        paths = sysconfig.get_paths(scheme="venv", vars={"base": str(base), "platbase": str(base)})
        self.packages = Path(paths["purelib"])
        pip = ["pip", "--python", str(self.bin / "python"), "install", "-q", "--no-index"]
        command = [sys.executable, "-m", *pip, "--no-deps", str(wheel)]
        subprocess.run(command, check=True, capture_output=True)
        self.named = {each.name for each in self.packages.iterdir()}
        (self.packages / "libraries.pth").write_text(sysconfig.get_paths()["purelib"])
        (self.packages / "engine.py").write_text("STEAM = 'steam'\n")

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        kept: Mapping[str, str] = os.environ
        clean = {name: value for name, value in kept.items() if not name.startswith("TIMBRE_")}
        clean = {
            **clean,
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            **more,
        }
        clean.pop("PYTHONPATH", None)
        name, *rest = command
        return subprocess.run(
            [str(self.bin / name), *rest], cwd=self.home, env=clean,
            capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(wheel, tmp_path_factory.mktemp("installed"))


def test_the_wheel_is_one_package_with_its_weights(wheel: Path):
    assert wheel.stat().st_size < MEGABYTES * 1e6
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"timbre"}
    assert {"timbre/py.typed", "timbre/presets/mini/model.safetensors"} <= set(names)
    assert not [name for name in names if "/testing/" in name or name.endswith(".pyc")]


def test_one_name_is_taken_in_site_packages(installed: Installed):
    assert {name for name in installed.named if ".dist-info" not in name} == {"timbre"}


def test_no_module_names_one_at_the_top_level(wheel: Path):
    """Counted by another reading of the files than that of the build."""
    ours = {"app", "engine", "studio", "presets", "bench", "training", "tests"}
    count = 0
    archive = zipfile.ZipFile(wheel)
    for path in (name for name in archive.namelist() if name.endswith(".py")):
        for node in ast.walk(ast.parse(archive.read(path))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not {name.partition(".")[0] for name in names} & ours, path
            count += sum(name.startswith("timbre.") for name in names)
    assert count > 1000


def test_it_speaks_from_another_folder_beside_another_engine(installed: Installed):
    done = installed.run("python", "-c", SPEAK)
    assert done.returncode == 0, done.stderr
    steam, samples, version, ours, theirs = done.stdout.split()
    assert (steam, version) == ("steam", "0.1.0")
    assert int(samples) > 12_000  # half a second
    assert int(ours) > 200
    assert int(theirs) == 1


def test_kernels_are_kept_where_pip_leaves_nothing_behind(installed: Installed):
    code = (
        "from timbre.engine.worker.kernels.cpu.tiles import product; import numba\n"
        "print(product._cache.cache_path, repr(numba.config.CACHE_DIR))"
    )
    done = installed.run("python", "-c", code)
    folder, of_others = done.stdout.rsplit(maxsplit=1)
    assert Path(folder).is_relative_to(installed.home / "cache" / "timbre" / "kernels")
    assert of_others == "''"
    assert str(Path(folder).parent) in installed.run("timbre", "info").stdout


def test_the_command_is_there(installed: Installed):
    done = installed.run("timbre", "voices")
    assert done.returncode == 0, done.stderr
    assert "robert" in done.stdout
    assert "timbre settings" in installed.run("timbre", "--help").stdout
