"""Abbreviated words, titles, streets, initials and Roman numerals as they are said."""

from __future__ import annotations

import re

from engine.text.letters import letter_names
from engine.text.number_words import cardinal, ordinal, year

_WORD = re.compile(r"\w+")

_TITLES = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Prof": "Professor",
    "Gen": "General", "Capt": "Captain", "Lt": "Lieutenant", "Sgt": "Sergeant", "Col": "Colonel",
    "Rev": "Reverend", "Hon": "Honorable", "Gov": "Governor", "Sen": "Senator", "Maj": "Major",
    "Rep": "Representative", "Pres": "President", "Adm": "Admiral", "Cpl": "Corporal",
    "Cmdr": "Commander", "Fr": "Father", "Sr": "Sister", "Msgr": "Monsignor", "Mt": "Mount",
    "Ft": "Fort", "Pt": "Point", "Supt": "Superintendent", "Det": "Detective", "Insp": "Inspector",
    "Pvt": "Private", "Mlle": "Mademoiselle", "Mme": "Madame",
}  # fmt: skip
_UNSTOPPED = ("Mr", "Mrs", "Ms", "Dr", "Prof")  # also without a full stop
_STREETS = {
    "St": "Street", "Dr": "Drive", "Ave": "Avenue", "Av": "Avenue", "Blvd": "Boulevard",
    "Rd": "Road", "Ln": "Lane", "Hwy": "Highway", "Pkwy": "Parkway", "Sq": "Square", "Ct": "Court",
    "Pl": "Place", "Terr": "Terrace", "Cres": "Crescent",
}  # fmt: skip
_AFTER_NAMES = {
    "Jr": "Junior", "Sr": "Senior", "Inc": "Incorporated", "Ltd": "Limited", "Co": "Company",
    "Corp": "Corporation", "Div": "Division", "Bros": "Brothers", "Esq": "Esquire",
}  # fmt: skip
_BEFORE_NUMBERS = {
    "no": "number", "nos": "numbers", "fig": "figure", "figs": "figures", "vol": "volume",
    "vols": "volumes", "ch": "chapter", "chap": "chapter", "p": "page", "pp": "pages",
    "sec": "section", "art": "article", "eq": "equation", "ext": "extension", "apt": "apartment",
    "ed": "edition", "tel": "telephone", "ver": "version", "op": "opus", "para": "paragraph",
    "ref": "reference", "pop": "population", "temp": "temperature", "mk": "mark", "max": "maximum",
    "min": "minimum", "hwy": "highway", "rte": "route", "rm": "room", "ste": "suite",
    "bk": "book", "pt": "part", "s": "section", "ss": "sections", "cl": "clause", "sch": "schedule",
    "reg": "regulation", "regs": "regulations", "elev": "elevation", "alt": "altitude",
    "vis": "visibility", "tab": "table", "ll": "lines", "jct": "junction", "pg": "page",
    "bldg": "building", "col": "column", "ps": "psalm",
    "eqs": "equations", "refs": "references", "vv": "verses", "sc": "scene", "mag": "magnitude",
    "lv": "level", "sz": "size", "thm": "theorem", "def": "definition",
    "ex": "example",
}  # fmt: skip
_PHRASES = {
    "e.g.": "for example", "eg.": "for example", "i.e.": "that is", "ie.": "that is",
    "etc.": "et cetera", "vs.": "versus", "vs": "versus", "approx.": "approximately",
    "dept.": "department", "est.": "established", "cf.": "compare", "viz.": "namely",
    "w.r.t.": "with respect to", "q/q": "quarter on quarter", "qoq": "quarter on quarter",
    "m/m": "month on month", "jct.":
    "junction", "jctn.": "junction",
    "et al.": "and others", "approx": "approximately", "y/y": "year on year",
    "yoy": "year on year", "messrs.": "messieurs",
    "n/a": "not applicable", "a.k.a.": "also known as", "aka": "also known as", "govt.":
    "government", "misc.": "miscellaneous", "w/o": "without", "w/out": "without", "w/in": "within",
    "c/o": "care of", "n.b.": "note well", "b/c": "because", "ww2": "World War two", "ww1": "World War one", "wwii": "World War two",  # noqa: E501
    "wwi": "World War one", "incl.": "including", "excl.": "excluding", "ca.":
    "circa", "resp.": "respectively", "avg.": "average", "tel.": "telephone", "appt.":
    "appointment", "attn:": "attention:",
    "nr.": "near", "esp.": "especially", "ea.": "each", "doz.": "dozen", "concs.": "concessions",
    "assn.": "association", "univ.": "university", "intl.": "international",
    "mgr.": "manager", "feat.": "featuring", "stn.": "station", "bldg.": "building",
    "asst.": "assistant", "attn.": "attention", "encl.": "enclosed", "ibid.": "in the same place",
    "op. cit.": "in the work cited", "o.n.o.": "or nearest offer", "ono": "or nearest offer",
    "y-o-y": "year on year", "q-o-q": "quarter on quarter", "thx": "thanks", "plz": "please",
    "ppl": "people", "msg": "message", "msgs": "messages", "govt": "government",
    "mgmt": "management", "mos.": "months", "pkg.": "package", "pkgs.": "packages", "qts.":
    "quarts", "edn.": "edition", "vit.": "vitamin", "flr.": "floor", "et seq.": "and following",
    "w/c": "week commencing", "y/e": "year ending", "spd.": "speed", "sqn.": "squadron",
    "conc.": "concessions",
    **{f"{start}{mark}{end}": word for mark in "'’" for start, end, word in (
        ("cont", "d", "continued"), ("int", "l", "international"), ("gov", "t", "government"),
        ("nat", "l", "national"), ("ass", "n", "association"), ("dep", "t", "department"),
    )},
    **{word: letter_names(word) for word in (
        "idk", "tbh", "brb", "btw", "imho", "fyi", "omg", "smh", "ngl", "ikr", "tba", "tbc", "rofl",
    )},
}  # fmt: skip
SHORTENED = sorted(  # words that a full stop shortens
    {word.lower() for words in (_TITLES, _STREETS, _AFTER_NAMES, _BEFORE_NUMBERS) for word in words}
    | {phrase[:-1] for phrase in _PHRASES if re.fullmatch(r"[a-z]+\.", phrase)}
    | {"vs"}
)
BARE = frozenset(
    {*(phrase for phrase in _PHRASES if phrase.replace("'", "").isalpha()), "u", "r"}
)  # no mark
COUNTED = (
    "Chapter|Part|Act|Scene|Volume|Vol|Book|Section|Article|War|Phase|Level|Type|Class|Episode|"
    "Season|Title|Annex|Grade|Stage|Round|Bowl|Figure|Table|Appendix|Canto|Mark|Tier|Schedule|Unit|Step"
)
_RULERS = frozenset(
    _WORD.findall(
        "Henry Louis Elizabeth George Edward Charles James William Richard John Paul Pius "
        "Benedict Francis Philip Napoleon Catherine Peter Alexander Nicholas Frederick Wilhelm "
        "Leo Gregory Innocent Clement Urban Mary Ivan Otto Ramesses Rameses Ramses Felipe Carlos "
        "Juan Gustav Carl Christian Harald Haakon Olaf Leopold Albert Baudouin Umberto Victor "
        "Emmanuel Ferdinand Franz Joseph Maximilian Rudolf Ludwig Constantine Justinian "
        "Theodosius Darius Xerxes Cyrus Ptolemy Cleopatra Thutmose Seti Sixtus Boniface Urban "
        "Adrian Stephen Matthew Robert David Malcolm Kenneth Duncan Edmund Harold Margrethe "
        "Beatrix Wilhelmina Isabella Joanna Pedro Afonso Manuel Sigismund Casimir Stanislaw Bela "
        "Abdul Mehmed Murad Selim Suleiman Mahmud Osman Hassan Mohammed Abdullah Rama Tiberius "
        "Celestine Honorius Julius Callixtus Hadrian Eugene Martin Nicholas Marcellus Gordian "
        "Valentinian Antiochus Seleucus Philipp Friedrich Karl "
    )
)
_DID = (  # what tells a ruler's "I" from a speaker's
    "of|was|had|is|has|and|ruled|reigned|[a-z]{2,12}ed|became|lost|won|fell|built|made|took|gave|"
    "began|fled|stood|grew|rose|wore|held|chose|brought|bought|fought|sold|put|came|went|spoke"
)
_ROMAN = re.compile(
    rf"\b((?:(?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Prince|Sultan|Pharaoh)\s)?(?:[A-Z][a-z]{{1,20}}|(?i:{COUNTED})))\.?\s"
    r"(?=[IVXL]{1,8}\b)(L?X{0,3}(?:IX|IV|V?I{0,3})|XL(?:IX|IV|V?I{0,3}))(?!\w|['’](?!s\b))(?!(?<=\sI)\s(?:think|believe|guess|know|mean|suppose|am|have|like|love|want|need|can|could|would)\b)"
    rf"(\s(?:{_DID})\b|['’]s\b|[,.;:!?)])?"
)
_NTH = re.compile(r"(?<=[Tt]he )(X{1,3}(?:IX|IV|V?I{0,3})|VI{2,3})(?=\s[A-Z][a-z]{3,})")
_CENTURY = re.compile(r"(?<!\w)([XVI]{1,5})(?:th)?(?=\s[Cc]entur(?:y|ies)\b)")
_LAW = re.compile(  # "XIV: After the …" behind a sentence
    r"(?:^|(?<=[.!?]\s))(?=[IVXL]{2,8}[:.]\s[A-Z])"
    r"(L?X{0,3}(?:IX|IV|V?I{0,3})|XL(?:IX|IV|V?I{0,3}))(?=[:.])"
)
_ROMAN_YEAR = re.compile(
    r"(?<!\w)(?=[MDCLXVI]{5,12}\b)M{1,2}(?:CM|CD|D?C{0,3})"
    r"(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?!\w)"
)
_NUMERAL = r"(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3})"
_SERIES = re.compile(  # "I, II and III", "Chapters I–III"
    rf"(?<![\w.'’-])(?:{_NUMERAL}(?:,\s|\s?[-–]\s?|,?\s(?:and|or|to|through|&)\s)){{1,8}}{_NUMERAL}(?![\w'’-])"
)
_ALONE = re.compile(r"(?<![\w.'’&-])(?:I{2,3}|VI{2,3}|XI{2,3}|XIV|XVI{0,3}|XIX)(?![\w'’&-])")
_DIGITS = {"M": 1000, "D": 500, "C": 100, "I": 1, "V": 5, "X": 10, "L": 50}
_COUNT = re.compile(rf"(?:{COUNTED})$", re.IGNORECASE)
_TITLE = re.compile(rf"(?<!\w)({'|'.join(_TITLES)})\.?(?=\s+(?:(?:and|&)\s+)?[A-Z])")
_STREET = re.compile(rf"(?<=[a-z0-9] )({'|'.join(_STREETS)})\b(\.?)(?!\w)")
_AVENUE = re.compile(r"(?<!\w)(Ave|Av|Blvd)\.(?=\s[A-Z])")  # "Ave. Foch"
_NAMED = re.compile(r"(?:[A-Z][\w'’-]{1,30}|[0-9]{1,4}(?:st|nd|rd|th))\s$")
_DOCTOR = re.compile(
    r"\b((?i:the|an?|my|your|his|her|our|their|this|that) )Dr\.?(?=\s[a-z]|[,;:!?])"
)
_SAINT = re.compile(r"(?<!\w)(?:St|Ste)\b\.?(?=\s?[A-Z][a-z])")
_AFTER = re.compile(
    rf"(?:(?<=[\w&])|(?<=\.)(?=,))(,?\s)({'|'.join(_AFTER_NAMES)})(?:\.|\b(?!\.))(?!\w)"
)
_NUMBERED = re.compile(
    r"(?<![\w.'’])(?:(?<![0-9]\s)|(?=No\.))"
    rf"((?i:{'|'.join(sorted(_BEFORE_NUMBERS, key=len, reverse=True))}))\.\s?"
    r"(?=[(\[]?#?[0-9]|(?<=[Nn]o\.\s)[A-Z]{1,4}-?[0-9]|(?!I\b)[IVXL]{1,6}\b|(?<=[Vv]ol\.\s)I\b(?!['’]|\s[a-hj-z]))"
)
_CITED = re.compile(r"(?:^|[(\[;,]\s?|\b(?:see|in|of|by|from|and|cf\.)\s)$", re.IGNORECASE)
_INSIDE = re.compile(r"[a-z,]\s$")  # a sentence, where a capital begins a name
_DETERMINER = re.compile(r"(?:\b(?:the|my|his|her|its|our|your)|['’]s)\s$", re.IGNORECASE)
_PHRASE = re.compile(
    "|".join(
        rf"(?<![\w./]){re.escape(phrase)}" + ("" if phrase[-1] == "." else r"(?![\w/])")
        for phrase in sorted(_PHRASES, key=len, reverse=True)
    ),
    re.IGNORECASE,
)
_WITH = re.compile(r"(?<!\w)w/(?:\s|(?=\w\w))(?=\w)")
_VERSUS = re.compile(r"(?:^|(?<=\s))v\.? (?=[A-Z])")
_SHOUTED_TITLE = re.compile(r"(?<!\w)(?:MR|MRS|MS|DR|PROF|CAPT|LT|SGT|REV|ST)\.(?=\s[A-Z]{2})")
_SHOUTED_NAME = re.compile(r"\b[A-Z]{3,12}(?=\s(?=[IVXL]{1,8}\b)(?!I\s))")
_EXTENSION = re.compile(r"(?<!\w)[Ee]xt\.\s?(?=[0-9])")
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_ESTIMATED = re.compile(r"\best\.(?!\s[1-9][0-9]{3}(?!\w)|\s(?:in|by)\b)")
_LIFE = re.compile(
    r"(?<![\w.])(c|(?:(?<=\()|(?<=[,;]\s))(?:[bdr]|fl))\.\s?(?=(?:c\.\s?)?[1-9][0-9]{2,3}(?!\w))"
    rf"|(?<![\w.])([bd])\.\s(?=[0-3]?[0-9]\s(?:{_MONTHS})|(?:{_MONTHS})[a-z.]{{0,7}}\s[0-9])"
)
_LIVED = {"c": "circa", "b": "born", "d": "died", "r": "reigned", "fl": "flourished"}
_OK = re.compile(r"(?<![\w.-])(?:OK|Ok|ok)(?=(?:'s|’s|'d|’d)?(?![\w-]))(?!\s[0-9]{5})")
_DOTTED = re.compile(
    r"(?<![\w.])(?:Ph\.?D|B\.?Sc|M\.?Sc|Ed\.?D|LL\.?[BMD])(?:s\b|\b\.?)|(?<![\w.])(?:[A-Za-z]\.){2,8}(?:s\b)?(?!\w)"
    r"|(?<![\w.])(?:[A-Z]\.){1,8}[A-Z](?![\w.])"
)
_INITIAL = re.compile(r"(?<![\w.])([B-HJ-Z]|[AI](?=\.\s[A-Z]\.))\.(?=\s?[A-Z][a-zà-ÿ.])")
_LETTER = re.compile(r"(?<![\w'’.])([B-HJ-NP-Z])(?![\w'’]|\.[A-Za-z])")
_SMALL_LETTER = re.compile(r"(?<![\w'’.</-])(?<!\w`)([b-hj-np-z])(?![\w'’/-]|\.\w)")  # "x is 5"
_CLIPPED = re.compile(  # "it s", "don t", "I m" of texts that lost their marks
    r"(?:\b(?:it|that|he|she|what|there|let|who|where|here|how|I|you|we|they|"
    r"(?:do|does|did|is|was|are|were|have|has|had|ca|wo|could|would|should)n)\s$)",
    re.IGNORECASE,
)
_OWNER = re.compile(  # "John s book", "the dog s tail"
    r"\b(?:[A-Z][a-z]{2,}|(?:wo)?m[ae]n|children|child|people|one|day|today|world|mother|father|"
    r"brother|sister|dog|cat)\s$"
)
_FOREIGN = re.compile(r"[A-ZÀ-Ý][a-zà-ÿ]{2,}\s$")  # "Ortega y Gasset", "Tome e Principe"
_LETTER_A = re.compile(
    r"(?<=\b(?i:plan|from|type|team|unit|part|side)\s)A(?!\w)|(?<=\b(?i:grade|group|point|class|level)\s)A(?!\w)|"
    r"(?<=\b(?i:vitamin|section|exhibit)\s)A(?!\w)|(?<=\b(?i:appendix|terminal)\s)A(?!\w)|"
    r"(?<=\bhepatitis\s)A(?!\w)|(?<!\w)A(?=,\s[B-Z](?:,|\s(?:and|or)\b))|(?<=\b(?i:option|letter|answer)\s)A(?!\w)|(?<=\b(?i:an)\s)A(?!\w)|"
    r"(?<=\b[Tt]he )A(?=\s(?:train|team|list|level)s?\b)|"
    r"(?<!\w)A(?=\s(?:to|or|and|&|→|->)\s[B-Z]\b)"
)
_LETTERS_OF = re.compile(  # "Ps and Qs", "A's"; "As", "Is", "Ms" and "Us" are words
    r"(?<![\w'’.])(?:([B-HJ-LN-TW-Z])s(?!\s[0-9])|(?<=[Ss]traight )(A)s|([A-Za-z])['’]s)(?![\w'’])"
)
_HYPHENED = re.compile(r"(?<!\w['’])(?<![\w-])([A-Za-z])-(?=[a-z]{2})")
_SURNAME = re.compile(r"\s[A-Z][a-z]")
_OPENS = re.compile(  # what begins a sentence rather than a name
    r"[\"'”’)\]]*\s+[\"“‘']?(?:The|Then|This|That|These|Those|There|He|She|It|We|They|I|You|But|And|"
    r"So|In|On|At|After|Before|When|If|My|His|Her|Our|Their|No|Yes|What|Why|How|Who|An?)\b"
)
_ENDS = re.compile(r"\s*(?:[\"'”’)\]]*\s*$|[\"'”’)\]]*\s+[A-Z])")


def abbreviations(text: str, before: str) -> str:
    """The text with its abbreviations and Roman numerals written out. `before`: to its left."""
    if text.startswith("no. ") and text[4:5].islower() and _DETERMINER.search(before):
        text = f"number{text[3:]}"
    if text.startswith("ft. ") and text[4:5].isupper() and _NAMED.search(before):
        text = f"featuring{text[3:]}"
    text = _LAW.sub(lambda match: _say_law(match, before), text)
    text = _SHOUTED_TITLE.sub(lambda match: match[0].capitalize(), text)
    text = _SHOUTED_NAME.sub(_say_shouted_name, text)
    text = _EXTENSION.sub("extension ", text)
    text = _ESTIMATED.sub(_say_estimated, text)
    text = _PHRASE.sub(_say_phrase, text)
    text = _WITH.sub("with ", text)
    text = _LIFE.sub(lambda match: f"{_LIVED[match[1] or match[2]]} ", text)
    text = _OK.sub("okay", text)
    text = _NUMBERED.sub(lambda match: _say_numbered(match, before), text)
    text = _DOCTOR.sub(r"\1doctor", text)
    text = _STREET.sub(_say_street, text)
    text = _AVENUE.sub(lambda match: _STREETS[match[1]], text)
    text = _TITLE.sub(_say_title, text)
    text = _SAINT.sub("Saint", text)
    text = _AFTER.sub(_say_after, text)
    text = _VERSUS.sub("versus ", text)
    text = _CENTURY.sub(lambda m: ordinal(str(roman_value(m[1]))), text)
    text = _NTH.sub(lambda m: m[0] if len(m[1]) < 2 else ordinal(str(roman_value(m[1]))), text)
    text = _ROMAN_YEAR.sub(lambda m: year(str(roman_value(m[0]))), text)
    text = _ROMAN.sub(_say_roman, _SERIES.sub(_say_series, text))
    return _ALONE.sub(lambda m: cardinal(str(roman_value(m[0]))), text)


def dotted(text: str) -> str:
    """ "U.S.", "Ph.D.": after the times of day, which end with such letters."""
    return _DOTTED.sub(_say_dotted, text)


def ends_sentence(tail: str) -> bool:
    """Whether a full stop before this also ends the sentence."""
    return not tail.strip("\"'”’)] ") or bool(_OPENS.match(tail))


def single_letters(text: str, before: str) -> str:
    """Letters that stand alone: initials, "plan B", "X-ray". `before`: to the left."""
    text = _HYPHENED.sub(_say_hyphened, text)
    text = _LETTERS_OF.sub(_say_letters_of, _INITIAL.sub(_say_initial, text))
    text = _LETTER_A.sub("eigh", text)
    text = _SMALL_LETTER.sub(lambda match: _say_small(match, before), text)
    return _LETTER.sub(lambda m: letter_names(m[1]), text)


def _say_small(match: re.Match[str], before: str) -> str:
    left, right = before + match.string[: match.start()], match.string[match.end() :]
    clipped = match[1] in "dmst" and _CLIPPED.search(left)
    owned = match[1] == "s" and _OWNER.search(left) and right[:1].isspace()
    named = match[1] in "ey" and _FOREIGN.search(left) and re.match(r"\s[A-Z][a-z]{2}", right)
    return match[0] if clipped or owned or named else letter_names(match[1])


def _say_letters_of(match: re.Match[str]) -> str:
    name = letter_names(match[1] or match[2] or match[3])
    return f"{name}{'es' if name.endswith(('s', 'x', 'ch')) else 's'}"


def _say_hyphened(match: re.Match[str]) -> str:
    return match[0] if match[1] in "aI" else f"{letter_names(match[1])} "


def _say_numbered(match: re.Match[str], before: str) -> str:
    left = before + match.string[: match.start()]
    named = match[1] in ("Max", "Ed") and _INSIDE.search(left)
    spoken = match[1] in ("ex", "def") and not _CITED.search(left)
    return match[0] if named or spoken else f"{_BEFORE_NUMBERS[match[1].lower()]} "


def _say_initial(match: re.Match[str]) -> str:
    """ "B. Smith"; the stop of "plan B. Then" stays."""
    tail = match.string[match.end() :]
    return letter_names(match[1]) + ("." if _OPENS.match(tail) else "")


def _say_title(match: re.Match[str]) -> str:
    bare = not match[0].endswith(".")
    return match[0] if bare and match[1] not in _UNSTOPPED else _TITLES[match[1]]


def _say_street(match: re.Match[str]) -> str:
    """ "Maple Dr. after" is a street, "Oak Dr. Smith" is not; "12 Main St. Boston" is one."""
    before = match.string[: match.start()]
    if not _NAMED.search(before):
        return match[0]
    named = re.match(r"\s[A-Z][a-z]", match.string[match.end() :])
    numbered = re.search(r"[0-9]{1,5}[A-Za-z]?\s(?:[A-Z][\w.'’-]{1,30}\s){1,3}$", before)
    tail = match.string[match.end() :]
    if named and not numbered and not _OPENS.match(tail):
        return match[0]
    ends = match[2] and ends_sentence(tail)
    return f"{_STREETS[match[1]]}{'.' if ends else ''}"


def _say_after(match: re.Match[str]) -> str:
    spoken = f"{match[1]}{_AFTER_NAMES[match[2]]}"
    if not match[0].endswith("."):
        return spoken if match[2] in ("Jr", "Inc", "Ltd", "Corp") else match[0]
    return f"{spoken}." if _ENDS.match(match.string[match.end() :]) and match[2] != "Co" else spoken


def _say_phrase(match: re.Match[str]) -> str:
    """A full stop that also ends the sentence is kept."""
    if match[0] in ("EST.", "Ono"):  # a time zone; Yoko
        return match[0]
    spoken = _PHRASES[match[0].lower()]
    capital = match[0][0].isupper() and match[0][1:].islower()  # no "YoY"
    spoken = spoken[0].upper() + spoken[1:] if capital else spoken
    tail = match.string[match.end() :]
    ends = match[0].endswith(".") and (
        _ENDS.match(tail)
        if match[0].lower() == "etc."
        else (ends_sentence(tail) if match[0].lower() == "et al." else not tail.strip("\"'”’)] "))
    )
    return f"{spoken}." if ends else spoken


def _say_estimated(match: re.Match[str]) -> str:
    """ "$3.10 est."; "est. 1998" is no estimate."""
    return "estimated" + ("." if ends_sentence(match.string[match.end() :]) else "")


def _say_dotted(match: re.Match[str]) -> str:
    spoken = letter_names(match[0].rstrip("s")) + ("s" if match[0].endswith("s") else "")
    ends = match[0].endswith(".") and ends_sentence(match.string[match.end() :])
    return f"{spoken}." if ends else spoken


def _say_shouted_name(match: re.Match[str]) -> str:
    """ "GEORGE VI", "CHAPTER IV": as small letters, so that the numeral is seen."""
    name = match[0].capitalize()
    return name if name in _RULERS or _COUNT.match(name) else match[0]


def _say_law(match: re.Match[str], before: str) -> str:
    if not match.start() and before.rstrip()[-1:] not in (".", "!", "?"):
        return match[0]
    return cardinal(str(roman_value(match[1]))).capitalize()


def _say_roman(match: re.Match[str]) -> str:
    name, numeral, tail = match[1], match[2], match[3] or ""
    value = roman_value(numeral)
    last = name.split()[-1]
    counted = _COUNT.search(last)
    titled = " " in name
    meant = _DETERMINER.search(match.string[: match.start()])  # "the George I admired"
    single = len(numeral) == 1 and not (
        counted
        or titled
        or (last in _RULERS and (numeral == "V" or (numeral == "I" and tail and not meant)))
    )
    after = match.string[match.end() :]
    initial = tail == "." and len(numeral) == 1 and _SURNAME.match(after)  # "Robert V. Daniels"
    if numeral == "XL" and not counted:  # a size
        return match[0]
    if not value or single or (initial and not counted and not _OPENS.match(after)):
        return match[0]
    if not counted and (titled or last in _RULERS):
        return f"{name} the {ordinal(str(value))}{tail}"
    return f"{name} {cardinal(str(value))}{tail}"


def _say_series(match: re.Match[str]) -> str:
    """In figures, if the numerals rise: "Henry VIII and I" do not."""
    if match.string[: match.start()].split()[-1:] in [[name] for name in _RULERS]:
        return match[0]
    values = [roman_value(each) for each in re.findall(r"[IVX]+", match[0])]
    if values != sorted(set(values)) or not re.search(r"[IVX]{2}", match[0]):
        return match[0]
    return re.sub(r"[IVX]+", lambda each: str(roman_value(each[0])), match[0])


def roman_value(numeral: str) -> int:
    values = [_DIGITS[letter] for letter in numeral]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )
