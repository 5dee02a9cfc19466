"""A process that saves voices, takes and scripts, and dies in the middle of it.

    python -m tests.chaos.saver FOLDER KILLS SEED

Each round forks a writer that tells of everything as soon as its saving has returned, kills it
with SIGKILL after a random time, and opens what is on the disk. Prints one line of figures.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from engine import PARTIAL_SUFFIX, Clone, Library
from studio.scripts import Casting, Project, Projects, script_of_text
from studio.takes.take_store import Takes

LONGEST = 0.06  # seconds until the kill; one save takes about a thousandth


class Stores:
    """Everything that is kept, and what can be done with it."""

    def __init__(self, folder: Path) -> None:
        self.library = Library(folder / "voices")
        self.takes = Takes(folder / "takes")
        self.projects = Projects(folder / "scripts")

    def voice(self, number: int) -> str:
        vector = np.full(64, number + 1, np.float32)
        codes = np.full((20, 16), number % 2048, np.int64)
        return self.library.save(f"voice {number}", Clone(vector, "what was said", codes)).id

    def rename(self, number: int) -> str:
        self.library.rename("edited", f"name {number}")
        return ""

    def take(self, number: int) -> str:
        return self.takes.add(sound(number), str(number), "ryan", number).id

    def star(self, number: int) -> str:
        """Every change of a take's card writes it anew."""
        take = min(self.takes.search(voice="first"), key=lambda each: each.created)
        self.takes.star(take.id, number % 2 == 0)
        return ""

    def script(self, number: int) -> str:
        return self.projects.create(project(number))

    def edit(self, number: int) -> str:
        self.projects.save(first_script(self.projects), project(number))
        return ""

    def line(self, number: int) -> str:
        self.projects.sounds(first_script(self.projects)).keep(f"line-{number}", sound(number))
        return ""

    @property
    def actions(self) -> dict[str, Callable[[int], str]]:
        every = (self.voice, self.rename, self.take, self.star, self.script, self.edit, self.line)
        return {action.__name__: action for action in every}


def sound(number: int) -> np.ndarray:
    return np.full(4_800, number % 30_000, np.int16)


def project(number: int) -> Project:
    script = script_of_text(f"Line {number} of the script. " * 40)
    return Project(title=f"title {number}", script=script, casting=Casting(default="ryan"))


def first_script(projects: Projects) -> str:
    return min(projects.listed(), key=lambda each: each.created).id


def prepare(folder: Path) -> None:
    """Save what the writer will change."""
    stores = Stores(folder)
    stores.library.save("edited", Clone(np.ones(64, np.float32)))
    stores.takes.add(sound(0), "kept", "first", 0)
    stores.projects.create(project(0))


def write(folder: Path, seed: int, reported: int) -> None:
    """Save and tell, until killed."""
    stores, chosen = Stores(folder), random.Random(seed)
    for number in range(1, 1_000_000):
        name = chosen.choice(list(stores.actions))
        os.write(reported, json.dumps(["begun", name, number]).encode() + b"\n")
        kept = stores.actions[name](number)
        os.write(reported, json.dumps(["done", name, number, kept]).encode() + b"\n")


def round_of(folder: Path, seed: int) -> list[list[object]]:
    """Run one writer until it is killed; returns what it reported as saved."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        write(folder, seed, writer)
        os._exit(0)
    os.close(writer)
    spoken = b""
    while b'["done"' not in spoken:  # it is at work, however slow the machine is
        spoken += os.read(reader, 1 << 16)
    time.sleep(random.Random(seed).uniform(0, LONGEST))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as rest:
        lines = (spoken + rest.read()).splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def check(folder: Path, reported: list[list[object]]) -> int:
    """Everything reported as saved is complete; besides, only what was being saved may be there."""
    stores, done = Stores(folder), [line for line in reported if line[0] == "done"]
    begun = {(line[1], line[2]) for line in reported if line[0] == "begun"}
    assert not stores.library.damaged(), stores.library.damaged()
    assert not stores.takes.damaged(), stores.takes.damaged()
    assert not stores.projects.damaged(), stores.projects.damaged()
    for _, name, number, kept in done:
        there(stores, str(name), int(str(number)), str(kept))
    for voice in stores.library.list():
        assert voice.name.startswith(("voice", "name", "edited")), voice.name
    for take in stores.takes.search():
        assert take.seed == 0 or ("take", take.seed) in begun
        np.testing.assert_array_equal(stores.takes.pcm(take.id), sound(take.seed))
    latest(stores, done, begun)
    return len(done)


def there(stores: Stores, name: str, number: int, kept: str) -> None:
    if name == "voice":
        voice = stores.library.get(kept).voice
        assert isinstance(voice, Clone)
        assert voice.codes is not None
        assert set(voice.vector) == {number + 1}
    if name == "take":
        np.testing.assert_array_equal(stores.takes.pcm(kept), sound(number))
    if name == "script":
        assert stores.projects.open(kept).title == f"title {number}"
    if name == "line":
        kept_sound = stores.projects.sounds(first_script(stores.projects)).read(f"line-{number}")
        np.testing.assert_array_equal(kept_sound, sound(number))


def latest(stores: Stores, done: list[list[object]], begun: set[tuple[object, object]]) -> None:
    """A file that is replaced again and again has its last reported content, or the next one."""
    shown = {
        "rename": stores.library.get("edited").name.removeprefix("name "),
        "edit": stores.projects.open(first_script(stores.projects)).title.removeprefix("title "),
    }
    for name, number in shown.items():
        lines = max((int(str(line[2])) for line in done if line[1] == name), default=0)
        wanted = {each[1] for each in begun if each[0] == name and int(str(each[1])) > lines}
        first = {"edited"} if lines == 0 else set()
        assert number in {str(lines), *map(str, wanted), *first}, (name, number, lines)


def left_over(folder: Path) -> int:
    """Unfinished files, which no list shows."""
    return sum(1 for _ in folder.rglob(f".*{PARTIAL_SUFFIX}"))


def main(folder: Path, kills: int, seed: int) -> None:
    figures: Counter[str] = Counter(kills=kills)
    for number in range(kills):
        place = folder / str(number)
        prepare(place)
        written = round_of(place, seed + number)
        figures["saved"] += check(place, written)
        figures["in the middle"] += written[-1][0] == "begun"
        figures["left over"] += left_over(place)
        with suppress(OSError):
            shutil.rmtree(place)
    print(json.dumps(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
