"""Compiles Triton's kernels in processes: its compiler holds Python's lock, so threads hardly help.

A kernel is told to a process in the words in which Triton tells it to its hooks. What a process
compiles lies in Triton's folder, where this one finds it; what it could not compile this one
compiles itself. Knows no kernels.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from engine.worker.device import usable_cores

DONE = "compiled"  # a process's answer; any other: that could not be done
MOST = 8  # processes; each takes half a second to start
BOOT = (
    "import sys; sys.path[:] = {path!r}; "
    "from {package}.compiler_process import main; main({target!r}, {done!r})"
)

log = logging.getLogger("timbre")


class Job(NamedTuple):
    """A kernel to compile."""

    module: str
    name: str
    described: str  # its types and sizes, as Triton's hooks are told


class _Kept(Exception):
    """The first kernel was there."""


_noting = threading.Lock()  # Triton has one hook for all threads


def compile_missing(work: Callable[[], object]) -> bool:
    """Compile the kernels that `work` would launch, unless the first of them is kept. That one is
    left to its first launch, so it is kept once the others are, even if a start is cut off. Returns
    whether the others are there."""
    try:
        with _noting, _noted() as jobs:
            work()
    except _Kept:
        return True
    except (AttributeError, ImportError):  # other versions of Triton have no such hooks
        return False
    return compile_elsewhere(job for job in jobs if job != jobs[0])


@contextmanager
def _noted() -> Iterator[list[Job]]:
    """This thread's launches are noted, and nothing is compiled."""
    import triton

    jobs: list[Job] = []
    here = threading.get_ident()

    def hook(*, fn: Any, compile: dict[str, Any], **_: object) -> bool:
        if threading.get_ident() != here:  # a step that is heard
            return False
        described = compile["specialization_data"]
        if not jobs and _is_kept(fn.jit_function, described):
            raise _Kept
        jobs.append(Job(fn.module, fn.name, described))
        return True

    runtime: Any = triton.knobs.runtime
    before, runtime.jit_cache_hook = runtime.jit_cache_hook, hook
    try:
        yield jobs
    finally:
        runtime.jit_cache_hook = before


def _is_kept(kernel: Any, described: str) -> bool:
    """False also where a version of Triton cannot be asked."""
    import triton

    from engine.worker.kernels.triton.compiler_process import is_kept

    target = triton.runtime.driver.active.get_current_target()
    try:
        return is_kept(kernel, described, target)
    except Exception as error:  # the same will come of a launch, if it is the kernel's fault
        log.debug("Triton cannot be asked what is kept: %s.", error)
        return False


def compile_elsewhere(jobs: Iterable[Job]) -> bool:
    """Have jobs done by some processes; whether all were done."""
    import triton

    waiting = deque(dict.fromkeys(jobs))
    if not waiting:
        return True
    target = triton.runtime.driver.active.get_current_target()
    named = target.backend, target.arch, target.warp_size
    return employ(BOOT.format(path=sys.path, package=__package__, target=named, done=DONE), waiting)


def employ(code: str, waiting: deque[Job]) -> bool:
    """Processes that run this code take jobs until none waits; whether all were done."""
    if getattr(sys, "frozen", False):  # a program that brings its Python: it would start once more
        return False
    count, jobs = min(MOST, usable_cores(), len(waiting)), len(waiting)
    try:
        with ThreadPoolExecutor(count, "triton") as pool:
            done = [pool.submit(_employ_one, code, waiting) for _ in range(count)]
    except BaseException:
        waiting.clear()  # the program ends when the pool's threads do
        raise
    return sum(each.result() for each in done) == jobs


def _employ_one(code: str, waiting: deque[Job]) -> int:
    """One process, until no job waits or it has ended; how many jobs it has done."""
    done = 0
    command = [sys.executable or "", "-c", code]  # a program that embeds Python may have none
    with (
        suppress(IndexError, OSError),  # no job waits; the process has ended, or could not begin
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for this process, whose end it notices
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        while True:
            print(json.dumps(waiting.popleft()), file=process.stdin, flush=True)
            answer = process.stdout.readline()
            if not answer:
                break
            done += answer.strip() == DONE
    return done
