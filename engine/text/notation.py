"""What musicians, pilots, programmers, biologists and librarians write, as they say it.

"C#m7", "6/8 time", "2 miles N of", "a 737-800", "i < n", "returns a 404", "00:1A:2B:3C:4D:5E",
"E. coli", "doi:10.1038/x". Knows no numbers' names: figures stay figures, or are parted where they
are said one by one.
"""

from __future__ import annotations

import re

from engine.text.letters import letter_names
from engine.text.rules import Rule, rewritten

_QUALITIES = {
    "maj": "major", "M": "major", "min": "minor", "m": "minor", "dim": "diminished",
    "aug": "augmented", "sus": "sus", "add": "add",
}  # fmt: skip
_ACCIDENTALS = {"#": "sharp", "♯": "sharp", "b": "flat", "♭": "flat"}
_QUALITY = r"maj|min|dim|aug|sus|add|m|M"
_CHORD = re.compile(
    rf"(?<![\w.#&/-])([A-G])([#♯♭b]?)({_QUALITY})?([0-9]{{1,2}})?(?:(sus|add|[#♯♭b])([0-9]{{1,2}}))?"
    r"(?:/([A-G])([#♯♭b]?))?(?![\w#♯♭@-])"
)
_PROGRESSION = re.compile(r"(?<![\w-])[A-G][#♯♭b]?m?7?(?:[-–][A-G][#♯♭b]?m?7?){2,12}(?![\w-])")
_SPECIES = (  # behind a shortened genus; common endings of Latin
    r"(?!(?:this|thus|plus|extra|idea|bonus|status)\b)"
    r"(?:[a-z]{2,14}(?:us|is|um|ae|ii|ens|ans|oli|ori|ia|na|ta|ca)|coli|rex|elegans|"
    r"melanogaster|difficile|diff|avium|tigris|lupus|officinale)\b"
)
_LANGUAGES = (
    r"[Vv]ersion(?=\s[1-9])|Python|Node|PHP|Ruby|Django|Ubuntu|Debian|Java|iOS|macOS|Android|"
    "Kotlin|Rails"
)
_TYPES = "int|string|float|bool|char|double|str|String|Integer|Object|any|number|[TKV]"
_OPERAND = r"(?:[a-zA-Z]|[-−]?[0-9]{1,9}(?:\.[0-9]{1,6})?)"
_COMPARED = {"<": "less than", ">": "greater than"}


_WINDS = {
    "N": "north", "S": "south", "E": "east", "W": "west", "NE": "north-east", "NW": "north-west",
    "SE": "south-east", "SW": "south-west",
}  # fmt: skip
_WIND = "|".join(sorted(_WINDS, key=len, reverse=True))
_REGIONS = (
    "London|England|Wales|Ireland|Yorkshire|Sussex|Devon|Korea|Carolina|Dakota|Virginia|America|"
    r"Africa|[A-Z][a-z]{2,20}\s(?:St|Ave|Rd|Blvd|Dr|Street|Avenue|Road)\b"
)


def _said(name: str, accidental: str) -> str:
    return " ".join(filter(None, (letter_names(name), _ACCIDENTALS.get(accidental, ""))))


def _say_chord(match: re.Match[str]) -> str:
    """ "C#m7"; "C3", "AM4", "Amin" and "Db2" may be anything."""
    name, accidental, quality, number, alters, to, bass, low = match.groups()
    usual = number in ("6", "7", "9", "11", "13")
    if quality in ("m", "M"):
        meant = usual or accidental or low
    elif quality:
        meant = quality in ("maj", "dim", "sus") or number or accidental or low
    elif accidental:
        meant = usual or low or (number and accidental != "b")
    else:
        meant = low or (alters and usual)
    if not meant:
        return match[0]
    extra = f"{_ACCIDENTALS.get(alters, alters)} {to}" if alters else ""
    over = f"over {_said(bass, low)}" if bass else ""
    words = (_said(name, accidental), _QUALITIES.get(quality, ""), number, extra, over)
    return " ".join(filter(None, words))


def _say_progression(match: re.Match[str]) -> str:
    chords = re.findall(r"([A-G])([#♯♭b]?)(m?)(7?)", match[0])
    said = ([_said(name, mark), minor and "minor", seven] for name, mark, minor, seven in chords)
    return ", ".join(" ".join(filter(None, words)) for words in said)


def _say_hardware(match: re.Match[str]) -> str:
    """The pairs of a MAC address."""
    return ", ".join(_parted(pair) for pair in re.split(r"[:-]", match[0]))


def _parted(marks: str) -> str:
    return " ".join(letter_names(mark) or mark for mark in marks)


def _say_paper(match: re.Match[str]) -> str:
    """A DOI, sign by sign but for its words."""
    core = match[2].rstrip(".,;)")
    words = []
    for part in re.findall(r"[A-Za-z]+|[0-9]|[./-]", core):
        sign = {".": "point", "/": "slash", "-": "dash"}.get(part, part)
        words.append(letter_names(part) if len(part) < 4 and part.isalpha() else sign.lower())
    return f"{letter_names('doi')} {' '.join(words)}{match[2][len(core) :]}"


def _say_angle(match: re.Match[str]) -> str:
    degrees, minutes, seconds, wind = match.groups()
    parts = [f"{degrees} degrees", f"{minutes} minutes", f"{seconds} seconds" if seconds else ""]
    return " ".join(part for part in (*parts, _WINDS.get(wind or "", "")) if part)


_RULES: tuple[Rule, ...] = (
    (
        re.compile(r"(?<![\w-])O-O(-O)?(?![\w-])"),
        lambda m: f"castles{' queenside' if m[1] else ''}",
    ),
    (re.compile(r"(?<=[a-z])\.(?=\w{2,30}\(\))"), lambda m: " dot "),
    (re.compile(r"(?<=\w)\(\)"), lambda m: ""),
    (re.compile(r"(?:(?<=`)|(?<=\b[Uu]se )|(?<=\bwith )|(?<=\bpass ))--(?=[a-z])"),
     lambda m: "dash dash "),
    (  # an option, no signature and no dash of prose
        re.compile(
            r"(?:(?<!\S)|(?<=`))-(?![AaI]\s[a-z]|[A-Z]\.[\sA-Z])(?=[a-zA-Z](?:[\s`.,;)]|$))"
        ),
        lambda m: "dash ",
    ),
    (_PROGRESSION, _say_progression),
    (
        re.compile(r"(?<![\w/])([2-9]|12)/(2|4|8|16)(?=\s(?:time|metre|meter)\b)"),
        lambda m: f"{m[1]} {m[2]}",
    ),
    (re.compile(r"(?<=\bin )((?:[3-9]|12)(?=/8)|[57](?=/4))/([48])(?=[.;:]|$|\sat\b|,(?!\s[0-9]))"),
     lambda m: f"{m[1]} {m[2]}"),
    (_CHORD, _say_chord),
    (
        re.compile(r"(?<![\w.-])([A-G])([#♯♭b]?)m(?=\s(?:chord|scale|triad|arpeggio)s?\b)"),
        lambda m: f"{_said(m[1], m[2])} minor",
    ),
    (re.compile(rf"(?<![\w.])([A-Z]|e(?=\.\scoli\b))\.\s(?={_SPECIES})"),
     lambda m: f"{letter_names(m[1])} "),
    (
        re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2})(?:\1[0-9A-Fa-f]{2}){4}(?![\w:-])"),
        _say_hardware,
    ),
    (
        re.compile(r"(?<!\w)(?:https?://(?:dx\.)?)?(doi\.org/|doi:?\s?)(10\.[0-9]{4,6}/"
            r"[\w./()-]{1,80})", re.IGNORECASE),
        _say_paper,
    ),
    (  # "returns a 404"
        re.compile(
            r"\b(an?|HTTP|[Ee]rror|[Ss]tatus|[Rr]eturns?|[Cc]ode)\s([45])0([1-9])"
            r"(?=\s(?:if|when|error|not|response|status|code)\b|[,;:)]|\.?\s?$|\.\s|(?<=404)\spage)"
        ),
        lambda m: f"{m[1]} {m[2]} oh {m[3]}",
    ),
    (
        re.compile(rf"\b({_LANGUAGES})\s([0-9]{{1,2}})\.([1-9][0-9])(?!\w|\.[0-9])"),
        lambda m: f"{m[1]} {m[2]} point {m[3]}",
    ),
    (
        re.compile(r"(?<!/)\blocalhost:([0-9]{2,5})(?!\w)"),
        lambda m: f"localhost port {' '.join(m[1])}",
    ),
    (re.compile(r"(?<=\bchmod )([0-7]{3,4})(?!\w)"), lambda m: " ".join(m[1])),
    (re.compile(r"(?<=[A-Za-z])::(?=[A-Za-z])"), lambda m: " "),
    (re.compile(rf"(?<=[a-z]{{2}})<({_TYPES})>"), lambda m: f" of {m[1]}"),
    (  # i < n, p<0.05; no tag's end
        re.compile(rf"(?<![\w<>/.])({_OPERAND})(\s?)([<>])\2(?={_OPERAND})(?![A-Za-z]{{2}}|[a-z]>)"),
        lambda m: f"{m[1]} {_COMPARED[m[3]]} ",
    ),
    (re.compile(r"(?<=[0-9a-z)])\^(?=[a-z](?!\w))"), lambda m: " to the power of "),
    (re.compile(r"(?<![\w/])([abcknpqrtvxyz][²³])/(?=[0-9a-z](?![a-z]))"),
     lambda m: f"{m[1]} over "),
    (re.compile(r"\)/(?=[0-9]{1,3}(?!\w)|[a-z](?!\w))"), lambda m: ") over "),
    (  # v = d/t
        re.compile(r"(?:(?<==\s)|(?<==))(?![Nn]/[Aa]\b)([0-9]{1,3}|[a-zA-Z])/([a-zA-Z])(?![\w/'’])"),
        lambda m: f"{m[1]} over {m[2]}",
    ),
    (re.compile(r"(?<![\w~/])~([A-Za-z][^~\n]{0,80})~(?!\w)"), lambda m: m[1]),
    (re.compile(r"\b([QH][1-4])['’](?=[0-9]{2}(?!\w))"), lambda m: f"{m[1]} "),
    (  # 12345-6789
        re.compile(r"(?<![\w.,-])([0-9]{5})-([0-9]{4})(?![\w-]|[.,][0-9])"),
        lambda m: f"{' '.join(m[1])}, {' '.join(m[2])}",
    ),
    (re.compile(r"\bA([0-9]{1,3})\(M\)"), lambda m: f"A{m[1]} em"),
    (  # a Boeing, not 717-718
        re.compile(
            r"(?<![\w.,/-])(?<!pp\. )(?<!ages )7([0-8])7"
            r"(?:-((?:[1-9]00|[1-4]20|[7-9]|10)(?:ER|LR)?s?)(?![\w-])|[-\s](?=MAX\b))"
        ),
        lambda m: f"7 {m[1]} 7 {m[2] or ''}",
    ),
    (
        re.compile(rf"\b([Ww]inds?(?:\sfrom)?(?:\sthe)?)\s({_WIND})(?!\w)"),
        lambda m: f"{m[1]} {_WINDS[m[2]]}",
    ),
    (  # I-95 N; in the US 60 W are watts
        re.compile(
            r"(?!(?<=[Tt]he )US\s[0-9]{1,3}\sW)"
            r"\b((?:I|US)[-\s]?[0-9]{1,3})\s([NSEW])(?=[\s,.;)]|$)"
        ),
        lambda m: f"{m[1]} {_WINDS[m[2]]}",
    ),
    (re.compile(r"(?<![\w.])([NSEW])\.?\s(?=[0-9]{1,3}(?:st|nd|rd|th)\s(?:St|Ave|Street|Avenue|Pl)\b)"),
     lambda m: f"{_WINDS[m[1]].title()} "),
    (
        re.compile(r"\b((?:St|Ave|Rd|Blvd|Dr|Street|Avenue|Road|Drive)\b\.?)\s(N[EW]|S[EW])(?!\w)"),
        lambda m: f"{m[1]} {_WINDS[m[2]]}",
    ),
    (
        re.compile(r"\b([Hh]ead(?:ed|ing|s)?|[Tt]urn(?:ed|ing)?|[Dd]rive|[Ff]ac(?:es|ing)|[Ww]alk|[Ff]lying|[Mm]oving)\s(due\s)?(N[EW]|S[EW])(?!\w)"),
        lambda m: f"{m[1]} {m[2] or ''}{_WINDS[m[3]]}",
    ),
    (
        re.compile(
            r"(?:\b|(?<=[0-9]))(miles?|mi\.?|km|kilomet(?:re|er)s?|met(?:re|er)s?|yards|mph)"
            rf"\s({_WIND})(?=\s(?:of|from|on|along)\b|[,.;)])"
        ),
        lambda m: f"{m[1]} {_WINDS[m[2]]}",
    ),
    (
        re.compile(rf"(?<![\w.])([NSEW])\.\s(?=(?:{_REGIONS}))"),
        lambda m: f"{_WINDS[m[1]].title()} ",
    ),
    (
        re.compile(
            r"(?<![\w.,])([0-9]{1,3})°\s?([0-9]{1,2})\s?[′'’]"
            r"(?:\s?([0-9]{1,2}(?:\.[0-9]{1,4})?)\s?(?:[″\"”]|''))?(?:\s?([NSEW])(?!\w))?"
        ),
        _say_angle,
    ),
    (re.compile(r"(?<![\w*])A (or|and|to) A\*(?!\w)"), lambda m: f"eigh {m[1]} eigh star"),
    (re.compile(r"(?<![\w*])A\*(?!\w)"), lambda m: "eigh star"),  # a grade, a search
    (re.compile(r"\bTL;\s?DR\b"), lambda m: letter_names("TLDR")),
)  # fmt: skip
_ANY = re.compile(
    r"O-O|\(\)|--|(?:^|[\s`])-[a-zA-Z]|\b[NSEW]{1,2}\b|°|[0-9]{3}-[0-9]|[QH][1-4]['’]|\(M\)|[/#♯♭:<>^~;*]|(?<!\w)[A-G](?:[b-]|(?:maj|min|m|sus|dim|aug|add)(?![a-z]))|\s[A-Z]\.\s[a-z]|^[A-Z]\.\s[a-z]|e\.\scoli|\b7[0-8]7\b|[a-z]\s[0-9]{1,4}"
)


def notation(text: str) -> str:
    return rewritten(text, _RULES, _ANY)
