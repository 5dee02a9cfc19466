"""Makes what first starts of the embedded model keep: compiled kernels, and the rest in CACHE.

python -m tests.support.compile_kernels
"""

from __future__ import annotations

from bench import MINI
from engine import Preset, SpeechRequest, open_engine
from engine.atomic import exclusive
from tests.support.programs import CACHE


def main() -> None:
    CACHE.mkdir(mode=0o700, parents=True, exist_ok=True)
    for weights in ("auto", "8bit", "4bit"):
        # first starts of servers that are tested meanwhile wait, and find it done
        with (
            exclusive(CACHE),
            open_engine([MINI], "cpu", weights=weights, cache=CACHE, max_num_seqs=4) as engine,
        ):
            engine.submit(SpeechRequest("Hi.", Preset("clara"))).collect()


if __name__ == "__main__":
    main()
