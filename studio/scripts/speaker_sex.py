"""Whether a speaker is a woman or a man, as far as name and text of a script tell.

A title decides, then a given name by a list (given_names.txt), then the pronouns that follow the
name in the text. Names of both sexes are left out. Knows no voices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from studio.scripts.model import Script

Sex: TypeAlias = Literal["female", "male"]

NEAR: Final = 80  # characters after a name in which a pronoun is its
TITLES: Final[Mapping[Sex, str]] = {
    "female": """mrs ms miss mme madame mademoiselle frau signora señora sra senhora lady queen
        princess duchess countess mother mom mum mama grandmother grandma aunt sister daughter wife
        girl woman mutter oma tante mère""",
    "male": """mr monsieur herr signor señor sr senhor sir lord king prince duke count father dad
        papa grandfather grandpa uncle brother son husband boy man vater opa onkel père""",
}
# Before a given name: `Dr Jane Smith`, `old Mary`. What is alone behind a rank is a family name.
_OFFICES = (
    "dr doctor prof professor captain major colonel general officer inspector judge father sister"
)
_RANKS = frozenset(_OFFICES.split())
_BEFORE_A_NAME = _RANKS | {"old", "young", "little", "big", "poor", "saint", "st", "san"}
# Characters with which Chinese and Japanese given names end, nearly always of one sex.
_LAST_CHARACTERS: Final[Mapping[Sex, str]] = {
    "female": "丽芳娜静婷娟燕玲梅兰雪莉琳妍萍红霞娇媛倩莹子美恵奈代香",
    "male": "强伟军勇刚杰涛鹏辉龙虎磊斌峰雄郎男夫彦介太也助",
}
PRONOUNS: Final[Mapping[str, Sex]] = {
    **dict.fromkeys(("she", "her", "hers", "herself", "她"), "female"),
    **dict.fromkeys(("he", "him", "his", "himself", "他"), "male"),
}
_PRONOUN = re.compile(r"\b(?:she|hers?|herself|he|him|his|himself)\b|[她他]", re.IGNORECASE)
_NAMES = Path(__file__).with_name("given_names.txt")
_CHINESE_NAME = re.compile(r"\s*[\u4e00-\u9fff]{2,4}\s*")
_CHINESE_TITLE = re.compile("(?:女士|小姐|太太|夫人|妈妈|奶奶)|(先生|爸爸|爷爷)")
_BY_TITLE: Mapping[str, Sex] = {word: sex for sex in TITLES for word in TITLES[sex].split()}
_BY_CHARACTER: Mapping[str, Sex] = {
    char: sex for sex in _LAST_CHARACTERS for char in _LAST_CHARACTERS[sex]
}


def speaker_sexes(script: Script) -> dict[str, Sex]:
    """The sex of each speaker whose name or text tells it."""
    unnamed: list[str] = []
    found: dict[str, Sex] = {}
    for speaker in filter(None, script.speakers):
        if sex := sex_of_name(speaker):
            found[speaker] = sex
        else:
            unnamed.append(speaker)
    return found | _sexes_by_pronouns(script, unnamed) if unnamed else found


def sex_of_name(speaker: str) -> Sex | None:
    """The sex by a title or a given name."""
    words = re.findall(r"\w+", speaker.casefold())
    titles = [_BY_TITLE[word] for word in words if word in _BY_TITLE]
    if titles:
        return titles[0]
    if title := _CHINESE_TITLE.search(speaker):
        return "male" if title[1] else "female"
    if words and words[0] in _BEFORE_A_NAME and (len(words) > 2 or words[0] not in _RANKS):
        words = words[1:]
    if words and words[0] in given_names():
        return given_names()[words[0]]
    return _BY_CHARACTER.get(speaker.strip()[-1:]) if _CHINESE_NAME.fullmatch(speaker) else None


@lru_cache(maxsize=1)
def given_names() -> Mapping[str, Sex]:
    """Sex by given name in small letters, of names that only one sex has."""
    found: dict[str, Sex] = {}
    sex: Sex = "female"
    for line in _NAMES.read_text(encoding="utf-8").splitlines():
        if line in ("female:", "male:"):
            sex = "female" if line == "female:" else "male"
        elif not line.startswith("#"):
            found.update(dict.fromkeys(line.split(), sex))
    return found


def _sexes_by_pronouns(script: Script, speakers: list[str]) -> dict[str, Sex]:
    """The sex by the first pronoun after each mention, up to the next mention of a speaker."""
    every = sorted(filter(None, script.speakers), key=len, reverse=True)
    mention = re.compile(
        rf"(?<![a-z])(?:{'|'.join(map(re.escape, every))})(?![a-z])", re.IGNORECASE
    )
    known = {speaker.casefold(): speaker for speaker in speakers}
    votes: dict[str, Counter[Sex]] = {speaker: Counter() for speaker in speakers}
    for line in script.lines:
        found = [*mention.finditer(line.text)]
        ends = (*(each.start() for each in found[1:]), len(line.text))
        for each, end in zip(found, ends, strict=False):
            speaker = known.get(each[0].casefold())
            pronoun = _PRONOUN.search(line.text, each.end(), min(end, each.end() + NEAR))
            sex = PRONOUNS.get(pronoun[0].casefold()) if pronoun else None  # none: Turkish "hım"
            if speaker and sex:
                votes[speaker][sex] += 1
    return {
        speaker: "female" if each["female"] > each["male"] else "male"
        for speaker, each in votes.items()
        if each["female"] != each["male"]
    }
