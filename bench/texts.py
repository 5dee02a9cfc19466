"""What is spoken in a measurement: the same sentences and lengths for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from engine import SpeechRequest, Voice

SENTENCES = Path(__file__).with_name("sentences.txt").read_text().splitlines()


@dataclass(frozen=True)
class Work:
    """A stream of requests: one or two sentences each, between `shortest` and `longest` frames.

    With `fixed_length` the end of speech is never sampled, so that random weights and trained
    ones do the same amount of work.
    """

    voice: Voice
    shortest: int = 25
    longest: int = 90
    fixed_length: bool = True
    seed: int = 7

    def requests(self, count: int) -> list[SpeechRequest]:
        random_ = random.Random(self.seed)
        return [self._request(random_) for _ in range(count)]

    def _request(self, random_: random.Random) -> SpeechRequest:
        frames = random_.randint(self.shortest, self.longest)
        text = " ".join(random_.sample(SENTENCES, random_.randint(1, 2)))
        return SpeechRequest(
            text=text,
            voice=self.voice,
            seed=random_.randrange(2**31),
            max_frames=frames if self.fixed_length else None,
            ignore_end=self.fixed_length,
        )
