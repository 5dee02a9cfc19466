"""A server on a fake engine that drains: the port is the first line it prints.

python -m tests.chaos.server FOLDER GRACE SECONDS-A-STEP
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine import EngineSettings, Library
from engine.testing import Costs, FakeEngine
from studio.api import create_api
from studio.server.serving import listen, serve


def main(folder: str, grace: str, step: str) -> None:
    settings, costs = EngineSettings(max_num_seqs=4), Costs(step=float(step))
    with FakeEngine(settings=settings, costs=costs) as engine:
        application = create_api(engine, Library(Path(folder) / "voices"))
        address = listen("127.0.0.1", 0)
        print(address.getsockname()[1], flush=True)
        serve(application, address, engine.drain, grace=float(grace))
    print("closed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
