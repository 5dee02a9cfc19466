"""What is to be said as Kokoro reads it: phonemes of texts, and where in the text each belongs.

Phonemes are misaki's, made by `hibari` (the package hibari-tts: its rules and word lists, no
network of its voice). A file of them is made once, on any machine:

    python -m training.teachers.phonemes --corpus corpus.json --out said.json.gz --count 380000

Texts are in their spoken form, which is all that Mini is ever given (`tts_text_form`). With
--held-out they are the sentences that are never learned, to judge the talker by.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from engine.text.letters import NAMES
from engine.text.spoken_form import spoken_form
from training.data import text as texts
from training.data.phones import PHONES
from training.data.text_kinds import as_written

LONGEST = 160  # phonemes: about ten seconds
PAUSE = PHONES.index("pau")
STRESSES = "ˈˌ"
# Misaki's letters as the recipe's phones, which codec and talker are taught by.
_LETTERS = "AIOQWYTiujhɪᵻʊɛæɑɒɔʌəɐᵊɜɚɹɾɡŋʃʒʤʧθðaeorxʔ"
_PHONES = (
    "ey ay ow ow aw oy d iy uw y hh ih ih uh eh ae aa aa ao ah ax ax ax er er r d g ng sh zh "
    "jh ch th dh aa eh ow r k t"
)
_ALIKE = dict(zip(_LETTERS, _PHONES.split(), strict=True)) | {
    letter: letter for letter in "bdfklmnpstvwz"
}
PHONE_OF = {letter: PHONES.index(name) for letter, name in _ALIKE.items()}


_NAMES = "|".join(name.replace(" ", "-") for name in NAMES.values())
_SPELT = re.compile(rf"\b(?:{_NAMES})(?:-(?:{_NAMES}))+(?='?s?\b)", re.IGNORECASE)
_READ_AS = {"coevid": "covid", "fema": "FEMA", "imax": "IMAX"}  # else hibari reads them wrongly
_RESPELT = re.compile(rf"\b(?:{'|'.join(_READ_AS)})\b", re.IGNORECASE)


@dataclass(frozen=True)
class PhonemizedText:
    """A text, its phonemes, and after each of them how many characters of the text are said."""

    text: str
    phonemes: str
    places: list[int]


class Reader:
    """Texts into phonemes."""

    def __init__(self) -> None:
        from hibari import g2p

        self._rules, self._normalize = g2p.G2P(), g2p.normalize

    def read(self, text: str) -> PhonemizedText | None:
        """Read a text in its spoken form. None if a letter has no phone here, or if there are too
        many phones."""
        plain = self._normalize(apart(text))
        words = [""]
        for token in self._rules.phonemize_tokens(self._rules.tokenize(plain)):
            words[-1] += token.phonemes or ""
            if token.whitespace:
                words.append("")
        return align_words(text, plain, words)


def apart(form: str) -> str:
    """As hibari reads a spoken form best: names of letters ("eff-bee-eye") are words for it."""
    form = _SPELT.sub(lambda match: match[0].replace("-", " "), form)
    return _RESPELT.sub(lambda match: _READ_AS[match[0].lower()], form)


def align_words(text: str, plain: str, words: list[str]) -> PhonemizedText | None:
    """Phonemes of words of `plain`, placed in the `text` that was spelt out as `plain`."""
    words = words if words[-1] else words[:-1]
    phonemes = " ".join(words)
    if len(words) != len(plain.split()) or len(phonemes) > LONGEST:
        return None
    if any(phone_of_letter(letter) is None for letter in phonemes):
        return None
    at, letters = [0.0], [0.0]
    ends = np.cumsum([len(word) + 1 for word in words])
    spans = word_spans(text)
    for start, stop, first, last in blocks(plain.split(), text.split()):
        at += [float(ends[start] - len(words[start]) - 1), float(ends[stop - 1] - 1)]
        letters += [float(spans[first][0]), float(spans[last - 1][1])]
    places = np.interp(np.arange(1, len(phonemes) + 1), at, letters)
    return PhonemizedText(text, phonemes, np.round(places).astype(int).tolist())


def phone_of_letter(letter: str) -> int | None:
    """The phone of a letter; pauses for all that is no sound, None for what is not known."""
    if letter in STRESSES or not letter.isalpha():
        return PAUSE
    return PHONE_OF.get(letter)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words between spaces begin and end."""
    spans, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        spans.append((start, at))
    return spans


def blocks(spoken: list[str], written: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """Which words of the one are which of the other: equal ones singly, others as they stand."""
    matcher = SequenceMatcher(None, spoken, written, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if b - a == d - c:
            yield from ((a + n, a + n + 1, c + n, c + n + 1) for n in range(b - a))
        elif kind == "replace":
            yield a, b, c, d


def phones_of(phonemes: str) -> list[int]:
    """A phone for each letter; marks of stress sound like what they stand before, spaces like
    what went before."""
    found = [PHONE_OF.get(letter, PAUSE) for letter in phonemes]
    for index in reversed(range(len(found) - 1)):
        if phonemes[index] in STRESSES:
            found[index] = found[index + 1]
    for index in range(1, len(found)):
        if phonemes[index] == " ":
            found[index] = found[index - 1]
    return found


def save(texts: Iterable[PhonemizedText], path: Path) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump([asdict(each) for each in texts], file, ensure_ascii=False)


def load(path: Path) -> list[PhonemizedText]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found: list[dict[str, Any]] = json.load(file)
    return [PhonemizedText(**each) for each in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=380_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held-out", action="store_true")
    args = parser.parse_args()
    corpus, random, reader = texts.load(args.corpus), Random(args.seed), Reader()
    drawn = corpus.held_sentences[: args.count]
    if not args.held_out:
        drawn = [as_written(corpus.draw(random), random) for _ in range(args.count)]
    forms = dict.fromkeys(map(spoken_form, drawn))
    read = [each for form in forms if (each := reader.read(form))]
    save(read, args.out)
    print(f"{len(read)} of {len(drawn)} texts")


if __name__ == "__main__":
    main()
