"""python -m training.voice FOLDER [--transcriber MODEL]: runs the training in a job's folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from training.voice.run import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--transcriber", default="", help="a recogniser that also judges words")
    args = parser.parse_args()
    recognise = None
    if args.transcriber:
        from training.voice.recogniser import open_recogniser

        recognise = open_recogniser(args.transcriber)
    status = run(args.folder, recognise)
    print(status.text, flush=True)
    sys.exit(0 if status.phase in ("done", "refused", "stopped") else 1)


if __name__ == "__main__":
    main()
