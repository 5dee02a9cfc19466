"""The workload of a measurement: the same sentences, lengths and kinds for the same seed.

A job has a text and a kind of voice; `in_process.py` and `over_http.py` turn it into a request.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

SENTENCES = Path(__file__).with_name("sentences.txt").read_text().splitlines()
Kind = Literal["preset", "vector", "context", "cold", "design"]
TRANSCRIPT = "The night train was late again, and nobody on the platform knew why."
DESCRIPTION = "A calm, clear voice."


@dataclass(frozen=True)
class Job:
    """One request. With `fixed` the end of speech is never sampled."""

    text: str
    frames: int
    seed: int
    kind: Kind = "preset"
    fixed: bool = True


@dataclass(frozen=True)
class Work:
    """Jobs of one or two sentences, between `shortest` and `longest` frames, of mixed kinds.

    With `fixed_length` random weights and trained ones do the same amount of work.
    """

    kinds: tuple[Kind, ...] = ("preset",)
    shortest: int = 25
    longest: int = 90
    fixed_length: bool = True
    seed: int = 7

    def jobs(self, count: int) -> list[Job]:
        return list(islice(self.stream(), count))

    def stream(self) -> Iterator[Job]:
        """Endless jobs."""
        random_ = random.Random(self.seed)
        while True:
            yield self._job(random_)

    def _job(self, random_: random.Random) -> Job:
        frames = random_.randint(self.shortest, self.longest)
        text = " ".join(random_.sample(SENTENCES, random_.randint(1, 2)))
        seed, kind = random_.randrange(2**31), random_.choice(self.kinds)
        return Job(text, frames, seed, kind, self.fixed_length)
