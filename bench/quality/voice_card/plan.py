"""What a model has to say for its card. Knows neither models nor sound.

Six parts: named voices; clones of voices that were held out, and of voices from elsewhere, by
vector and in context; blends; designs; instructions; ends and long texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

TEXTS = Path(__file__).parent / "texts"
PARTS = ("voices", "vector", "context", "blends", "designs", "styles", "ends", "long")
CHOICE = re.compile(r"{([^}]+)}")  # {one|another}
STEPS = 9  # of a blend
BLENDED = 5  # pairs
DESIGNED = 12  # texts, the shortest: a design is heard in two seconds
STYLED = 4  # voices that follow instructions

# Words for the two ends of an axis, and by what a sound is measured along it.
AXES = {
    "pitch": (("low", "low-pitched", "deep-pitched"), ("high", "high-pitched", "rather high")),
    "tone": (("dark", "warm", "mellow"), ("bright", "thin", "sharp")),
    "pace": (("fast", "fast-speaking", "quick"), ("slow", "slow-speaking", "unhurried")),
    "sex": (("man's", "male"), ("woman's", "female")),
}
DESIGNS = ("{} voice, please", "Read this with a {} voice", "What I need is a {} voice")
INSTRUCTIONS = {
    "plain": "",
    "slowly": "Speak slowly.",
    "fast": "Speak fast.",
    "whispering": "Whisper.",
    "cheerful": "Very cheerful.",
    "monotone": "In a monotone.",
}


@dataclass(frozen=True)
class Take:
    """One text to be said by one voice; takes of a group are kept in one file."""

    group: str  # its first part is one of PARTS
    voice: str  # a preset or a reference; two, with a + between them, in a blend
    text: str
    seed: int
    kind: str = ""  # of sentence, of axis, of instruction
    instruct: str = ""
    share: float = 0.0  # of the second voice

    @property
    def part(self) -> str:
        return self.group.split(".")[0]


@dataclass(frozen=True)
class Sizes:
    """How much is said: `sentences` a voice, takes a clone, sentences a step of a blend …"""

    sentences: int = 100
    clones: int = 3
    steps: int = 8
    designs: int = 160
    styles: int = 6
    ends: int = 1000
    long: int = 3


QUICK = Sizes(sentences=20, clones=1, steps=2, designs=24, styles=3, ends=0, long=1)


def sentences() -> list[tuple[str, str]]:
    """Kind and text of a hundred sentences of our own."""
    lines = (TEXTS / "sentences.txt").read_text("utf-8").splitlines()
    return [(kind, text) for kind, _, text in (line.partition("\t") for line in lines)]


def paragraphs() -> list[str]:
    return (TEXTS / "paragraphs.txt").read_text("utf-8").splitlines()


def reference_texts() -> list[str]:
    """The first is what a clone is made from, the others tell the voice apart."""
    return (TEXTS / "references.txt").read_text("utf-8").splitlines()


def endings(count: int) -> list[str]:
    """`count` sentences of all kinds, no two alike."""
    random, found = Random(22), dict[str, None]()
    patterns = (TEXTS / "patterns.txt").read_text("utf-8").splitlines()
    while len(found) < count:
        pattern = random.choice(patterns)
        found[CHOICE.sub(lambda match: random.choice(match[1].split("|")), pattern)] = None
    return list(found)


def named_voices(speakers: Sequence[str], sizes: Sizes) -> Iterator[Take]:
    for voice in speakers:
        for seed, (kind, text) in enumerate(sentences()[: sizes.sentences]):
            yield Take(f"voices.{voice}", voice, text, seed, kind)


def clones(references: Mapping[str, Sequence[str]], sizes: Sizes) -> Iterator[Take]:
    """`references`: voices of each group of recordings."""
    texts = [text for kind, text in sentences() if kind in ("statement", "question")]
    for way in ("vector", "context"):
        for group, voices in references.items():
            for number, voice in enumerate(voices):
                for seed in range(sizes.clones):
                    text = texts[(number * sizes.clones + seed) % len(texts)]
                    yield Take(f"{way}.{group}", voice, text, seed)


def blends(pairs: Sequence[tuple[str, str]], sizes: Sizes) -> Iterator[Take]:
    texts = [text for kind, text in sentences() if kind == "statement"]
    for first, second in pairs:
        for step in range(STEPS):
            for seed, text in enumerate(texts[: sizes.steps]):
                group, share = f"blends.{first}-{second}", step / (STEPS - 1)
                yield Take(group, f"{first}+{second}", text, seed, share=share)


def designs(sizes: Sizes) -> Iterator[Take]:
    """The low end of an axis and then its high end, with the same text and seed."""
    random = Random(1)
    statements = (text for kind, text in sentences() if kind == "statement")
    texts = sorted(statements, key=len)[:DESIGNED]
    for number in range(sizes.designs):
        axis = list(AXES)[number % len(AXES)]
        frame, text = random.choice(DESIGNS), texts[number // len(AXES) % len(texts)]
        for words in AXES[axis]:
            instruct = frame.format(random.choice(words))
            yield Take("designs", "", text, number, axis, instruct)


def styles(speakers: Sequence[str], sizes: Sizes) -> Iterator[Take]:
    texts = [text for kind, text in sentences() if kind == "statement"]
    for voice in spread(speakers, STYLED):
        for kind, instruct in INSTRUCTIONS.items():
            for seed, text in enumerate(texts[: sizes.styles]):
                yield Take("styles", voice, text, seed, kind, instruct)


def ends(speakers: Sequence[str], sizes: Sizes) -> Iterator[Take]:
    """One voice after another: takes of a group are kept together."""
    texts = list(enumerate(endings(sizes.ends)))
    for first, voice in enumerate(speakers):
        for number, text in texts[first :: len(speakers)]:
            yield Take(f"ends.{voice}", voice, text, number)


def long_texts(speakers: Sequence[str], sizes: Sizes) -> Iterator[Take]:
    for number, text in enumerate(paragraphs()[: sizes.long]):
        voice = spread(speakers, sizes.long)[number % len(speakers)]
        yield Take("long", voice, text, number)


def spread(voices: Sequence[str], count: int) -> list[str]:
    """`count` of the voices, from all over the list."""
    count = min(count, len(voices))
    return [voices[number * len(voices) // count] for number in range(count)]


def pairs_by_pitch(pitches: Mapping[str, float]) -> list[tuple[str, str]]:
    """The lowest voice with the highest, the next lowest with the next highest …"""
    order = sorted(pitches, key=lambda voice: pitches[voice])
    return [(order[n], order[-1 - n]) for n in range(min(BLENDED, len(order) // 2))]
