"""The texts: word lists, prose and patterns, with words and sentences held out.

The prose is WordNet's definitions and examples; the words are Debian's wamerican. Words are held
out by a checksum of the word itself, so the split is the same in every run and on every machine.

    python -m training.data.text --root UNPACKED_PACKAGES --out training/runs/corpus.json
"""

from __future__ import annotations

import argparse
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from random import Random

from training.data import text_conversation, text_templates, text_words, text_written

KINDS = (
    ("example", 22),
    ("gloss", 10),
    ("words", 6),
    ("any word", 24),
    ("pattern", 22),
    ("talk", 16),
    ("written", 24),
    ("several", 6),
)
COMMON = 4000  # words this frequent in the prose are never held out
HELD_OUT_SENTENCES = Path(__file__).parent / "heldout.txt"
BENCH = Path(__file__).parents[2] / "bench"
LONGEST = 130  # characters of one sentence


@lru_cache(1)
def unlearned() -> frozenset[str]:
    """Sentences that are never learned: those held out here, and all that the bench says."""
    card = BENCH / "quality/voice_card/texts"
    files = (HELD_OUT_SENTENCES, BENCH / "sentences.txt", card / "references.txt")
    lines = [line for path in files for line in path.read_text("utf-8").splitlines()]
    kinds = (card / "sentences.txt").read_text("utf-8").splitlines()
    kinds += (BENCH / "quality/reading/written.tsv").read_text("utf-8").splitlines()
    paragraphs = re.split(r"(?<=[.?!])\s+", (card / "paragraphs.txt").read_text("utf-8"))
    told = [text for line in kinds for text in line.split("\t")[1:]]
    return frozenset([*lines, *told, *paragraphs])


def _checksum(text: str) -> int:
    return zlib.crc32(text.lower().encode())


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


@dataclass(frozen=True)
class Corpus:
    """All texts to draw from, and the held-out ones."""

    examples: list[str]
    glosses: list[str]
    words: list[str]
    held_sentences: list[str]
    held_words: list[str]
    classes: dict[str, list[str]] = field(default_factory=dict)  # the words by part of speech

    @cached_property
    def names(self) -> list[str]:
        """Words that are only ever written with a capital."""
        lower = {word for word in self.words if word[0].islower()}
        return [word for word in self.words if word[0].isupper() and word.lower() not in lower]

    def draw(self, random: Random) -> str:
        """A text of one sentence or two that are learned from."""
        kind = random.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0]
        if kind == "several":
            kinds = random.choices(("example", "pattern", "talk", "any word"), k=2)
            return " ".join(self._one(random, each) for each in kinds)
        return self._one(random, kind)

    def _one(self, random: Random, kind: str) -> str:
        drawn = self._any(random, kind)
        return self._one(random, kind) if drawn in unlearned() else drawn

    def _any(self, random: Random, kind: str) -> str:
        if kind == "pattern":
            return text_templates.sentence(random, self.names)
        if kind == "written":
            return text_written.sentence(random, self.names)
        if kind == "talk":
            return text_conversation.sentence(random, self.names)
        if kind == "any word" and self.classes:
            return text_words.sentence(random, self.classes)
        if kind in ("words", "any word"):
            return self._word_list(random)
        return random.choice(self.examples if kind == "example" else self.glosses)

    def _word_list(self, random: Random) -> str:
        words = random.choices(self.words, k=random.choice((1, 2, 3, 4, 5, 6)))
        text = random.choice((", ", " ")).join(words)
        return text[0].upper() + text[1:] + random.choice(".....?!")


def clean_sentence(text: str) -> str:
    """A sentence in plain ASCII with a capital and a final mark, or "" if it is no sentence."""
    text = re.sub(r"\s+", " ", text.replace("`", "'").replace("--", ", ")).strip(" ;,:'\"-")
    if not 8 <= len(text) <= LONGEST or re.search(r"[^A-Za-z0-9 ,.;:?!'$%-]|\d{5}", text):
        return ""
    end = "" if text[-1] in ".?!" else "."
    return text[0].upper() + text[1:] + end


def wordnet(root: Path) -> tuple[list[str], list[str]]:
    """WordNet's examples and definitions."""
    examples, glosses = [], []
    for path in sorted((root / "usr/share/wordnet").glob("data.*")):
        for line in path.read_text("utf-8", "ignore").splitlines():
            _, bar, gloss = line.partition("| ")
            if not bar:
                continue
            examples += re.findall(r'"([^"]+)"', gloss)
            glosses.append(re.sub(r"\(.*?\)", "", gloss.split('"')[0].split(";")[0]))
    return examples, glosses


def dictionary(root: Path) -> list[str]:
    lines = (root / "usr/share/dict/american-english").read_text("utf-8", "ignore").splitlines()
    return [word for word in lines if re.fullmatch(r"[A-Za-z][a-z]{2,13}", word)]


def _kept(sentences: Iterable[str]) -> list[str]:
    return sorted({text for text in map(clean_sentence, sentences) if text})


def build_corpus(root: Path) -> Corpus:
    examples, glosses = wordnet(root)
    kept = {"e": _kept(examples), "g": _kept(glosses)}
    words = dictionary(root)
    held = _held_words(words, kept.values())
    spoken = {key: list(_split(texts, held, want=False)) for key, texts in kept.items()}
    held_out = list(_split(kept["e"], held, want=True))
    words = [word for word in words if word.lower() not in held]
    return Corpus(
        examples=spoken["e"],
        glosses=spoken["g"],
        words=words,
        held_sentences=held_out,
        held_words=sorted(held),
        classes=text_words.word_classes(words, text_words.wordnet_lemmas(root)),
    )


def _held_words(words: list[str], prose: Iterable[list[str]]) -> set[str]:
    counts = Counter(word for texts in prose for text in texts for word in words_of(text))
    common = {word for word, _ in counts.most_common(COMMON)}
    lower = {word.lower() for word in words}
    return {word for word in lower - common if _checksum(word) % 100 == 0}


def _split(texts: list[str], held: set[str], want: bool) -> Iterator[str]:
    for text in texts:
        held_out = _checksum(text) % 50 == 0 or not held.isdisjoint(words_of(text))
        held_out = held_out or text in unlearned()
        if held_out == want:
            yield text


def save(corpus: Corpus, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(corpus)))


def load(path: Path) -> Corpus:
    return Corpus(**json.loads(path.read_text()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("/"))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    corpus = build_corpus(args.root)
    save(corpus, args.out)
    print({name: len(pool) for name, pool in corpus.__dict__.items()})


if __name__ == "__main__":
    main()
