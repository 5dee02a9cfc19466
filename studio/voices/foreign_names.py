"""Voices of other services and of checkpoints: sex and temper of each name.

The one table by which a name that is not here stands for a voice that is: a man's name for a man's
voice, and among those for one of like temper. Ids of ElevenLabs stand for its names. A name that is
not in the table has the sex that Kokoro writes into its names (`zm_…` is a man), or none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

Sex: TypeAlias = Literal["f", "m", ""]

# name, sex, temper: the words in the order of their weight. `boy` is a child's voice.
_OPENAI = """
alloy f clear even; ash m even calm; ballad m warm calm; cedar m deep warm; coral f bright lively;
echo m even crisp; fable m lively old; marin f clear warm; nova f bright clear; onyx m deep calm;
sage f calm warm; shimmer f soft warm; verse m lively warm
"""
_QWEN = """
vivian f bright clear; serena f warm soft; uncle_fu m deep old; dylan m crisp even; eric m lively;
ryan m lively even; aiden m warm lively; ono_anna f bright; sohee f warm clear
"""
_KOKORO = """
af_heart f warm clear; af_alloy f clear even; af_aoede f clear; af_bella f warm lively;
af_jessica f bright lively; af_kore f clear even; af_nicole f soft low; af_nova f clear bright;
af_river f calm even; af_sarah f clear warm; af_sky f bright clear; am_adam m deep calm;
am_echo m even crisp; am_eric m even calm; am_fenrir m deep warm; am_liam m lively even;
am_michael m warm calm; am_onyx m deep calm; am_puck m lively; am_santa m old deep;
bf_alice f clear calm; bf_emma f warm calm; bf_isabella f soft warm; bf_lily f bright soft;
bm_daniel m even crisp; bm_fable m lively old; bm_george m warm calm; bm_lewis m deep calm;
jf_alpha f bright; jf_gongitsune f clear; jf_nezumi f bright; jf_tebukuro f warm; jm_kumo m even;
zf_xiaobei f bright; zf_xiaoni f bright; zf_xiaoxiao f warm; zf_xiaoyi f clear;
zm_yunjian m deep; zm_yunxi m lively; zm_yunxia m lively; zm_yunyang m even;
ef_dora f clear; em_alex m even; em_santa m old deep; ff_siwis f clear; hf_alpha f clear;
hf_beta f warm; hm_omega m deep; hm_psi m even; if_sara f clear; im_nicola m warm; pf_dora f clear;
pm_alex m even; pm_santa m old deep; af f warm clear
"""
_ELEVENLABS = """
rachel f calm clear; domi f lively clear; bella f soft warm; sarah f soft warm; antoni m warm even;
elli f bright lively; josh m deep calm; arnold m crisp deep; adam m deep calm; sam m crisp even;
aria f lively warm; roger m calm warm; laura f bright lively; charlie m even lively;
george m warm calm; callum m lively crisp; river f calm even; liam m lively even;
charlotte f soft calm; alice f clear calm; matilda f warm clear; will m lively warm;
jessica f bright lively; chris m even warm; brian m deep calm; daniel m deep even;
lily f warm calm; bill m old calm; clyde m old deep; dave m lively; fin m old; freya f clear;
dorothy f soft calm; ethan m even calm; emily f soft calm; thomas m calm even; harry m lively;
james m old calm; jessie m old; michael m old even; nicole f soft low; giovanni m lively;
drew m even calm; paul m even crisp; grace f soft warm; glinda f lively; gigi f bright;
mimi f bright; jeremy m lively; joseph m even; patrick m crisp
"""
# Of Qwen's other services.
_DASHSCOPE = "cherry f bright warm; chelsie f bright soft; jennifer f clear; katerina f calm"
# Those that come with Timbre: only ever a target.
_MINI = """
vera f bright lively; clara f clear lively even; iris f warm calm soft; june f soft low calm;
robert m warm calm even; angus m lively warm; karl m crisp even; otto m deep calm; felix m boy;
noah m even calm; fergus m old deep; milo m boy
"""
_IDS = """
21m00Tcm4TlvDq8ikWAM rachel 29vD33N1CtxCmqQRPOHJ drew 2EiwWnXFnvU5JabPnv8n clyde
5Q0t7uMcjvnagumLfvZi paul 9BWtsMINqrJLrRacOk9x aria AZnzlk1XvdvUeBnXmlld domi
CYw3kZ02Hs0563khs1Fj dave CwhRBWXzGAHq8TQ4Fs17 roger D38z5RcWu1voky8WS1ja fin
EXAVITQu4vr4xnSDxMaL sarah ErXwobaYiN019PkySvjV antoni FGY2WhTYpPnrIDTdsKH5 laura
GBv7mTt0atIp3Br8iCZE thomas IKne3meq5aSn9XLyUdCD charlie JBFqnCBsd6RMkjVDRZzb george
LcfcDJNUP1GQjkzn1xUU emily MF3mGyEYCl7XYWbV9V6O elli N2lVS1w4EtoT3dr4eOWO callum
SAz9YHcvj6GT2YYXdXww river SOYHLrjzK2X1ezoPC6cr harry TX3LPaxmHKxFdv7VOQHJ liam
ThT5KcBeYPX3keUQqHPh dorothy TxGEqnHWrfWFTfGW9XjX josh VR6AewLTigWG4xSOukaG arnold
XB0fDUnXU5powFXDhCwa charlotte Xb7hH8MSUJpSbSDYk0k2 alice XrExE9yKIg1WjnnlVkGX matilda
ZQe5CZNOzWyzPSCn5a3c james Zlb1dXrM653N07WRdFW3 joseph bIHbv24MWmeRgasZH58o will
bVMeCyTHy58xNoL34h3p jeremy cgSgspJ2msm6clMCkdW9 jessica cjVigY5qzO86Huf0OWal eric
flq6f7yk4E4fJM5XTYuZ michael g5CIjZEefAph4nQFvHAz ethan iP95p4xoKVk53GoZ742B chris
jBpfuIE2acCO8z3wKNLl gigi jsCqWAovK2LkecY7zXl4 freya nPczCjzI2devNBz1zQrb brian
oWAxZDx7w5VEj9dCyTzz grace onwK4e9ZLuTAKqWW03F9 daniel pFZP5JQG7iQjIQuC4Bku lily
pNInz6obpgDQGcFmaJgB adam piTKgcLEGmPE4e6mEKli nicole pMsXgVXv3BLzUgSXRplE serena
pqHfZKP75CvOlQylNhV4 bill t0jbNlBVZ17f02VDIeMI jessie yoZ06aMxZJJ28mfd3POQ sam
z9fAnlkpzviPz146aGWa glinda zcAOhNBS3c14rBihAFp1 giovanni zrHiDhphv9ZnVXBqCLjz mimi
"""
_KOKORO_NAME = re.compile(r"[a-z]([fm])_\w+")
_WOMAN = re.compile(r"\b(woman|female|girl|lady)\b", re.I)
_MAN = re.compile(r"\b(man|male|boy|gentleman)\b", re.I)


@dataclass(frozen=True)
class Traits:
    """Sex ("" is not known) and temper of a voice."""

    sex: Sex
    temper: tuple[str, ...] = ()


def _table(text: str) -> dict[str, Traits]:
    lines = [line.split() for line in text.strip("; \n").split(";")]
    return {name: Traits("m" if sex == "m" else "f", tuple(temper)) for name, sex, *temper in lines}


FOREIGN_VOICES: Final[Mapping[str, Traits]] = {
    name: traits
    for table in (_ELEVENLABS, _DASHSCOPE, _KOKORO, _QWEN, _OPENAI)
    for name, traits in _table(table).items()
}
_KNOWN: Final[Mapping[str, Traits]] = {**FOREIGN_VOICES, **_table(_MINI)}
_words = _IDS.casefold().split()
VOICE_IDS: Final[Mapping[str, str]] = dict(zip(_words[::2], _words[1::2], strict=True))


def foreign_name(name: str) -> str | None:
    """A voice of another service, named or by its id; None for other names."""
    wanted = name.strip().casefold()
    wanted = VOICE_IDS.get(wanted, wanted)
    return wanted if wanted in FOREIGN_VOICES or _KOKORO_NAME.fullmatch(wanted) else None


def traits_of(name: str, note: str = "") -> Traits:
    """The traits of a voice, here or elsewhere: from the table, or from its name and note."""
    known = _KNOWN.get(name.casefold())
    if known:
        return known
    if written := _KOKORO_NAME.fullmatch(name.casefold()):
        return Traits("m" if written[1] == "m" else "f")
    woman, man = bool(_WOMAN.search(note)), bool(_MAN.search(note))
    return Traits("" if woman == man else "f" if woman else "m")


@lru_cache(maxsize=8)
def stand_ins(voices: tuple[tuple[str, Traits], ...]) -> Mapping[str, str]:
    """The voice that each foreign name stands for, but for names that are voices here."""
    here, used = dict(voices), Counter[str]()
    taken = {name.casefold() for name in here}
    found = {}
    for name in FOREIGN_VOICES:
        if here and name not in taken:
            found[name] = _best(FOREIGN_VOICES[name], here, used)
            used[found[name]] += 1
    return found


def stand_in(name: str, voices: Mapping[str, Traits], known: Mapping[str, str]) -> str | None:
    """The voice that a foreign name stands for, whether it is in the table or not."""
    if not voices:
        return None
    return known.get(name) or _best(traits_of(name), voices, Counter())


def _best(traits: Traits, voices: Mapping[str, Traits], used: Counter[str]) -> str:
    """A voice of the sex, of the likeliest temper, the least used."""
    able = _of_sex(traits.sex, voices)
    return min(able, key=lambda each: (-_likeness(traits, voices[each]), used[each]))


def _of_sex(sex: Sex, voices: Mapping[str, Traits]) -> Sequence[str]:
    """Voices of this sex, else voices of unknown sex, else all; children come last."""
    wanted: tuple[Callable[[Traits], bool], ...] = (
        lambda voice: voice.sex == sex and "boy" not in voice.temper,
        lambda voice: voice.sex == sex,
        lambda voice: not voice.sex,
        lambda voice: True,
    )
    able = ([name for name, traits in voices.items() if fits(traits)] for fits in wanted)
    return next((names for names in able if names), [])


def _likeness(one: Traits, other: Traits) -> float:
    """Shared words; the first counts most."""
    return sum(
        1 / (1 + one.temper.index(word)) / (2 + other.temper.index(word))
        for word in one.temper
        if word in other.temper
    )
