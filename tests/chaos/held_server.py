"""A server that something holds when it should end: the port is the first line it prints.

python -m tests.chaos.held_server FOLDER GRACE HOLD; `holds` has what may hold it.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from engine import EngineSettings, Library
from engine.testing import Costs, FakeEngine
from studio.api import create_api
from studio.server.serving import listen, serve

ASLEEP = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"]


def import_for_ever(started: list[int]) -> None:
    """Begin a thread that is no daemon, like those of executors."""
    threading.Thread(target=time.sleep, args=(600,), name="import").start()


def read_for_ever(started: list[int]) -> None:
    """Hold a thread of the event loop's executor, which the loop waits for."""

    async def begin() -> None:
        asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)

    asyncio.run_coroutine_threadsafe(begin(), LOOP[0])


def stop_child(started: list[int]) -> None:
    """Stop a child process that a thread waits for."""
    child = subprocess.Popen(ASLEEP, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    started.append(child.pid)
    threading.Thread(target=child.wait, name="child").start()


def hold_lock(started: list[int]) -> None:
    """Run compiled code that never gives Python's lock back, once the server drains."""
    WHEN_DRAINING.append(lambda: re.match("(a+)+$", "a" * 60 + "b"))


HOLDS: dict[str, Callable[[list[int]], None]] = {
    "import": import_for_ever,
    "reader": read_for_ever,
    "child": stop_child,
    "lock": hold_lock,
}
LOOP: list[asyncio.AbstractEventLoop] = []
WHEN_DRAINING: list[Callable[[], object]] = []


def main(folder: str, grace: str, hold: str) -> None:
    settings, costs = EngineSettings(max_num_seqs=4), Costs(step=0.03)
    with FakeEngine(settings=settings, costs=costs) as engine:
        application = create_api(engine, Library(Path(folder) / "voices"))

        async def held() -> list[int]:
            LOOP[:] = [asyncio.get_running_loop()]
            started: list[int] = []
            await asyncio.to_thread(HOLDS[hold], started)
            return started

        def drain(seconds: float) -> None:
            for work in WHEN_DRAINING:
                work()
            engine.drain(seconds)

        application.add_api_route("/held", held)
        address = listen("127.0.0.1", 0)
        print(address.getsockname()[1], flush=True)
        serve(application, address, drain, grace=float(grace))


if __name__ == "__main__":
    main(*sys.argv[1:])
