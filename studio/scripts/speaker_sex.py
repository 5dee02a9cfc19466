"""Whether a speaker is a woman or a man, as far as name and text of a script tell.

A title decides, then a common first name, then the pronouns that follow the name in the text. Names
that both have are left out. Knows no voices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
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
NAMES: Final[Mapping[Sex, str]] = {
    "female": """abigail agnes aisha alice amelia amy ana anastasia anita anna anne annie astrid
        barbara beatrice bella bianca birgit brigitte camille carla carmen carol caroline catherine
        cecilia celia charlotte chiara chloe christina claire clara claudia cleo daisy deborah diana
        dolores dorothy edith elena elisa elisabeth eliza elizabeth ella ellen elsa emily emma
        esther eva eve fatima fiona francesca françoise frida gabriela giulia grace greta hannah
        harriet heidi helen helena ida ines ingrid irene iris isabel isabella jane janet jennifer
        jessica joan josephine julia julie juliet karen karin kate katharina katherine katie laura
        lena lily linda lisa lola lotte louise lucia lucy luisa margaret maria marie marta martha
        mary mathilde mei melissa mia michelle mona monica nadia nancy natalia natasha nicole nina
        nora olga olivia paula pauline penelope petra rachel rebecca rosa rose ruth sabine sakura
        sara sarah silvia sofia sonia sophia sophie stella susan susanne sylvia tanya teresa tina
        ursula valentina vera veronica victoria violet virginia yoko yuki zoe""",
    "male": """aaron abdul adam adrian ahmed albert alberto alejandro alexander alfred andreas
        andrew anthony antoine anton antonio arthur ben benjamin bernard boris bruno carl carlos
        charles christian christopher daniel david diego dmitri edward emil enrique eric erik ernest
        felix fernando florian francesco francisco francois françois frank franz fred frederick
        fritz george gerald gianni giovanni giuseppe gregory günther hans harold harry heinrich
        helmut henri henry herbert hiroshi hugo ibrahim igor ivan jack jacob jacques jakob james
        javier jeff jens jeremy jim joe johan johann john johnny jonas jonathan jorge jose joseph
        josé juan jürgen karl kenji kevin klaus kurt lars leonard leonardo louis ludwig luigi luis
        lukas manuel marco marcus mario mark markus martin matthew matthias max michael miguel
        mikhail mohammed moritz nathan nicholas oleg oliver oscar otto pablo patrick paul pavel
        pedro peter philip pierre rafael ralph raymond rené ricardo richard robert roberto roger
        roland rolf ron samuel sebastian sergei simon stefan stephan stephen steve sven takeshi
        theodore thomas tim tom tony victor vincent vladimir walter wei werner wilhelm william
        wolfgang xavier""",
}
PRONOUNS: Final[Mapping[str, Sex]] = {
    **dict.fromkeys(("she", "her", "hers", "herself", "她"), "female"),
    **dict.fromkeys(("he", "him", "his", "himself", "他"), "male"),
}
_PRONOUN = re.compile(r"\b(?:she|hers?|herself|he|him|his|himself)\b|[她他]", re.IGNORECASE)
_CHINESE_TITLE = re.compile("(?:女士|小姐|太太|夫人|妈妈|奶奶)|(先生|爸爸|爷爷)")
_BY_TITLE: Mapping[str, Sex] = {word: sex for sex in TITLES for word in TITLES[sex].split()}
_BY_NAME: Mapping[str, Sex] = {word: sex for sex in NAMES for word in NAMES[sex].split()}


def speaker_sexes(script: Script) -> dict[str, Sex]:
    """The sex of each speaker whose name or text tells it."""
    unnamed: list[str] = []
    found: dict[str, Sex] = {}
    for speaker in filter(None, script.speakers):
        if sex := _sex_of_name(speaker):
            found[speaker] = sex
        else:
            unnamed.append(speaker)
    return found | _sexes_by_pronouns(script, unnamed) if unnamed else found


def _sex_of_name(speaker: str) -> Sex | None:
    words = re.findall(r"\w+", speaker.casefold())
    titles = [_BY_TITLE[word] for word in words if word in _BY_TITLE]
    if titles:
        return titles[0]
    if title := _CHINESE_TITLE.search(speaker):
        return "male" if title[1] else "female"
    return _BY_NAME.get(words[0]) if words else None


def _sexes_by_pronouns(script: Script, speakers: list[str]) -> dict[str, Sex]:
    """By the first pronoun after each mention, up to the next mention of somebody."""
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
            if speaker and pronoun:
                votes[speaker][PRONOUNS[pronoun[0].casefold()]] += 1
    return {
        speaker: "female" if own["female"] > own["male"] else "male"
        for speaker, own in votes.items()
        if own["female"] != own["male"]
    }
