"""python -m training.voice FOLDER [--transcriber MODEL]: runs the training in a job's folder."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from threading import Thread

LOOK = 0.5  # seconds between two looks at the parent


def end_with(parent: int) -> None:
    """End as soon as the process that started this one is gone: files are whole at any time.

    Not on Windows, where a virtual environment's python.exe lies between the two.
    """
    if sys.platform == "win32":
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--transcriber", default="", help="a recogniser that also judges words")
    parser.add_argument("--parent", type=int, default=0, help="a process to end with")
    args = parser.parse_args()
    if args.parent:
        end_with(args.parent)
    from training.voice.run import run

    recognise = None
    if args.transcriber:
        from training.voice.recogniser import open_recogniser

        recognise = open_recogniser(args.transcriber)
    status = run(args.folder, recognise)
    print(status.text, flush=True)
    sys.exit(0 if status.phase in ("done", "refused", "stopped") else 1)


if __name__ == "__main__":
    main()
