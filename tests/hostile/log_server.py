"""Page and API for guests on a fake engine, until standard input is closed; its log is stderr.

python -m tests.hostile.log_server FOLDER prints its port first.
"""

from __future__ import annotations

import sys
import threading
import warnings
from pathlib import Path

from engine.testing import Costs, FakeEngine
from studio.server import serving
from studio.settings import StudioSettings
from tests.support.guest_visit import application_of

STEP = 0.03  # seconds for 80 ms of speech


def main(folder: str) -> None:
    with FakeEngine(costs=Costs(step=STEP)) as engine:
        application = application_of(StudioSettings(data=Path(folder), guests=True), engine)

        @application.get("/v1/fault/{words}")
        def fault(words: str) -> None:
            """What a fault of this program may do with what a visitor has sent."""
            warnings.warn(f"{words} is odd", stacklevel=1)
            print(words)
            threading.Thread(target=int, args=(words,)).start()
            raise KeyError(words)

        application.router.routes.insert(0, application.router.routes.pop())
        address = serving.listen("127.0.0.1", 0)
        print(address.getsockname()[1], flush=True)
        ended = threading.Thread(target=sys.stdin.read, daemon=True)
        ended.start()
        threading.Thread(target=serving.serve, args=(application, address), daemon=True).start()
        ended.join()


if __name__ == "__main__":
    main(sys.argv[1])
