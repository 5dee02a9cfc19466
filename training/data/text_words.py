"""Sentences about any word of the dictionary, so that each is heard a few times.

Prose has most words never or once; here two to four of a sentence's words are drawn from all there
are, each where its part of speech may stand. What they mean is nonsense, how they are said is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from training.data.text_conversation import with_capitals
from training.data.text_templates import LATER, PEOPLE, PLACES

PATTERNS = (
    "The {noun} {past} the {adj} {noun}.",
    "The {noun} {past} a {adj} {noun} {later}.",
    "Some of the {adj} {nouns} in the {noun} were {adj}.",
    "Nothing {third} a {adj} {noun} like a {adj} {noun}.",
    "{person} kept a {adj} {noun} beside the {noun}.",
    "{person} told us about the {noun} and its {nouns}.",
    "Have you ever seen such {adj} {nouns}?",
    "Why is the {noun} so {adj}?",
    "Where did {person} {verb} the {nouns}?",
    "They were {ing} {adverb} near the {noun}.",
    "We {past} the {nouns} and the {noun} {later}.",
    "Please {verb} the {noun} {adverb}.",
    "Would you {verb} a {noun} or a {adj} {noun}?",
    "The {nouns} {past} {adverb}, and the {noun} was {adj}.",
    "Is that a {noun}, a {noun} or a {adj} {noun}?",
    "{ing} the {nouns} is not the same as {ing} a {noun}.",
    "How {adj}! A {noun} and two {nouns}!",
    "It was too {adj} to {verb} the {noun}.",
    "{person} never {third} {adverb} without a {noun}.",
    "There is a {noun} in the {noun}, between {nouns} and {nouns}.",
    "If the {noun} {third}, {verb} the {nouns}.",
    "Every {noun} needs a {noun}.",
    "No {noun}, no {nouns}, and nothing {adj}.",
    "{adverb}, the {noun} {past} {place}.",
    "A {adj} {noun} {third} {nouns}; a {adj} one does not.",
    "They sell {nouns}, {nouns} and {adj} {nouns} at {place}.",
    "{person} {past} {adverb}, {past} the {noun} and went home.",
    "The {noun} of the {noun} looked {adj} {later}.",
    "She was {adj} and {adj}, but never {adj}.",
    "He is {ing}, not {ing}.",
    "I would rather {verb} than {verb} a {noun}.",
    "What does {any} mean?",
    "How do you spell {any}?",
    "Did you say {any} or {any}?",
    "The next word is {any}, and then comes {any}.",
)
COMMON: dict[str, Sequence[str]] = {"person": PEOPLE, "later": LATER, "place": PLACES}
# Which inflected forms are made of a verb, by their ends.
_ENDS = {"third": "s", "past": "ed", "ing": "ing"}


def word_classes(words: Iterable[str], lemmas: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """Words by what they can be: `lemmas` are WordNet's, by its names of the parts of speech."""
    noun, verb, adj, adverb = (lemmas.get(name, set()) for name in ("noun", "verb", "adj", "adv"))
    found: dict[str, list[str]] = {name: [] for name in ("noun", "nouns", "verb", "adj", "adverb")}
    found |= {name: [] for name in _ENDS} | {"any": []}
    for word in words:
        if not word.islower():
            continue
        can = {"noun": word in noun, "verb": word in verb, "adj": word in adj}
        can |= {"adverb": word in adverb, "nouns": bool(stems(word, "s") & noun)}
        can |= {name: bool(stems(word, end) & verb) for name, end in _ENDS.items()}
        if can["nouns"] or can["past"] or can["ing"] or can["third"]:
            can["noun"] = can["verb"] = False  # "glasses" too: a plural stands where plurals do
        for name in (name for name, is_so in can.items() if is_so):
            found[name].append(word)
        if not any(can.values()):
            found["any"].append(word)
    return found


def stems(word: str, end: str) -> set[str]:
    """What the word may be a form of, by this end: "tried" of "try", "trie" and "tri"."""
    if not word.endswith(end) or word.endswith("ss"):
        return set()
    bare = word[: -len(end)]
    found = {bare, bare + "e"}
    if end == "s":
        found = {bare, bare.removesuffix("e"), bare.removesuffix("ie") + "y" * bare.endswith("ie")}
    elif end == "ed" and bare.endswith("i"):
        found.add(bare[:-1] + "y")
    if len(bare) > 2 and bare[-1] == bare[-2]:
        found.add(bare[:-1])
    return found - {""}


def wordnet_lemmas(root: Path) -> dict[str, set[str]]:
    """WordNet's words by part of speech."""
    found = {}
    for path in sorted((root / "usr/share/wordnet").glob("index.*")):
        lines = path.read_text("utf-8", "ignore").splitlines()
        found[path.suffix[1:]] = {line.split(" ")[0] for line in lines if not line.startswith(" ")}
    return found


def sentence(random: Random, classes: Mapping[str, Sequence[str]]) -> str:
    """A pattern filled from the classes, with a capital; an empty class is one of all words."""

    def fill(match: re.Match[str]) -> str:
        known = COMMON.get(match[1]) or classes.get(match[1])
        return random.choice(known or [word for each in classes.values() for word in each])

    filled = re.sub(r"{([a-z]+)}", fill, random.choice(PATTERNS))
    return with_capitals(re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", filled))
