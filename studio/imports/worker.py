"""Parses one file, in a process of its own with bounds on memory, time and files.

    python -I worker.py < limits, a line; task > a line, then the result, packed  (all JSON)

The kernel enforces the bounds, whatever the parser does: memory, CPU time, the size of what is
written, an alarm for the time on the wall, a low priority, and the end with the process that
started it. Run as a script: nothing is imported before the bounds are set.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

NICENESS = 10
PR_SET_PDEATHSIG = 1  # of Linux
MEBIBYTE = 1 << 20
MOST_HANDLES = 64


def main() -> None:
    source = sys.stdin.buffer
    limits = json.loads(source.readline())
    _bound(limits)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.path += limits.get("path", [])  # where the server has its libraries, last
    head: dict[str, Any] = {"done": True}
    try:
        body = _done(json.loads(source.read()))
    except MemoryError:
        head, body = {"failed": "memory"}, b""
    except RecursionError:
        head, body = {"failed": "damaged"}, b""
    except OSError as error:
        head, body = {"failed": "files", "errno": error.errno}, b""
    except Exception as error:
        head, body = _refusal(error), b""
    with os.fdopen(1, "wb", closefd=False) as out:
        out.write(json.dumps(head).encode() + b"\n")
        out.write(body)
        out.flush()
    os._exit(0)  # what was built needs no taking apart


def _done(task: dict[str, Any]) -> bytes:
    if "music" in task:
        from studio.imports.music_file import read_music

        with Path(task["path"]).open("rb") as file:
            read_music(file, Path(task["music"]))
        return b""
    from studio.imports.projects.packed import packed_imported, packed_script

    if "text" in task:
        from studio.scripts.text.passages import SpeechOptions
        from studio.scripts.text.typed import script_of_text

        options = SpeechOptions.model_validate(task["options"])
        return packed_script(script_of_text(task["text"], options, task["speakers"], task["moods"]))
    path = Path(task["path"])
    with path.open("rb") as file:
        if "folder" in task:
            from studio.imports.projects.project_reader import read_project

            return read_project(file, Path(task["folder"]))
        from studio.imports.reader import imported

        return packed_imported(imported(path.name, file))


def _refusal(error: Exception) -> dict[str, Any]:
    """The reader's refusal; any other error is a damaged file, or a fault of the reader."""
    with suppress(ImportError):  # where a library is missing, `error` says so
        from engine import RequestError

        if isinstance(error, RequestError):
            return {"refused": error.message.stored}
    place = traceback.extract_tb(error.__traceback__)[-1]
    kind = type(error).__name__
    return {"failed": "damaged", "fault": f"{kind} at {Path(place.filename).name}:{place.lineno}"}


def _bound(limits: dict[str, Any]) -> None:
    """Set the limits that this system has; those that it lacks, its caller sets by the clock."""
    with suppress(AttributeError, OSError):
        os.nice(NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # the first to go
    with suppress(Exception):
        _end_with(limits["parent"])
    with suppress(AttributeError):
        signal.alarm(limits["seconds"])
    with suppress(ImportError):
        _limit(limits)


def _limit(limits: dict[str, Any]) -> None:
    import resource  # not on Windows

    memory = limits["megabytes"] * MEBIBYTE
    bounds = {
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_AS: memory + 512 * MEBIBYTE,  # libraries, mapped from their files
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NOFILE: MOST_HANDLES,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in bounds.items():
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    seconds = limits["cpu_seconds"]
    with suppress(ValueError, OSError):  # first SIGXCPU, which tells why, and then SIGKILL
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def _end_with(parent: int) -> None:
    """Be killed when the process that started this one ends, however it does (Linux)."""
    if sys.platform == "win32":  # a virtual environment's python.exe lies between the two
        return
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


if __name__ == "__main__":
    main()
