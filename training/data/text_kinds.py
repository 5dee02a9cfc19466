"""Texts as they are also written: fragments, capitals, dashes, letters one by one.

A long text is cut at joints, so its pieces begin in lower case and end in a comma, a colon or
nothing; people write capitals and dashes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from string import ascii_uppercase

SHARE = 0.3  # of the texts
ENDINGS = (",", ",", ",", ":", ";", "", " –", ".", ".")
DASHES = (" – ", " — ", "—", " - ")
AROUND = (
    "The {} called again this morning.", "She works for the {}.", "It says {} on the label.",
    "That is spelt {}.", "My {} is broken.", "The letters are {}.", "Have you asked the {}?",
    "Turn left at the {} building.", "{}.", "The new {} costs more than the old one.",
)  # fmt: skip
FEWEST = 4  # words of a text that is cut


def fragment(text: str, random: Random) -> str:
    """A piece of a sentence, as it stands between two joints."""
    words = text.rstrip(".!?…\"'”’").split()
    if len(words) < FEWEST:
        return text
    first = random.choice((0, 0, random.randrange(1, len(words) - 1)))
    last = len(words) if first else random.randrange(2, len(words))
    piece = " ".join(words[first:last]).strip(",;:–— ")
    if first == 0 and random.random() < 0.5:
        piece = piece[0].lower() + piece[1:]
    return piece + random.choice(ENDINGS)


def capitals(text: str, random: Random) -> str:
    """All of it, or one word, in capitals."""
    if random.random() < 0.5:
        return text.upper()
    words = text.split()
    at = random.randrange(len(words))
    return " ".join([*words[:at], words[at].upper(), *words[at + 1 :]])


def titled(text: str, random: Random) -> str:
    """Some words begin with a capital, as names and titles do."""
    share = random.choice((0.2, 0.2, 0.4, 1.0))
    words = [
        word[0].upper() + word[1:] if random.random() < share else word for word in text.split()
    ]
    return " ".join(words)


def dashes(text: str, random: Random) -> str:
    """A dash where a comma was."""
    if ", " not in text:
        return f"– {text}"
    return text.replace(", ", random.choice(DASHES), random.choice((1, 1, 2)))


def letters(text: str, random: Random) -> str:
    """Letters one by one, as what is written short is spelt out."""
    spelt = " ".join(random.choices(ascii_uppercase, k=random.randint(2, 4)))
    return random.choice(AROUND).format(spelt)


KINDS: tuple[Callable[[str, Random], str], ...] = (
    fragment, fragment, fragment, capitals, titled, titled, dashes, letters,
)  # fmt: skip


def as_written(text: str, random: Random) -> str:
    """A text as it is, or in another kind."""
    return random.choice(KINDS)(text, random) if random.random() < SHARE else text
