"""The processes of a Ray cluster that this process has started, by what they are."""

from __future__ import annotations

import os
from pathlib import Path

SPEECH = "ray::ServeReplica:timbre-speech"
FRONT = "ray::ServeReplica:timbre-studio"
PROXY = "ray::ProxyActor"
HAPROXY = "haproxy"
CONTROLLER = "ray::ServeController"


def processes(title: str) -> list[int]:
    """Ids of descendants whose title begins so."""
    return [number for number in _descendants(os.getpid()) if _title(number).startswith(title)]


def cpu_seconds(number: int) -> float:
    """User and system time that a process has used."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _title(number: int) -> str:
    """The command line, with the program's name alone."""
    try:
        line = Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
    program, _, rest = line.partition(" ")
    return f"{program.rpartition('/')[2]} {rest}"


def _descendants(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = place.read_text().split(" (", 1)
            parent = int(rest.rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        parents.setdefault(parent, []).append(int(number))
    found, left = [], [root]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found
