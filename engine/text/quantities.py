"""Money, measures, shares, fractions, ranges and plain numbers as they are said."""

from __future__ import annotations

import re
import unicodedata

from engine.text.dates import MANY, is_year
from engine.text.letters import letter_names
from engine.text.number_words import cardinal, number, ordinal, pair, raised_to, spelled, year
from engine.text.units import (
    CODES,
    COUNTRIES,
    CURRENCIES,
    LENGTHS,
    PERIODS,
    POWERS,
    SCALE,
    SCALES,
    UNITS,
    agree,
    plural,
)

NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,6}(?:\.[0-9]{1,20})?|[0-9]{1,60}(?:\.[0-9]{1,20})?|\.[0-9]{1,20})"  # noqa: E501
_SPACED_ONLY = {"K", "A", "B", "MP", "N", "J", "ct", "mo", "pt", "cc", "cal"}
_UNIT = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))
_PERIOD = "|".join(re.escape(name) for name in sorted(PERIODS, key=len, reverse=True))
_RUPEES = re.compile(r"\b[Rr]s\.?\s?(?=[0-9])")
_OR = re.compile(r"(?<=[0-9CF%°a-z])\s/\s(?=[-−]?[0-9])")  # "180°C / 350°F"
_FREE = r"(?<![\w.,$£€¥/:-])"
_DASH = r"\s?[-–—−]\s?"
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅒"

_MONEY = re.compile(
    rf"(?<![\w.,])(?P<country>US|AU|CA|NZ|HK|[ACS])?(?P<sign>[$£€¥₹₽₩₿₺₪])\s?(?P<sum>{NUMBER})"
    rf"(?:(?:[kKmMbB]|bn)?{_DASH}(?:[$£€¥])?(?P<high>{NUMBER}))?(?:\s?(?P<scale>{SCALE})(?!\w))?"
    rf"(?:\s?/\s?(?P<per>{_PERIOD})(?!\w)(?:\.(?=\s[a-z(]|,|\)))?)?(?![\w])"
)
_CENTS = r"\s(?:each|apiece|off|a|per|coins?|stamps?|pieces?)\b"
_SIGN_AFTER = re.compile(
    rf"{_FREE}(?P<sum>{NUMBER})\s?(?P<scale>{SCALE})?\s?(?P<sign>[€£¢₽]|(?<=[0-9])p(?!\w)|(?<=[0-9])c(?={_CENTS}))"
    rf"(?:\s?/\s?(?P<per>{_PERIOD})(?!\w))?"
)
_CODE = re.compile(
    rf"(?<![\w/])(?:(?P<code>{'|'.join(CODES)})\s?(?P<sum>{NUMBER})"
    rf"|(?P<sum2>{NUMBER})\s?(?P<code2>{'|'.join(CODES)}))(?:\s?(?P<scale>{SCALE})(?!\w))?(?!\w)"
)
_FEET = re.compile(r"(?<![\w.,])([0-9]{1,2})\s?['′’]\s?([0-9]{1,2})\s?(?:[\"″”]|''|(?![\w'′]))")
_INCHES = re.compile(
    r"(?<![\w.,\"“”'])([0-9]{1,3}(?:\.[0-9]{1,2})?)(?:[\"″]|''|\s?in\.?(?=\s?[,;)x×])|(?<=[0-9])in(?=\s[a-z])|\s?in\.(?=\s[a-z]|\s?$)|\s?in(?=\s?=\s?[0-9])|\s?in(?=\s(?:thick|tall|long|wide|deep|high)\b))"
)
_TALL = re.compile(
    r"(?<![\w.,'‘])([0-9]{1,3})\s?(?:['’](?=\s(?:tall|long|wide|deep|high|thick|by|x)\b)|′)(?!\s?[0-9])"
    r"|(?<=\b[Aa]\s)([0-9]{1,2})['’](?=\s[a-z]{3})"
)
_DIVIDED = re.compile(r"(?<![\w.,/])([0-9]{1,9})\s?/\s?([0-9]{1,9})(?=\s?=)")
_PRODUCT = re.compile(r"(?<=[0-9])\s?[x×]\s?(?=[0-9]{1,9}\s?[=≠<>≤≥≈])")
_RATED = re.compile(r"(?<![\w.,/])([0-9]{1,3}\.[0-9]{1,2})/([0-9]{1,3}(?:\.0)?)(?![\w/]|[.,][0-9])")
_MEASURE = re.compile(
    rf"{_FREE}(?P<minus>[-−])?(?:(?P<low>{NUMBER}){_DASH})?(?P<amount>{NUMBER})(?P<space>[\s-]?)"
    rf"(?:(?P<power>sq|cu)\.?\s(?P<plain>ft|m|km|mi|in|yd)|(?P<unit>{_UNIT})(?P<raised>[²³]|\^[23]|(?<=[0-9ckm\s]m)[23](?![0-9]))?"
    rf"(?:/(?P<per>{_PERIOD})(?P<perraised>[²³])?)?)(?![\w°²³]|['’]s\b)(?:\.(?=\s[a-z(]|,|\)|\s[0-9]{{1,2}}\s?oz))?"
)
_PERCENT = re.compile(
    rf"(?<![\w.,])(?P<minus>[-−+])?(?:(?P<low>{NUMBER})\s?%?{_DASH})?(?P<rate>{NUMBER})\s?(?P<sign>[%‰])"
)
_MIXED = re.compile(
    rf"(?<![\w.,/])([0-9]{{1,4}})(?:\s?([{_VULGAR}])|[\s-]([1-9])/([2-9]|1[0-6])(?![\w/]))"
)
_FRACTION = re.compile(
    rf"(?<![\w.,/$£€-])(?:([0-9]{{1,4}})/([0-9]{{1,4}})|([{_VULGAR}]))(?![\w/]|[.,]\w)"
)
_PRESSURE = re.compile(r"(?<![\w.,/])([0-9]{2,3})/([0-9]{2,3})(?=\s?mm\s?Hg\b)")
_STONE = re.compile(r"(?<![\w.,])([0-9]{1,2})\s?st\.?(?=,?\s[0-9]{1,2}\s?lbs?\b)")
_BARE_UNIT = re.compile(  # behind a fraction or "per"
    r"(?<=[a-z] )(tsps?|tbsps?|lbs?|fl oz|(?<!fl )oz|kg|km|cm|ml|yrs|hrs|mins|wks|secs|rpm|mph)\b"
    r"(?:\.(?=\s[a-z(]|,))?"
)
_SCALE_WORD = re.compile(
    r"\b(?:thousand|million|billion|trillion|and an? [a-z-]{4,9}|and [a-z]{3,5} [a-z-]{5,9}s|"
    r"power of (?:minus )?[a-z-]{3,14})\s$"
)
_MINUTES = re.compile(r"\b(?:mins?|minutes?)\.?,?\s$")
_AFTER_SECONDS = re.compile(r"[,;)]|\.?$|\s(?:at|and|then|on|before|per)\b")  # "30 s, "
_SCIENTIFIC = re.compile(
    r"(?<![\w.,])([0-9]{1,6}(?:\.[0-9]{1,9})?)(?:e|E(?=[-+−])|\s?[x×*·]\s?10\^)([-+−]?)([0-9]{1,3})(?!\w)"
)
_EQUATION = re.compile(r"[=^²³]")
_TERM = re.compile(r"(?<![\w.,])([0-9]{1,6}(?:\.[0-9]{1,6})?)([a-z])(?![^\W²³]|['’])")
_LESS = re.compile(r"(?<=[\w²³)])\s[-–−]\s(?=[0-9]|\(|[a-z](?:[\s²³^]|$))")
_FEET_INCHES = re.compile(r"(?<![\w.,])([0-9]{1,2})\s?ft\.?\s([0-9]{1,2})\s?in\b\.?")
_ACROSS = re.compile(r"(?:(?<=inches)|(?<=meters)|(?<=feet)|(?<=foot))\s?[x×]\s(?=\w)")
_POWER = re.compile(r"(?<=[0-9A-Za-z)])(?:\^(-?[0-9]{1,3})|([²³]))")
_LONE = re.compile(
    rf"(?<![\w°/])(?:({'|'.join(LENGTHS)})([²³])|({_UNIT})/({_PERIOD})|(µ[gms]|µm)|([kMGT]Wh|[kMG]Hz|[MG]bps|[mk]ph))(?![\w/])"
)
_COMPASS = re.compile(r"(?<=[0-9])\s?°\s?([NSEW])(?!\w)")
_SEASON = re.compile(r"(?<![\w.,/-])([12][0-9]{3})/([0-9]{2}|[12][0-9]{3})(?![\w/])")
_ORDINALS = re.compile(r"(?<=[0-9](?:st|nd|rd|th))\s?[-–]\s?(?=[0-9]{1,4}(?:st|nd|rd|th))")
_COMPARED = re.compile(r"(?<![\w<>])([<>])\s?(?=[0-9$£€.])")
_TIMES = re.compile(
    r"(?:(?<![\w.,])|(?<=[0-9][x×]))([0-9]{1,5}(?:\.[0-9]{1,3})?)\s?[x×]\s?(?=[0-9])"
)
_FOLD = re.compile(r"(?<![\w.,])([0-9]{1,4}(?:\.[0-9]{1,2})?)\s?[x×](?![\w²³])")
_ORDINAL = re.compile(r"(?<![\w.,])([0-9]{1,3}(?:,[0-9]{3}){0,4}|[0-9]{1,12})(?:st|nd|rd|th)(?!\w)")
_RATIO = re.compile(
    r"(?<![\w.,:])([0-9]{1,4}(?:\.[0-9]{1,2})?)(?::|\s:\s)([0-9]{1,3})(?![\w:]|\.[0-9])"
)
_RANGE = re.compile(rf"(?<![\w.,/:$£€¥-])({NUMBER}){_DASH}({NUMBER})(?![\w]|[.,:/-][0-9]|\s?=)")
_SUM = re.compile(r"(?<=[0-9])\s?([-−–+×÷*=<>≤≥±])\s?(?=[-−]?[0-9])")
_SCALED = re.compile(rf"{_FREE}({NUMBER})\s?([kKMmB]|bn|mn)(?![\w])")
_JOINED = re.compile(  # "100k", "2M views", and no "4K", "seat 14B"
    rf"{_FREE}((?:[0-9]{{2,9}}|[0-9]{{1,9}}\.[0-9]{{1,9}})(?=[kKM]|[bmt]n\b)|[0-9](?=[bmt]n\b)|[0-9]{{1,9}}(?=M\s(?!is\b|has\b|was\b)[a-z]{{2,20}}s\b|M\speople\b))([kKM]|[bmt]n)(?!\w)"
)
_PER_HUNDRED = re.compile(
    r"(?<=[0-9\s][lLgm])/(?=[0-9]{1,4}\s?[a-zA-Z])|(?<=[0-9\sk][mkcW][gmWlLh])/(?=[0-9]{1,4}\s?[a-zA-Z])"
)
_HASH = re.compile(r"(?<![\w#])([Nn]umber\s)?(?:#|№\s?)(?=[0-9])")
_MINUS = re.compile(r"(?<![\w)])[-−–](?=\.?[0-9])")
_PLAIN = re.compile(rf"(?<![0-9])(?:(?<=\w)|(?<!\w))({NUMBER})")
_SUM_OF = re.compile(  # "the $3.5tn debt", "his £2m house"
    r"\s(?:acquisition|aid|bailout|bet|bid|bills?|bonds?|bonus|budget|buyout|cheque|contract|deals?|"
    r"debts?|deficit|divorce|donation|economy|fee|fine|fund|gift|grant|hedge|hole|home|house|"
    r"infrastructure|investment|jackpot|libel|loan|loss|mansion|market|merger|mortgage|note|offer|"
    r"package|payment|pension|plan|prize|profit|programme?|project|recovery|rescue|stadium|stimulus|"
    r"ransom|reward|settlement|shortfall|stake|surplus|takeover|ticket|transfer|valuation|voucher)\b"
)
_SUMS = {
    "-": "minus", "−": "minus", "–": "minus", "+": "plus", "×": "times", "*": "times",
    "÷": "divided by", "=": "equals", "<": "less than", ">": "greater than",
    "≤": "at most", "≥": "at least", "±": "plus or minus",
}  # fmt: skip
_BY_DIGITS = re.compile(
    r"\b(?:rooms?|flights?|route|highway|interstate|suite|codes?|pins?|zip|postcode|order|account|"
    r"extension|ext\.?|passwords?|dial|call|ring|text|phone|tel\.?|number|id|serial|isbn|"
    r"boeing|airbus|reference|ref\.?|invoice|ticket|parcel|tracking)"
    r"(?:\s(?:is|was|number|no|code|id|to|the|me|us|at))?[\s:#]{1,2}$",
    re.IGNORECASE,
)


_NOUN_AFTER = re.compile(r"[\s-]?(?!(?:is|was|an?|and|or|for|to|in|on|at|per|of|off|I)\b)[A-Za-z]")


_KIND = re.compile(  # "the 100m race"
    r"\s(?:lens|film|jack|gun|pistol|race|dash|sprint|relay|freestyle|radius|engine|battery|screen|"
    r"display|monitor|bulb|bottle|bag|adapter|charger|cable|round|shell)s?\b"
)


def amounts(text: str, before: str) -> str:
    """Money, measures, percent and fractions. `before`: the text to the left."""
    text = _PRESSURE.sub(lambda m: f"{cardinal(m[1])} over {m[2]}", text)
    text = _SCIENTIFIC.sub(_say_scientific, text)
    text = _COMPARED.sub(lambda m: f"{_SUMS[m[1]]} ", text)
    if _EQUATION.search(text):
        text = _LESS.sub(" minus ", text)
        text = _TERM.sub(_say_term, text)
    text = _RUPEES.sub("₹", text)
    text = _MONEY.sub(_say_money, text)
    text = _CODE.sub(_say_code, text)
    text = _SIGN_AFTER.sub(_say_sign_after, text)
    text = _JOINED.sub(_say_scaled, text)
    text = _RATED.sub(lambda m: f"{number(m[1])} out of {number(m[2])}", text)
    text = _PER_HUNDRED.sub(" per ", text)
    text = _PRODUCT.sub(" times ", _DIVIDED.sub(_say_divided, text))
    text = _MIXED.sub(_say_mixed, text)
    text = _SEASON.sub(_say_season, text)
    text = _FRACTION.sub(_say_fraction, text)
    text = _BARE_UNIT.sub(_say_bare_unit, text)
    text = _STONE.sub(lambda m: f"{cardinal(m[1])} stone", text)
    text = _FEET_INCHES.sub(lambda m: f"{cardinal(m[1])} foot {cardinal(m[2])}", text)
    text = _COMPASS.sub(lambda m: f" degrees {_WINDS[m[1]]}", text)
    text = _FEET.sub(lambda m: f"{cardinal(m[1])} foot {cardinal(m[2])} ", text)
    text = _TALL.sub(_say_feet, text)
    text = _TIMES.sub(_say_times, text)
    text = _OR.sub(", ", text)
    text = _PERCENT.sub(_say_percent, text)
    text = _MEASURE.sub(_say_measure, text)
    text = _LONE.sub(lambda match: _say_lone(match, before), text)
    text = _INCHES.sub(lambda match: _say_inches(match, before), text)
    text = _ACROSS.sub(" by ", text)
    text = _POWER.sub(_say_power, text)
    return _FOLD.sub(lambda m: f"{number(m[1])} {'time' if m[1] == '1' else 'times'}", text)


def plain_numbers(text: str, before: str) -> str:
    """Ordinals, ratios, ranges, sums and what is left. `before`: the text to the left."""
    text = _HASH.sub(lambda m: m[1] or "number ", text)
    text = _ORDINALS.sub(" to ", text)
    text = _ORDINAL.sub(lambda m: ordinal(m[1].replace(",", "")), text)
    text = _RATIO.sub(lambda m: f"{number(m[1])} to {number(m[2])}", text)
    text = _SCALED.sub(_say_scaled, text)
    text = _RANGE.sub(_say_range, text)
    text = _SUM.sub(lambda m: f" {_SUMS[m[1]]} ", text)
    text = _MINUS.sub("minus ", text)
    return _PLAIN.sub(lambda match: _say_plain(match, before), text)


def _say_money(match: re.Match[str]) -> str:
    one, part = CURRENCIES[match["sign"]]
    if match["country"]:
        one = f"{COUNTRIES[match['country']]} {one}"
    per = f" per {PERIODS[match['per']]}" if match["per"] else ""
    amount, high, scale = match["sum"], match["high"], match["scale"]
    scaled = f" {_scale(scale)}" if scale else ""
    if high:
        return f"{number(amount)} to {number(high)}{scaled} {plural(one)}{per}"
    whole, _, cents = amount.replace(",", "").partition(".")
    single = _adjective(match) or _SUM_OF.match(match.string[match.end() :])
    if scale or (cents and (len(cents) != 2 or not part)):
        return f"{number(amount)}{scaled} {one if single else plural(one)}{per}"
    if not cents and single:
        return f"{number(amount)} {one}{per}"
    spoken = (
        [f"{cardinal(whole or '0')} {agree(one, whole)}"] if int(whole or 0) or not cents else []
    )
    if cents and int(cents):
        alone = single and not spoken and part == "cent"
        spoken.append(f"{cardinal(cents)} {part if alone else agree(part, cents)}")
    return (" and ".join(spoken) or f"zero {plural(one)}") + per


def _adjective(match: re.Match[str]) -> bool:
    """ "a $20 bill", "a 5 km run"."""
    article = re.search(r"\b[Aa]n?\s$", match.string[: match.start()])
    return bool(article and _NOUN_AFTER.match(match.string[match.end() :]))


def _scale(written: str) -> str:
    return SCALES.get(written.lower(), written)


def _say_code(match: re.Match[str]) -> str:
    amount = match["sum"] or match["sum2"]
    scale = f" {_scale(match['scale'])}" if match["scale"] else ""
    noun = CODES[match["code"] or match["code2"]]
    return f"{number(amount)}{scale} {agree(noun, amount if not scale else '2')}"


def _say_sign_after(match: re.Match[str]) -> str:
    sign, amount, scale = match["sign"], match["sum"], match["scale"]
    if sign == "p":
        if scale or len(amount) > 2:  # 1080p
            return match[0]
        return f"{number(amount)} {agree('penny', amount)}"
    noun = {"€": "euro", "£": "pound", "¢": "cent", "c": "cent", "₽": "rouble"}[sign]
    scaled = f" {_scale(scale)}" if scale else ""
    per = f" per {PERIODS[match['per']]}" if match["per"] else ""
    many = noun if _adjective(match) else agree(noun, "2" if scale else amount)
    return f"{number(amount)}{scaled} {many}{per}"


def _say_percent(match: re.Match[str]) -> str:
    sign = {"-": "minus ", "−": "minus ", "+": "plus "}.get(match["minus"] or "", "")
    low = f"{number(match['low'])} to " if match["low"] else ""
    noun = "percent" if match["sign"] == "%" else "per thousand"
    return f"{sign}{low}{number(match['rate'])} {noun}"


def _say_measure(match: re.Match[str]) -> str:
    unit, amount = match["unit"], match["amount"]
    if unit and _no_measure(match):
        return match[0]
    if match["power"]:
        power = "square" if match["power"] == "sq" else "cubic"
        noun = f"{power} {(UNITS | {'in': 'inch'})[match['plain']]}"
    else:
        noun = UNITS[unit]
        if match["raised"]:
            noun = f"{POWERS[match['raised']]} {noun}"
    per = ""
    if match["per"]:
        raised = {"²": " squared", "³": " cubed"}.get(match["perraised"] or "", "")
        per = f" per {PERIODS[match['per']]}{raised}"
    after = match.string[match.end() :]
    adjective = (
        _adjective(match) or match["space"] == "-" or _KIND.match(after)
    ) and "degree" not in noun
    spoken = noun if adjective else agree(noun, "2" if match["low"] else amount)
    low = f"{number(match['low'])} to " if match["low"] else ""
    minus = "minus " if match["minus"] else ""
    return f"{minus}{low}{number(amount)} {spoken}{per}"


def _no_measure(match: re.Match[str]) -> bool:
    """Whether the letters after a number are no unit of it."""
    unit, space, amount = match["unit"], match["space"], match["amount"]
    if space == "-" and (len(unit) < 2 or unit == "in"):
        return True
    if unit in _SPACED_ONLY and not space and not match["per"]:
        return True
    if unit == "s" and not match["per"]:  # the 80s
        short = _MINUTES.search(match.string[: match.start()])
        counted = short or _AFTER_SECONDS.match(match.string[match.end() :])
        return (bool(space) and "." not in amount and not counted) or (
            amount.isdecimal() and len(amount) == 4
        )
    if unit in ("m", "h", "K", "A", "B", "N", "J", "l", "g") and space and len(unit) == 1:
        after = match.string[match.end() :]
        return unit in ("A", "B", "N", "J", "K") and bool(re.match(r"\s?[A-Z]", after))
    return False


def _say_mixed(match: re.Match[str]) -> str:
    whole = cardinal(match[1])
    top, bottom = _parts(match[2]) if match[2] else (match[3], match[4])
    part = "a half" if (top, bottom) == ("1", "2") else _share(top, bottom)
    if top == "1" and bottom != "2":
        part = part.replace("one ", "a ", 1)
    return f"{whole} and {part}"


_WINDS = {"N": "north", "S": "south", "E": "east", "W": "west"}
_FLAT = re.compile(r"\s(?!long|tall|wide|deep|high|thick|of|by|in|and|or|x)(?:[a-z]{3,}|[A-Z]{2})")


def _say_inches(match: re.Match[str], before: str) -> str:
    left = before + match.string[: match.start()]
    if match[0].endswith('"') and left.count('"') % 2:
        return match[0]  # the end of what somebody says
    single = _FLAT.match(match.string[match.end() :])
    return f"{number(match[1])} {'inch' if single else agree('inch', match[1])}"


def _say_power(match: re.Match[str]) -> str:
    return raised_to(match[1] or {"²": "2", "³": "3"}[match[2]])


def _say_lone(match: re.Match[str], before: str) -> str:
    """A unit without a number: "per km²"."""
    length, raised, unit, per, small, alone = match.groups()
    if alone:
        each = (before + match.string[: match.start()]).endswith("per ")
        return UNITS[alone] if each else plural(UNITS[alone])
    if length:
        return plural(f"{POWERS[raised]} {(UNITS | {'in': 'inch'})[length]}")
    if small:
        return plural(UNITS[small])
    return f"{plural(UNITS[unit])} per {PERIODS[per]}"


def _parts(vulgar: str) -> tuple[str, str]:
    top, _, bottom = unicodedata.normalize("NFKC", vulgar).partition("⁄")
    return top, bottom


def _share(top: str, bottom: str) -> str:
    names = {"2": "half", "4": "quarter"}
    noun = names.get(bottom) or ordinal(bottom)
    if top == "1":
        return f"one {noun}"
    return f"{cardinal(top)} {'halves' if bottom == '2' else f'{noun}s'}"


def _say_fraction(match: re.Match[str]) -> str:
    top, bottom = _parts(match[3]) if match[3] else (match[1], match[2])
    after = match.string[match.end() :]
    if re.match(r"-[a-z]{2}", after):  # a 3/4-ton truck
        return _share(top, bottom).removesuffix("s").replace("one half", "half")
    if (top, bottom) in (("24", "7"), ("9", "11"), ("20", "20"), ("50", "50"), ("4", "4")):
        return f"{cardinal(top)} {cardinal(bottom)}"
    if len(top) == len(bottom) == 2 and int(top) + int(bottom) == 100:  # a split
        return f"{cardinal(top)} {cardinal(bottom)}"
    if (
        (top == bottom and top != "0")
        or (bottom == "100" and top != "1")
        or (top == "0" and bottom in ("5", "10", "20"))
    ):
        return f"{number(top)} out of {number(bottom)}"
    if top == "0" or bottom in ("0", "1") or int(top) > int(bottom):
        return f"{number(top)} slash {number(bottom)}"
    if (top, bottom) == ("1", "2") and re.search(
        r"[0-9a-z]\sand\s$", match.string[: match.start()]
    ):
        return "a half"
    if (top, bottom) == ("1", "2"):
        if re.match(r"\s(?:an?|the|of|my|his|her|our|their)\b", after):
            return "half"
        following = re.match(r"\s([a-z])", after)
        if following:
            return f"half {'an' if following[1] in 'aeio' else 'a'}"
        return "one half"
    if int(bottom) < 10 or bottom in ("16", "32", "64", "100"):
        return _share(top, bottom)
    return f"{number(top)} out of {number(bottom)}"


def _say_divided(match: re.Match[str]) -> str:
    """ "12/4 = 3"; "1/6 = …" is a share."""
    top, bottom = match.groups()
    return match[0] if int(top) < int(bottom) else f"{top} divided by {bottom}"


def _say_times(match: re.Match[str]) -> str:
    """ "a 4 x 6 card"; in a sum it is a product."""
    product = "×" in match[0] and re.search(r"[=+÷]", match.string)
    return f"{number(match[1])} {'times' if product else 'by'} "


def _say_feet(match: re.Match[str]) -> str:
    """ "5' tall"; "a 6' fence"."""
    if match[2]:
        return f"{cardinal(match[2])} foot"
    return f"{cardinal(match[1])} {agree('foot', match[1])}"


def _say_season(match: re.Match[str]) -> str:
    later = str(int(match[1]) + 1)
    if not later.endswith(match[2]):
        return match[0]
    return f"{year(match[1])} {year(later) if match[2] == later else pair(match[2])}"


def _say_scientific(match: re.Match[str]) -> str:
    amount, sign, power = match.groups()
    minus = "minus " if sign in ("-", "−") else ""
    return f"{number(amount)} times ten to the power of {minus}{cardinal(power)}"


def _say_term(match: re.Match[str]) -> str:
    """ "3x" of an equation; "5m = 500cm" is none."""
    if match[2] in UNITS:
        return match[0]
    return f"{number(match[1])} {letter_names(match[2])}"


def _say_bare_unit(match: re.Match[str]) -> str:
    noun = UNITS[match[1]]
    many = match[1].endswith("s") or _SCALE_WORD.search(match.string[: match.start()])
    return plural(noun) if many else noun


def _say_scaled(match: re.Match[str]) -> str:
    """ "5k", "20M": thousands and millions of something."""
    amount, scale = match[1], match[2]
    return f"{number(amount)} {_scale(scale)}"


def _say_range(match: re.Match[str]) -> str:
    low, high = match[1], match[2]
    spaced = match[0] != match[0].replace(" ", "")
    if (low == high and low in ("20", "50")) or (low, high) == ("24", "7"):
        return f"{cardinal(low)} {cardinal(high)}"
    if low.isdecimal() and high.isdecimal():
        if len(low) == len(high) == 4 and "1100" <= low <= "2099" and "1100" <= high <= "2099":
            return f"{year(low)} to {year(high)}"
        if len(low) == 4 and "1100" <= low <= "2099" and low[-len(high) :] < high and len(high) < 3:
            return f"{year(low)} to {cardinal(high)}"
        if (len(low), len(high)) == (3, 4):  # a telephone number
            return f"{spelled(low, 'oh')}, {spelled(high, 'oh')}"
        if spaced and "-" in match[0] and int(low) > int(high):
            return f"{number(low)} minus {number(high)}"
    return f"{number(low)} to {number(high)}"


def _say_plain(match: re.Match[str], before: str) -> str:
    """A number that nothing else has claimed."""
    written = match[1]
    left = (before + match.string[: match.start()])[-40:]
    right = match.string[match.end() : match.end() + 30]
    pad = " " if left[-1:].isalpha() else ""
    end = " " if right[:1].isalpha() else ""
    return f"{pad}{_plain(written, left, right)}{end}"


def _plain(written: str, left: str, right: str) -> str:
    if not written.isdecimal():
        return number(written)
    if written == "007":
        return "double oh seven"
    if written == "911" and not MANY.match(right):
        return spelled(written)
    if len(written) > 2 and _BY_DIGITS.search(left) and written[-2:] != "00":
        return spelled(written)
    if is_year(written, left, right):
        return year(written)
    if len(written) > 6 and not written.endswith("000"):
        return spelled(written)
    return number(written)
