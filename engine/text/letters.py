"""Capitals: what is spelt by the names of its letters, what is a word, and what is shouted."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")

# Spellings that sound like the names of the letters, found by listening (training/experiments).
NAMES = {
    "a": "eigh", "b": "bee", "c": "see", "d": "dee", "e": "ee", "f": "eff", "g": "gee",
    "h": "aitch", "i": "eye", "j": "jay", "k": "kay", "l": "ell", "m": "em", "n": "en",
    "o": "oh", "p": "pee", "q": "cue", "r": "ar", "s": "ess", "t": "tee", "u": "you",
    "v": "vee", "w": "double you", "x": "ex", "y": "why", "z": "zee",
}  # fmt: skip
WORDS = frozenset(
    _WORD.findall(
        "NASA NATO UNESCO UNICEF OPEC AIDS COVID SARS MERS FIFA UEFA NAFTA ASEAN NASDAQ IKEA LEGO "
        "SWAT POTUS SCOTUS YOLO FOMO BASIC COBOL FORTRAN HIPAA OSHA FEMA RAID CERN BAFTA IMAX "
        "AWOL LASER RADAR SONAR SCUBA PIN SIM RAM ROM GIF LAN WAN ZIP GIFS TEFL TOEFL INTERPOL "
        "YAML JSON NIMBY LIDAR CAPTCHA MIDI NORAD UNIX LINUX VISA SAAB "
    )
)
LETTERED = frozenset(_WORD.findall(
    "FBI CIA USA UK US EU UN UAE USSR BBC CNN NBC CBS ABC TV DVD CD PC PDF CEO CFO CTO COO "
    "NGO HTML HTTP HTTPS CSS URL USB GPS DNA RNA HIV IBM NHS NYPD LAPD MIT UCLA NBA NFL NHL "
    "MLB UFO VIP DIY FAQ ATM PIN ID AI ML IQ EQ PR HR IT TB GB MB KB AC DC AD BC BCE CE PM AM "
    "GMT UTC EST PST CET MP MEP PhD MBA BA MA BSC MSC SUV BMW KGB NSA IRS IMF WTO GDP VAT LLC "
    "NYC GOP ADHD NAACP ACLU AARP NCAA OSCE IPCC COPD USPS UNHCR ASPCA MRI ICU IPO ETF ROI UTI "
    "HDMI LGBT LGBTQ HVAC "
    "LTD PLC RSVP ASAP LOL OMG BTW FYI IMO TBA TBD ETA DJ MC PE ESPN OECD IEEE API SDK CPU "
    "GPU SSD HDD LED LCD RGB RAF YMCA EWCA EWHC UKSC YWCA NYSE RSPCA RSPB USMC SSID BYOB RNIB "
)) - {"PIN"}  # fmt: skip
_SHORT = frozenset(_WORD.findall(
    "a i an as at be by do go he hi if in is it me my no of oh ok on or so to up us we all and "
    "any are ask bad big but can day did dog end far few for fun get god got had has her hey "
    "him his how its let lot mad man may men mom new not now off old one our out own put ran "
    "red run sad saw say see set she sit six ten the too top try two use via war was way wet "
    "who why win won yes yet you wow yay ugh aha huh boo nah yep cat sun eat hot air arm art "
    "bag bar bed box buy car cup cut dry due ear egg eye fat fit fly fox gas gun hat hit ice "
    "job joy key kid law lay leg lie low map mix mud net nor oil pay pen pet pig pop pot raw "
    "rid row rub sea sex sir sky son sue tax tea tie toe ton toy add act age ago aid aim bit "
    "arc ash ate awe bay bee beg bet bid bin bow bug bun bus cab cap cop cow cry cue dad dam "
    "den dew dig dim din dip dot dug dye era eve fan fee fig fin fix flu fog fur gap gem gum "
    "gut guy hay hen hid hop hug hut ill ink inn jam jar jaw jet jog kin kit lap lip lit log "
    "nap nod nut oak oar odd owe owl pan pat paw pea peg pie pit pod pub pup rag rat ray rib "
    "rim rob rot rug rum sew shy sin sip sob spy tan tap tar tin tip tub tug van vet vow wag "
    "wax web wed wig wit "
        "ah eh ha ho um uh ooh heh hmm die boy met per lad bat ham gin foe pun hog bum imp fry con "
        "sub tab ape zoo fad gay lid rap ski wee bye gig hip sow rut woe pry mug wad ace bud rip "
        "rod dub fed sum pal tag cod elm eel yak hub gag mob wok rye jig ivy icy nil lab app pro "
        "yow max thy ye nay aye yea ass jim joe sam ken lee "
))  # fmt: skip
_RATHER_LETTERS = frozenset(("it", "us", "am", "or", "who"))  # where nothing else is shouted
_VOWEL = re.compile(r"[AEIOUY]")
_HARD = re.compile(
    r"[^AEIOUY]{6}|^(?!SCH|SPH|[SC]H[RL]|S[CPT]R|SPL|THR|PHR)[^AEIOUY]{3}"
    r"|^SS|MC$|[BCDFGKPTVZ]L$|^(?!KN|GN|PS)(?:[BDFGJKLMNPRVXZ](?=[BCDFGJKMNPQSTVXZ])|[HJQXZ](?=[^AEIOUY]))"
    r"|(?!GN|FF|GM|(?<=T)HM)(?<!O(?=HN))[BCDFGHJKPQVZ][BFGJMNPQRVW]$|(?<!Q)[AEIOU]{4}|Q(?!U)|HH|JJ|VV|XX"
)
_DRAWN_OUT = re.compile(r"([^CIVX])\1\1")  # "AAARGH", "GRRR"; no "XXXL", "CCCP"
_I_AM = re.compile(r"(?<=\bI )AM\b")
CAPITALS = re.compile(r"(?<![\w])[A-Z]{2,30}(?:'?s)?(?![\w])")
_RUN = re.compile(r"(?<!\w)[A-Z][A-Z']{0,30}(?:[\s,.;:!?—–-]{1,4}[A-Z][A-Z']{0,30}(?!\w)){1,80}")


def letter_names(letters: str) -> str:
    """ "FBI" -> "eff-bee-eye"; without hyphens the talker loses its place among them."""
    names = [NAMES[letter] for letter in letters.lower() if letter in NAMES]
    if letters.lower() in ("ad", "at"):  # "eigh-dee" is heard as eighty
        return " ".join(names)
    return names[0] if len(names) == 1 else "-".join(names).replace(" ", "-")


def pronounceable(word: str) -> bool:
    """Whether capitals may be read as a word."""
    return bool(_VOWEL.search(word)) and not _HARD.search(word)


def capitals(text: str) -> str:
    """Every word in capitals spelt by its letters or put into small ones."""
    text = _RUN.sub(_run, _I_AM.sub("am", text))
    return CAPITALS.sub(lambda match: say_capitals(match[0], _after_the(match)), text)


def say_capitals(word: str, after_the: bool = False) -> str:
    """One word in capitals that stands alone, with the s of a plural or a genitive."""
    core = word.rstrip("s").rstrip("'")
    ending = word[len(core) :]
    if core in WORDS:
        return core.capitalize() + ending
    small = core.lower()
    if core in LETTERED or len(core) == 1:
        return letter_names(core) + ending
    if small in _SHORT and not (
        small in _RATHER_LETTERS and (after_the or small not in ("who", "or"))
    ):
        return small + ending
    if len(core) > 3 and (pronounceable(core) or _DRAWN_OUT.search(core)):
        return small + ending
    return letter_names(core) + ending


def _after_the(match: re.Match[str]) -> bool:
    return match.string[max(0, match.start() - 4) : match.start()].lower() == "the "


def _run(match: re.Match[str]) -> str:
    """Several words in capitals: shouted, if one of them is an ordinary word."""
    words = re.findall(r"[A-Z']+", match[0])
    plain = [
        word for word in words if word not in WORDS | LETTERED and pronounceable(word)
        and (len(word) > 3 or word.lower() in _SHORT)
    ]  # fmt: skip
    long = [word for word in plain if len(word) > 3]
    if not (long or (len(words) > 2 and len(plain) > 1)):
        return match[0]
    return re.sub(r"[A-Z][A-Z']*", lambda each: _shouted(each[0]), match[0])


def _shouted(word: str) -> str:
    if word == "I" or (word in LETTERED and word.lower() not in _SHORT) or word in WORDS:
        return word
    short = len(word) < 5 and word.isalpha() and not (pronounceable(word) or word.lower() in _SHORT)
    return word if short or not _VOWEL.search(word) else word.lower()
