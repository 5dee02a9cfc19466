"""Compiles the CPU kernels of the embedded model, which numba keeps for all other processes.

python -m tests.support.compile_kernels
"""

from __future__ import annotations

from bench import MINI
from engine import Preset, SpeechRequest, open_engine


def main() -> None:
    for weights in ("auto", "8bit", "4bit"):
        with open_engine([MINI], "cpu", weights=weights, max_num_seqs=4) as engine:
            engine.submit(SpeechRequest("Hi.", Preset("clara"))).collect()


if __name__ == "__main__":
    main()
