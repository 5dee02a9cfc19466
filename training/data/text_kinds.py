"""Texts as they are also written: fragments, capitals, dashes, letters one by one.

Each is what is written, and what a reader says of it. A long text is cut at joints, so its pieces
begin in lower case and end in a comma, a colon or nothing; people write capitals and dashes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

SHARE = 0.3  # of the texts
ENDINGS = (",", ",", ",", ":", ";", "", " –", ".", ".")
DASHES = (" – ", " — ", "—", " - ")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
AROUND = (
    "The {} called again this morning.", "She works for the {}.", "It says {} on the label.",
    "That is spelt {}.", "My {} is broken.", "The letters are {}.", "Have you asked the {}?",
    "Turn left at the {} building.", "{}.", "The new {} costs more than the old one.",
)  # fmt: skip
FEWEST = 4  # words of a text that is cut


def fragment(text: str, random: Random) -> tuple[str, str]:
    """A piece of a sentence, as it stands between two joints."""
    words = text.rstrip(".!?…\"'”’").split()
    if len(words) < FEWEST:
        return text, text
    first = random.choice((0, 0, random.randrange(1, len(words) - 1)))
    last = len(words) if first else random.randrange(2, len(words))
    piece = " ".join(words[first:last]).strip(",;:–— ")
    if first == 0 and random.random() < 0.5:
        piece = piece[0].lower() + piece[1:]
    written = piece + random.choice(ENDINGS)
    return written, written.replace(" –", ",")


def capitals(text: str, random: Random) -> tuple[str, str]:
    """All of it, or one word, in capitals; said as if it were not."""
    if random.random() < 0.5:
        return text.upper(), text
    words = text.split()
    at = random.randrange(len(words))
    return " ".join([*words[:at], words[at].upper(), *words[at + 1 :]]), text


def titled(text: str, random: Random) -> tuple[str, str]:
    """Some words begin with a capital, as names and titles do; said as if they did not."""
    share = random.choice((0.2, 0.2, 0.4, 1.0))
    words = [
        word[0].upper() + word[1:] if random.random() < share else word for word in text.split()
    ]
    return " ".join(words), text


def dashes(text: str, random: Random) -> tuple[str, str]:
    """A dash where a comma was, said as that."""
    if ", " not in text:
        return f"– {text}", text
    return text.replace(", ", random.choice(DASHES), random.choice((1, 1, 2))), text


def letters(text: str, random: Random) -> tuple[str, str]:
    """Letters one by one, as what is written short is spelt out."""
    spelt = " ".join(random.choices(LETTERS, k=random.randint(2, 4)))
    written = random.choice(AROUND).format(spelt)
    return written, written


KINDS: tuple[Callable[[str, Random], tuple[str, str]], ...] = (
    fragment, fragment, fragment, capitals, titled, titled, dashes, letters,
)  # fmt: skip


def as_written(text: str, random: Random) -> tuple[str, str]:
    """A text as it is, or in another kind: what is written and what is said."""
    return random.choice(KINDS)(text, random) if random.random() < SHARE else (text, text)
