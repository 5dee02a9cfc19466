"""Web and mail addresses, telephone numbers, and codes of letters and digits as they are said."""

from __future__ import annotations

import re

from engine.text.letters import LETTERED, WORDS, letter_names, pronounceable, say_capitals
from engine.text.number_words import cardinal, english_figures, number, spelled

_MARKS = {
    ".": "dot", "/": "slash", "-": "dash", "_": "underscore", "?": "question mark", "=": "equals",
    "&": "and", "#": "hash", "%": "percent", ":": "colon", "~": "tilde", "+": "plus", "@": "at",
    ",": "comma", ";": "semicolon", "!": "exclamation mark", "$": "dollar", "*": "star",
}  # fmt: skip
_ENDINGS = (
    "com|org|net|edu|gov|info|mil|int|co|io|ai|app|dev|me|tv|uk|us|de|fr|eu|ca|au|nz|in|jp|cn|ch|at|"
    "es|it|nl|se|no|dk|fi|be|ie|pl|br|ru"
)
_FILES = (
    "cpp|java|sh|css|sql|ya?ml|ini|log|bat|svg|gz|php|mov|avi|flac|ogg|webp|odt|"
    "txt|pdf|docx?|xlsx?|pptx?|csv|json|xml|html?|jpe?g|png|gif|mp3|mp4|wav|zip|py|js|exe|epub|md"
)
_SAID_ENDINGS = {
    "com",
    "org",
    "net",
    "edu",
    "gov",
    "info",
    "mil",
    "app",
    "co",
    "dev",
    "docx",
    "java",
    "log",
    "bat",
    "zip",
}
_SERVICES = {
    "gmail": "gee mail", "hotmail": "hot mail", "icloud": "eye cloud", "github": "git hub",
    "youtube": "you tube", "facebook": "face book", "linkedin": "linked in", "ebay": "ee bay",
}  # fmt: skip
_LOCAL = r"[A-Za-z0-9][A-Za-z0-9_%+-]{0,63}(?:\.[A-Za-z0-9_%+-]{1,64}){0,6}"
_HOST = r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,6}"
_TAIL = r"(?:[/?#][^\s<>\"“”]{0,200})?"
_MAIL = re.compile(rf"(?<![\w@]){_LOCAL}@{_HOST}(?![\w@])")
_URL = re.compile(
    r"(?<![\w@])(?:https?://|ftp://|file:///?|www\.)[^\s<>\"“”]{1,300}", re.IGNORECASE
)
_DOMAIN = re.compile(
    rf"(?<![\w@.-])(?:{_HOST})\.(?:{_ENDINGS})(?::[0-9]{{2,5}})?{_TAIL}(?![\w@])(?!\.[a-z0-9])"
)
_FILE = re.compile(
    rf"(?<![\w@./-])[A-Za-z][\w-]{{0,60}}(?:\.[\w-]{{1,30}}){{0,2}}\.(?i:{_FILES})(?![\w@])"
)
_HANDLE = re.compile(r"(?<![\w@])@([A-Za-z]\w{0,40})")
_TAG = re.compile(r"(?<![\w#])#([A-Za-z]\w{0,60}|[0-9]{1,4}[A-Z]?[a-z]{2}\w{0,60})")
_ADDRESS = re.compile(r"(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{1,5})?(?![\w]|\.[0-9])")
_SPACED = re.compile(  # "1 000 000"
    r"(?<![\w.,])(?<![0-9]\s)[1-9][0-9]{0,2}(?:(?:[ \u00a0\u202f][0-9]{3}){1,4}[ \u00a0\u202f]000|"
    r"(?:[\u00a0\u202f][0-9]{3}){1,5}| 000(?=\s[a-z]|[^\w\s]|$)|"
    r"(?: [0-9]{3}){2,4}(?=\s?(?:[a-z]{2}|[€%]))|"
    r" [0-9]00(?=\s?(?:€|km\b|kg\b|people\b|euros?\b|francs?\b|inhabitants\b|copies\b|members\b)))"
    r"(?![\w]|[.,\s][0-9])"
)
_PATH = re.compile(r"(?<![\w/:.<])/(?=[A-Za-z_.])(?:[\w.-]{1,40}/){1,8}[\w.-]{0,40}")
_CHESS = re.compile(r"(?<![\w-])([KQRBN])([a-h1-8]?)(x?)([a-h])([1-8])([+#]?)(?![\w-])")
_PIECES = {"K": "king", "Q": "queen", "R": "rook", "B": "bishop", "N": "knight"}
_VERSION = re.compile(
    r"(?<![\w.])(?:[vV]\.?\s?)?[0-9]{1,4}(?:\.[0-9]{1,6}){2,4}(?![\w]|\.[0-9])|(?<![\w.])(?:v\.?|V\.|V(?=[0-9]{1,4}\.[0-9]))[0-9]{1,4}(?:\.[0-9]{1,4})?(?![\w]|\.[0-9])"
)
_PHONE = re.compile(
    r"(?<![\w.,])(?:\+[0-9]{1,3}[\s.-]?)?(?:\([0-9]{1,5}\)[\s.-]?)?[0-9]{1,6}(?:[\s.-][0-9]{2,8}){0,5}"
    r"(?![\w]|[.,/-][0-9])"
)
_IBAN = re.compile(
    r"(?<!\w)[A-Z]{2}[0-9]{2}\s?(?:[A-Z]{4}\s?)?(?:[0-9]{4}\s?){2,6}[0-9]{0,4}(?![\w]|[.,][0-9])"
)
_ZIP = re.compile(
    r"(?:(?<=\bD\.C\. )|"
    r"(?<=\b(?:AL|AK|AZ|AR|CA|CO|CT|DE|DC|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|"
    r"NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|PA|RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY) ))"
    r"[0-9]{5}(?:-[0-9]{4})?(?![\w-]|[.,][0-9])"
)
_GROUPS = re.compile(r"(?<![\w.,])[0-9]{1,13}(?:-[0-9]{1,13}){2,7}(?:-[Xx])?(?![\w-])")
_MIXED = re.compile(
    r"(?<![\w.,@-])(?=[A-Za-z0-9-]{0,20}[A-Za-z])(?=[A-Za-z-]{0,20}[0-9])[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20}){0,3}(?![\w@])"
)
_FLIGHT = re.compile(r"(?<=light )([A-Z]{2})\s?([0-9]{2,4})(?!\w)")
_OF = re.compile(r"(?<!\w)(?!CoV)[A-Z]o[A-Z](?!\w)")  # "DoD"
_CAMEL = re.compile(
    r"(?<!\w)[a-z]{0,20}(?:[A-Z][a-z]{1,20}){0,6}(?<=[a-z])[A-Z]{1,4}(?:[a-z]{1,20})?(?:[A-Z][a-z]{0,20}){0,4}(?!\w)"
)
_CALLED = re.compile(
    r"\b(?:call|dial|ring|text|phone|tel\.?|number|fax|mobile|cell)(?:\s\w{1,8})?[\s:]{1,2}$",
    re.IGNORECASE,
)
_PLUS = re.compile(r"(?<!\w)([A-Z])(\+{1,2}|#)(?!\w)")
_MINUS = re.compile(r"(?<![\w-])(AB|[A-DFO])[-−](?=[,.;:!?)]|\s[a-z]|$)")
_EITHER = re.compile(r"(?<![\w/.])([A-Za-z])/([A-Za-z])(?![\w/])")
_LETTERS = re.compile(r"(?<![\w-])([A-Z])([-–])([A-Z])(?![\w-])")
_TO = re.compile(r"(?<![\w-])([A-Z])-to-([A-Z])(?![\w-])")
_AND = re.compile(r"(?<!\w)([A-Z]{1,3})&([A-Z]{1,3})(s?)(?!\w)")
_DOT_NAME = re.compile(
    rf"(?<![\w.])\.(?=(?:NET|com|org|net|edu|gov|io|ai|env|bashrc|zshrc|git|gitignore|{_FILES})(?!\w))"
)


def addresses(text: str) -> str:
    """What names a place in the net or a file."""
    text = _MAIL.sub(lambda match: _say_address(match[0]), text)
    text = _URL.sub(lambda match: _say_url(match[0]), text)
    text = _DOMAIN.sub(lambda match: _say_url(match[0]), text)
    text = _PATH.sub(lambda match: _say_path(match[0]), text)
    text = _FILE.sub(lambda match: _say_address(match[0]), text)
    text = _HANDLE.sub(lambda match: f"at {_words(match[1])}", text)
    return _TAG.sub(_say_tag, text)


def codes(text: str, before: str) -> str:
    """Telephone numbers, versions and long codes."""
    text = english_figures(text)
    text = _ADDRESS.sub(_say_ip, text)
    text = _VERSION.sub(lambda match: _say_version(match, before), text)
    text = _ZIP.sub(lambda m: ", ".join(spelled(each) for each in m[0].split("-")), text)
    text = _GROUPS.sub(_say_groups, text)
    text = _IBAN.sub(_say_iban, text)
    text = _PHONE.sub(lambda match: _say_phone(match, before), text)
    return _SPACED.sub(lambda match: re.sub(r"\s", "", match[0]), text)


def mixed_words(text: str) -> str:
    """Words of letters and digits, or of small letters and capitals: "A4", "C++", "iPhone"."""
    text = _FLIGHT.sub(lambda m: f"{letter_names(m[1])} {spelled(m[2])}", text)
    text = _CHESS.sub(_say_chess, text)
    text = _PLUS.sub(_say_plus, text)
    text = _MINUS.sub(lambda m: f"{letter_names(m[1])} minus", text)
    text = _TO.sub(lambda m: f"{letter_names(m[1])} to {letter_names(m[2])}", text)
    text = _LETTERS.sub(_say_letters, text)
    text = _EITHER.sub(lambda m: f"{letter_names(m[1])} {letter_names(m[2])}", text)
    text = _AND.sub(lambda m: f"{letter_names(m[1])} and {letter_names(m[2])}{m[3]}", text)
    text = _OF.sub(lambda match: letter_names(match[0]), text)
    text = _DOT_NAME.sub("dot ", text)
    text = _MIXED.sub(lambda match: _say_mixed(match[0]), text)
    return _CAMEL.sub(lambda match: _say_camel(match[0]), text)


def _say_tag(match: re.Match[str]) -> str:
    """ "#MeToo", "#BLM"."""
    named = say_capitals(match[1]) if match[1].isupper() else _words(match[1])
    return f"hashtag {named}"


def _say_url(url: str) -> str:
    core = url.rstrip(".,;:!?)'’]")
    spoken = _say_address(
        re.sub(r"^(?:https?|ftp|file)://", "", core, flags=re.IGNORECASE).rstrip("/")
    )
    return spoken + url[len(core) :].replace(")", "")


def _say_letters(match: re.Match[str]) -> str:
    """ "A–Z"; "X-Y" is no range."""
    first, dash, last = match.groups()
    ranged = first < last and (dash == "–" or first == "A")
    return f"{letter_names(first)} {'to ' if ranged else ''}{letter_names(last)}"


def _say_path(path: str) -> str:
    core = path.rstrip(".-")
    return _say_address(core) + path[len(core) :]


def _say_chess(match: re.Match[str]) -> str:
    """ "Nf3" -> "knight eff three"."""
    piece, origin, takes, file, rank, threat = match.groups()
    which = letter_names(origin) if origin.isalpha() else cardinal(origin) if origin else ""
    ending = {"+": "check", "#": "mate"}.get(threat, "")
    words = (_PIECES[piece], which, takes and "takes", letter_names(file), cardinal(rank), ending)
    return " ".join(filter(None, words))


def _say_address(address: str) -> str:
    parts = re.findall(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9\s]", address)
    spoken = []
    for place, part in enumerate(parts):
        if part.isalpha():
            ending = place > 0 and parts[place - 1] == "."
            spoken.append(_name(part, ending))
        elif part.isdecimal():
            spoken.append(number(part) if len(part) < 4 else spelled(part))
        else:
            spoken.append(_MARKS.get(part, ""))
    return " ".join(filter(None, spoken))


def _name(part: str, ending: bool) -> str:
    small = part.lower()
    if small in _SAID_ENDINGS or small in _SERVICES:
        return _SERVICES.get(small, small)
    if ending and (len(part) < 3 or re.fullmatch(_FILES, small)):
        return letter_names(small)
    if len(part) == 1 or small == "www" or part.upper() in LETTERED - {"IT", "US", "AM", "ME"}:
        return letter_names(small)
    return _words(part) if pronounceable(part.upper()) or len(part) > 5 else letter_names(small)


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()


def _say_ip(match: re.Match[str]) -> str:
    host, _, port = match[0].partition(":")
    spoken = " dot ".join(spelled(part) for part in host.split("."))
    return f"{spoken} port {spelled(port)}" if port else spoken


def _say_version(match: re.Match[str], before: str) -> str:
    spoken = " point ".join(number(part) for part in re.findall(r"[0-9]+", match[0]))
    left = (before + match.string[: match.start()]).rstrip().lower()
    named = left.endswith(("version", "release")) or match[0][0] not in "vV"
    return spoken if named else f"version {spoken}"


def _say_groups(match: re.Match[str]) -> str:
    spoken = ", ".join(map(_group, re.findall(r"[0-9]+", match[0])))
    return f"{spoken} ex" if match[0][-1] in "Xx" else spoken


def _say_iban(match: re.Match[str]) -> str:
    """Letters and figures in fours."""
    signs = re.sub(r"\s", "", match[0])
    fours = (signs[at : at + 4] for at in range(0, len(signs), 4))
    spoken = ", ".join(
        " ".join(letter_names(each) or spelled(each) for each in four) for four in fours
    )
    return spoken + (" " if match[0][-1].isspace() else "")


def _group(digits: str) -> str:
    """ "800" is a hundred's multiple on a telephone, "0199" is digits."""
    hundreds = len(digits) == 3 and digits.endswith("00") and digits[0] != "0"
    return cardinal(digits) if hundreds else spelled(digits)


def _say_phone(match: re.Match[str], before: str) -> str:
    written = match[0].replace("(0)", "") if match[0][0] == "+" else match[0]
    groups = re.findall(r"[0-9]+", written)
    count = sum(map(len, groups))
    left = (before + match.string[: match.start()])[-30:]
    marked = written[0] in "+(" or (written[0] == "0" and len(groups) > 1)
    called = bool(_CALLED.search(left))
    if re.fullmatch(r"[0-9]\.[0-9]+", written):  # 0.000001
        return match[0]
    if len(groups) == 1 and not (marked and written[0] == "+" and count > 6):
        return match[0]
    if not (count >= 7 and (marked or called or (len(groups) > 2 and " " not in written))):
        return match[0]
    spoken = ", ".join(map(_group, groups))
    return f"plus {spoken}" if written[0] == "+" else spoken


def _say_plus(match: re.Match[str]) -> str:
    return f"{letter_names(match[1])} {'sharp' if match[2] == '#' else ' '.join('plus' for _ in match[2])}"  # noqa: E501


def _say_mixed(token: str) -> str:
    """ "A4", "COVID-19", "B2B", "MP3", "5G"."""
    if not re.search(r"[0-9]", token) or not re.search(r"[A-Za-z]", token):
        return token
    if re.fullmatch(
        r"(?:[A-Za-z]+-)*[0-9]+(?:st|nd|rd|th|s)(?:-[A-Za-z0-9]+)*|[a-z]{2,}-[0-9]{1,4}", token
    ):
        return token
    if re.fullmatch(r"[0-9]{1,4}(?:-[a-z]{3,})+", token):  # a 350-page book
        return token.replace("-", " ", 1)
    spoken = []
    for part in re.findall(r"[A-Za-z]+|[0-9]+", token):
        if part.isdecimal():
            spoken.append(_code_digits(part))
        elif part.isupper() and len(part) > 1:
            spoken.append(say_capitals(part).lower() if part in WORDS else _caps(part))
        elif len(part) == 1:
            spoken.append(letter_names(part))
        else:
            spoken.append(
                _say_camel(part)
                if not part.islower() or pronounceable(part.upper())
                else letter_names(part)
            )
    return " ".join(spoken)


def _caps(part: str) -> str:
    return say_capitals(part) if len(part) > 3 else letter_names(part)


def _code_digits(digits: str) -> str:
    if digits[0] == "0" and len(digits) > 1:
        return spelled(digits)
    if len(digits) < 3 or digits.endswith("00"):
        return cardinal(digits)
    if len(digits) == 3 and digits[2] == "0":  # "A380", "F-150"
        return f"{cardinal(digits[0])} {cardinal(digits[1:])}"
    return spelled(digits)


def _say_camel(word: str) -> str:
    if word.islower() or word.istitle() or word.isupper() or word.startswith(("Mc", "Mac")):
        return word
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", word)
    spoken = [
        letter_names(part)
        if len(part) == 1 or (part.isupper() and part not in WORDS)
        else part.lower()
        for part in parts
    ]
    if word[-1] == "s" and len(parts) > 1 and parts[-1] == "s":  # CEOs
        return " ".join(spoken[:-1]) + "s"
    return " ".join(spoken)
