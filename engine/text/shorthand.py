"""Shorthand of notices, notes and messages, written out so that the other rules know it.

"8/day", "2 miles N of Oxford", "7.30–11am", "J10–J12", "5/8ths", "&amp;", ":-)". Knows no numbers'
names: figures stay figures here.
"""

from __future__ import annotations

import html
import re

from engine.text.dates import (
    MONTHS,
    SHORT_DAYS,
    SHORT_MONTHS,
    full_year,
    month_name,
    weekday_name,
)
from engine.text.letters import letter_names
from engine.text.number_words import cardinal, raised_to
from engine.text.references import REFERENCES
from engine.text.rules import Rule, rewritten
from engine.text.units import EACH, PORTIONS, SIZES, SPOONS, SQUARES, TIMES

_HOUR = r"(?:1[0-2]|[1-9])"
_AGES = "year|day|week|month|hour|minute|page|mile|man|point|foot|inch"
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SMALL = "⁰¹²³⁴-⁹"
_OPERATORS = {
    ">=": "≥", "<=": "≤", "!=": "≠", "==": "=", "===": "=", "&&": " and ", "||": " or ",
    "->": "→", "=>": "→",
}  # fmt: skip
_SEVERAL = {
    "100": "hundreds", "1000": "thousands", "10000": "tens of thousands",
    "100000": "hundreds of thousands",
}  # fmt: skip
_ANY_MONTH = f"(?:{'|'.join(MONTHS)}|(?:{SHORT_MONTHS})\\b\\.?)"
_AFTER_TIMES = "we|he|she|they|it|I|the|on|in|sharp|today|tomorrow|tonight"
_THINGS = "km|miles|people|users|years|tons|tonnes|views|subscribers"

_NUMBERED = "order|invoice|ticket|case|item|serial|part|ref|account|tracking|model|booking|claim"
_AMOUNT = r"(?<![\w.,/])([0-9]{1,3}(?:[\s/][0-9/]{1,5})?|[½⅓⅔¼¾⅛])"
_COINS = {"$": "dollar", "£": "pound", "€": "euro"}
_PER = {None: "", "/s": " per second", "/L": " per liter", "/mol": " per mole"}
_LETTERED = {  # units that have no other rule
    "bps": "basis points", "pts": "points", "mmol": "millimoles", "µL": "microliters",
    "µl": "microliters", "rebs": "rebounds", "asts": "assists",
    "reb": "rebounds", "ast": "assists",
}  # fmt: skip
_NO_STUTTER = (
    "(?:day|hour|tests?|shaped?|series|tail|top|boys?|clamps?|class|cup|corp|dimer|mode|beam)\\b"
)


def _say_spoons(match: re.Match[str]) -> str:
    one = match[1] == "1" or re.fullmatch(r"[0-9]/[0-9]{1,2}|[½⅓⅔¼¾⅛]", match[1])
    return f"{match[1]} {SPOONS[match[2]]}{'' if one else 's'} "


def _say_shillings(match: re.Match[str]) -> str:
    """ "£3 10s. 6d.", "10s. 6d.", "£3 10s."."""
    pounds, shillings, pence = match.groups()
    spoken = f"{pounds or ''}{shillings} shilling{'' if shillings == '1' else 's'}"
    return f"{spoken} and {pence} {'penny' if pence == '1' else 'pence'}" if pence else spoken


def _say_inches(match: re.Match[str]) -> str:
    """ "3/4" bolt"; a mark that closes a quotation is none of inches."""
    if match[2] == '"' and match.string[: match.start()].count('"') % 2:
        return match[0]
    ends = re.match(r"\s?(?:[.,;:)]|$)", match.string[match.end() :])
    return f"{match[1]} of an inch" if ends else f"{match[1]} inch"


def _say_expiry(match: re.Match[str]) -> str:
    """ "exp. 09/27"."""
    word, colon, month, when = match.groups()
    word = "expires" if word.lower() == "exp." else word
    return f"{word}{colon} {MONTHS[int(month) - 1]} 20{when}"


def _say_sides(match: re.Match[str]) -> str:
    """ "12'6" x 10'": twelve foot six by ten foot."""
    width, inches, length, more = match.groups()
    first = f"{width} foot {inches}" if inches else f"{width}"
    single = re.match(r"\s[a-z]{3}", match.string[match.end() :])
    last = f"foot {more}" if more else "foot" if single else "feet"
    return f"{first} by {length} {last}"


def _say_odds(match: re.Match[str]) -> str:
    """ "at 7/2", more than a whole, are odds; "at 1/2" is a half."""
    before, high, low, named = match.groups()
    if not named and (not before or int(high) <= int(low) or not 0 < int(low) <= 33):
        return match[0]
    return f"{before + ' ' if before else ''}{high} to {low}{named or ''}"


_RULES: tuple[Rule, ...] = (
    (re.compile(r"&(?:[a-zA-Z]{2,8}|#[0-9]{2,5});"), lambda m: html.unescape(m[0])),
    (re.compile(r"\bN[º°]\s?(?=[0-9])"), lambda m: "number "),
    (  # 6.02×10²³
        re.compile(rf"(?<=[0-9])\s?[x×·]\s?10(?=[{_SMALL}⁻])"),
        lambda m: " times 10",
    ),
    (
        re.compile(r"(?<=[0-9])\s?(bps|pts|mmol|rebs?|asts?|µ[Ll])(/[sL]|/mol)?(?!\w)"),
        lambda m: f" {_LETTERED[m[1]]}{_PER[m[2]]}",
    ),
    (re.compile(r"(?<=[0-9]{2})-bit\b"), lambda m: " bit"),
    (re.compile(r"(?<=[0-9½¼¾])\s?fl\.?\s?oz\b(?:\.(?=\s[a-z]|[,)]))?"), lambda m: " fl oz"),
    (re.compile(r"(?<=[0-9] )(lg|med)\.\s(?=[a-z])"), lambda m: f"{SIZES[m[1]]} "),
    (  # accountants': $(1.2)m
        re.compile(r"([$£€])\(([0-9][0-9.,]{0,14})\)"),
        lambda m: f"minus {m[1]}{m[2]}",
    ),
    (  # a rent's, a room's
        re.compile(r"([$£€]\s?[0-9][0-9.,]{0,12})\s?(pcm|pw|pm|pa|pppn|pp|p/m|p/w|p/h|p/a|p/d)(?![\w/])"),
        lambda m: f"{m[1]} {EACH[m[2]]}",
    ),
    (  # 2-3x, 10-15k
        re.compile(r"(?<![\w.,/$£€-])([0-9]{1,4}(?:\.[0-9]{1,2})?)([xkK]?)\s?[-–]\s?(?=[0-9]{1,4}(?:\.[0-9]{1,2})?(?:[xkK])(?!\w))"),
        lambda m: f"{m[1]}{m[2]} to ",
    ),
    (re.compile(r"(?<![\w/])7/7(?=\s(?:bomb|attack|inquest|victim|London))"), lambda m: "7 7"),
    (re.compile(r"(?<=\b[Tt]he )(1[0-2]|[1-9])\.([0-5][0-9])"
                r"(?=\s(?:to|from|train|flight|bus|service)\b)"),
     lambda m: f"{m[1]}:{m[2]}"),
    (  # -5C, 30C outside
        re.compile(
            r"(?<![\w.])[-−]([0-9]{1,2})\s?([CF])(?![\w'’+#-])|(?<![\w.,-])([0-9]{1,3})([CF])"
            r"(?=\s(?:outside|inside|today|yesterday|overnight|tonight|in\sthe\sshade|at\snight|heat|weather)\b)"
        ),
        lambda m: f"minus {m[1]}°{m[2]}" if m[1] else f"{m[3]}°{m[4]}",
    ),
    (re.compile(r"(?:(?<=[a-z]s)|(?<=[⁰¹²³⁴-⁹]))/(mL|ml|L|kg|min|sec)(?![\w/])"),
     lambda m: f" per {PORTIONS[m[1]]}"),
    (re.compile(r"(?:(?<=[0-9\s]min)|(?<=\sIU))/(?=(?:side|day|serving|dose|game)\b)"),
     lambda m: " per "),
    (re.compile(r"(?<=\b[Aa] )(yr|hr|wk|mo)\b\.?(?=\s[a-z]|[,;)]|\.?$)"), lambda m: TIMES[m[1]]),
    (re.compile(r"(?<=[0-9])m\s(?=sq\.?\s?(?:mi|km|ft)\b)"), lambda m: " million "),
    (re.compile(r"(?<=illion )sq\.?\s?(mi|km|ft)\b"), lambda m: SQUARES[m[1]]),
    (re.compile(r"\bwas\sb\.\s(?=1[0-9]{3}\b)"), lambda m: "was born "),
    (re.compile(r"(?<=[0-9])[\s-]bp\b(?!\.)"), lambda m: " basis point"),
    (re.compile(r"(?<![\w)%])[-−](?=[$£€¥₹]\s?[0-9])"), lambda m: "minus "),
    (re.compile(r"(?<=[0-9])[.,][-–—](?=\s?[€,;)]|\s|$)"), lambda m: ""),  # 20.-, 50,-
    (re.compile(r"(?<!\w)R\$\s?([0-9][0-9.,]{0,14}[0-9]|[0-9])"), lambda m: f"{m[1]} reais"),
    (
        re.compile(r"(?<![\w.,])([0-9]{1,3})[\s-]?(?:yo|y/o|y\.o\.)(?=[\s,;.)]|$)"),
        lambda m: f"{m[1]} year-old",
    ),
    (re.compile(r"\bC([12]?[0-9](?:st|nd|rd|th))\b"), lambda m: f"{m[1]} century"),
    (
        re.compile(r"\b((?:R(?:te|oute)|H(?:wy|ighway))\.?\s[0-9]{1,3})([A-Z])(?!\w)"),
        lambda m: f"{m[1]} {letter_names(m[2])}",
    ),
    (  # a person's height, with parts of an inch
        re.compile(r"(?<![\w.,])([3-8])\s?['′’]\s?([0-9]{1,2}\s?[½¼¾⅛⅜⅝⅞])\s?[\"″”]"),
        lambda m: f"{m[1]} foot {m[2]}",
    ),
    (  # a room's sides
        re.compile(
            r"(?<![\w.,])([0-9]{1,3})\s?['′’]\s?(?:([0-9]{1,2})\s?[\"″”]\s?)?[x×]\s?"
            r"([0-9]{1,3})\s?['′’](?:\s?([0-9]{1,2})\s?[\"″”])?(?!\w)"
        ),
        _say_sides,
    ),
    (  # a card's, a can's
        re.compile(
            r"\b([Ee]xp(?:\.|ires|iry)?|[Vv]alid\sth?ru|[Bb]est\sbefore|BB)(:?)\s"
            r"(0[1-9]|1[0-2])/([2-9][0-9])(?![\w/])"
        ),
        _say_expiry,
    ),
    (re.compile(r"(?<![\w.,])([0-9]{1,3})-in\.\s(?=[a-z])"), lambda m: f"{m[1]} inch "),
    (
        re.compile(r"(?<![\w.])0x([0-9A-Fa-f]{1,16})(?!\w)"),
        lambda m: f"zero ex {' '.join(letter_names(mark) or mark for mark in m[1])}",
    ),
    (re.compile(r"<(?=[^<>\s@]{1,64}@[^<>\s@]{1,100}>)"), lambda m: ""),  # a sender's address
    (
        re.compile(r"\b([A-G])b(?=[\s-](?:major|minor|scale|clarinet|trumpet)\b)"),
        lambda m: f"{m[1]}♭",
    ),
    (re.compile(r"(?<![\w.,])([0-9]{2})ers(?!\w)"), lambda m: f"{cardinal(m[1])}ers"),
    (re.compile(r"(?<!\w)~/(?=[\w.])"), lambda m: "tilde slash "),
    (
        re.compile(r"(?<![\w.])((?:[0-9]{1,3}\.){3}[0-9]{1,3})/([0-9]{1,2})(?![\w/]|\.[0-9])"),
        lambda m: f"{m[1]} slash {m[2]}",
    ),
    (re.compile(r"\bBoeing\s7([0-9]7s?)(?!\w)"), lambda m: f"Boeing seven-{m[1]}"),
    (re.compile(r"(?<=['’][0-9]{2})\s?[-–]\s?(?=['’][0-9]{2}(?!\w))"), lambda m: " to "),
    (re.compile(r"°\s?(?=(?:angle|turn|bend|rotation|view|heat)\b)"), lambda m: " degree "),
    (
        re.compile(r"\bsq\.?\s(?=(?:miles?|feet|foot|(?:kilo|centi)?met(?:er|re)s?|yards?|inch(?:es)?)\b)"),
        lambda m: "square ",
    ),
    (re.compile(r"(?<![\w.,])([0-9]{1,3})['’](?=[0-9]{3}(?!\w))"), lambda m: m[1]),  # 1'234 francs
    (  # 0900-1700
        re.compile(
            r"(?<![\w.,:/+-])(0[0-9][0-5][0-9])\s?[-–—]\s?((?:[01][0-9]|2[0-3])[0-5][0-9])"
            r"(?![\w]|[.,:/-][0-9])"
        ),
        lambda m: f"{m[1]} hours to {m[2]} hours",
    ),
    (  # at 7/2, a 100/1 outsider
        re.compile(
            r"(?:\b([Aa]t|[Oo]f|[Oo]dds)\s)?(?<![\w.,/])([0-9]{1,4})/([0-9]{1,2})(?![\w/]|[.,][0-9]|\s?=)"
            r"(\s(?:favou?rite|outsider|shot|against)\b)?"
        ),
        _say_odds,
    ),
    (  # cricket's
        re.compile(
            r"\b(were|was|reached|made|score)"
            r"\s([0-9]{3})/([0-9])(?![\w/]|\s?=|\.[0-9])"
        ),
        lambda m: f"{m[1]} {m[2]} for {m[3]}",
    ),
    (  # on 12.5.90
        re.compile(
            r"\b([Oo]n|[Ss]ince|[Uu]ntil|[Dd]ated|[Bb]efore|[Aa]fter|[Bb]orn)\s"
            r"(0?[1-9]|[12][0-9]|3[01])\.(0?[1-9]|1[0-2])\.([0-9]{2})(?![\w]|[.,][0-9])"
        ),
        lambda m: f"{m[1]} {m[2]}.{m[3]}.{full_year(m[4])}",
    ),
    (
        re.compile(r"(?<![\w.,])([0-9]{1,2})['’′](?=\s(?:ceilings?|walls?|fences?|ladders?|poles?)\b)"),
        lambda m: f"{m[1]} foot",
    ),
    (
        re.compile(r"\b([Tt]emp)(s?)\.(?=\s[a-z])(?!\sworkers?\b|\sjob|\sagency)"),
        lambda m: f"{m[1]}erature{m[2]}",
    ),
    (
        re.compile(r"\b([Ll])(at|on|ong(?=\.))\.?(?=\s-?[0-9])"),
        lambda m: f"{m[1]}{'atitude' if m[2] == 'at' else 'ongitude'}",
    ),
    (  # 7.30–11am
        re.compile(
            rf"(?<![\w.,:/])({_HOUR})\.([0-5][0-9])"
            rf"(?=\s?[-–—]\s?{_HOUR}(?:[.:][0-5][0-9])?\s?[ap]\.?m\b)"
        ),
        lambda m: f"{m[1]}:{m[2]}",
    ),
    (
        re.compile(
            r"(?:(?<=[0-9sx])/(day|week|month|year|hour|night|person)|(?<=[0-9a-z])/(wk|mo|yr|hr))"
            r"\b(?:\.(?=\s[a-z]|,))?"
        ),
        lambda m: f" per {m[1] or TIMES[m[2]]}",
    ),
    (re.compile(r"(?<!\w)A(?=:\s)"), lambda m: "eigh"),  # the answer
    (
        re.compile(r"(?<![\w-])([A-Z])([0-9]{1,3})\s?[-–]\s?\1([0-9]{1,3})(?![\w-])"),
        lambda m: f"{m[1]}{m[2]} to {m[1]}{m[3]}",
    ),
    (re.compile(r"(?<![\w.,/])([0-9]{1,2}/[0-9]{1,2})(?:ths|rds|nds)\b"), lambda m: m[1]),
    (
        re.compile(rf"(?<![\w.,-])([0-9]{{1,3}})[-–]([0-9]{{1,3}})-(?={_AGES})"),
        lambda m: f"{m[1]} to {m[2]} ",
    ),
    (
        re.compile(r"(?<![\w.,])([0-9]{1,3})[kK](?=\s(?:runs?|races?|walks?|runners?)\b)"),
        lambda m: f"{m[1]} kay",
    ),
    (
        re.compile(rf"(?<![\w.,])([0-9]{{1,4}}(?:\.[0-9]{{1,3}})?)\s?m\s(?=(?:{_THINGS})\b)"),
        lambda m: f"{m[1]} million ",
    ),
    (
        re.compile(r"\b(Pop|pop)(?:\.|ulation)?:?\s([0-9]{1,4}(?:\.[0-9]{1,3})?)m\b"),
        lambda m: f"{m[1]}ulation {m[2]} million",
    ),
    (re.compile(r"\bD\.?\s?Phil\b\.?"), lambda m: "dee fill"),
    (
        re.compile(r"(?<![=<>!&|-])(?:===?|[<>!]=|&&|\|\||[-=]>)(?![=<>&|-])"),
        lambda m: _OPERATORS[m[0]],
    ),
    (re.compile(r"~~|([=*_#])\1{2,}"), lambda m: ""),  # struck out; a line
    (  # notes
        re.compile(rf"(?:(?<=[a-z]{{4}})|(?<=[.,;:!?”\"]))[{_SMALL}]{{1,3}}(?!\w)"),
        lambda m: "",
    ),
    (  # ions
        re.compile(rf"(?<=[A-Za-z0-9₀-₉])([{_SMALL}]?)([⁺⁻])(?![{_SMALL}])"),
        lambda m: f" {m[1].translate(_RAISED)} {'plus' if m[2] == '⁺' else 'minus'}",
    ),
    (
        re.compile(rf"(?<![A-Za-z]{{2}})(?<=[0-9A-Za-z)])(?![²³](?![{_SMALL}]))(⁻?[{_SMALL}]{{1,3}})"),
        lambda m: raised_to(m[1].translate(_RAISED)),
    ),
    (re.compile(r"(?<=[0-9A-Za-z)])ⁿ"), lambda m: " to the power of n"),
    (  # 2024-02-01T07:05:00Z
        re.compile(
            r"(?<![\w-])([12][0-9]{3}-[01][0-9]-[0-3][0-9])T([0-2][0-9]:[0-5][0-9])"
            r"(?::[0-5][0-9](?:\.[0-9]{1,9})?)?(?:(Z)|[+-][0-2][0-9]:?[0-5][0-9])?(?![\w:])"
        ),
        lambda m: f"{m[1]}, {m[2]}{' UTC' if m[3] else ''}",
    ),
    (
        re.compile(r"([$£€]\s?[0-9][0-9.,]{0,12})/(?!(?:bbl|min|sec|mol|gal)\b)([a-z]{3,14})(?!\w)"),
        lambda m: f"{m[1]} per {m[2]}",
    ),
    (re.compile(r"(?<=[0-9])/kWh\b"), lambda m: " per kilowatt hour"),
    (re.compile(r"(?<![\w:])([A-Z]):\\(?=\w)"), lambda m: f"{m[1]} colon \\"),
    (
        re.compile(r"(?<![\w.,])([0-9]{1,2})([24-8]0)p(?!\w)"),
        lambda m: f"{m[1]} {m[2]} pee",
    ),
    (re.compile(r"(?<=[0-9])\s?pp(?!\w|\.\s?[0-9])"), lambda m: " percentage points"),
    (
        re.compile(r"(?<![\w.,])([0-9]{1,3})[\"″]\s?[x×]\s?([0-9]{1,3})[\"″]"),
        lambda m: f"{m[1]} by {m[2]} inch",
    ),
    (
        re.compile(r"((?<![\w/])[1-9]{1,2}/(?:2|4|8|16|32)|[½⅓⅔¼¾⅛⅜⅝⅞])\s?([\"″]|in\.)(?=\W|$)"),
        _say_inches,
    ),
    (
        re.compile(r"\b(BP|pressure)(\s(?:is|was|of))?\s([0-9]{2,3})/([0-9]{2,3})(?![\w/])"),
        lambda m: f"{m[1]}{m[2] or ''} {m[3]} over {m[4]}",
    ),
    (
        re.compile(r"(?<![\w.,/])([0-9]{1,3})/([nxykrt])(?![\w/'’])"),
        lambda m: f"{m[1]} over {m[2]}",
    ),
    (
        re.compile(r"(?<![\w.,])(1(?:0{2,5}|,000|0,000|00,000))s(?=\sof\b)"),
        lambda m: _SEVERAL[m[1].replace(",", "")],
    ),
    (
        re.compile(r"(?<![\w.,])([0-9]{1,2})\s?[x×]\s?(?=[0-9.]{1,6}\s?(?:mg|g|kg|mcg|µg|ml|mL|l|L|oz)\b)"),
        lambda m: f"{m[1]} times ",
    ),
    (
        re.compile(rf"(?<!\w)({SHORT_MONTHS})\.?\s?[-–/]\s?({SHORT_MONTHS}|May)\b\.?(?!\s?[0-9])"),
        lambda m: f"{month_name(m[1])} to {month_name(m[2])}",
    ),
    (
        re.compile(rf"(?<!\w)({_ANY_MONTH}\s[12][0-9]{{3}})\s?[-–]\s?(?={_ANY_MONTH}\s[12][0-9]{{3}})"),
        lambda m: f"{m[1]} to ",
    ),
    (
        re.compile(rf"(?<!\w)({SHORT_DAYS})/({SHORT_DAYS})(?!\w)"),
        lambda m: f"{weekday_name(m[1])} and {weekday_name(m[2])}",
    ),
    (re.compile(r"(?<=(?:st|nd|rd|th)\s)[Ff]l\.(?=[\s,;)])"), lambda m: "floor"),
    (  # "W-what?"
        re.compile(
            rf"(?<!\w['’])(?<![\w-])([A-Za-z]|[bcdfgkpstw][hlrt])-(?:\1-){{0,5}}(?!{_NO_STUTTER})(\1)(?=['’a-z])",
            re.IGNORECASE,
        ),
        lambda m: m[1] if m[1][0].isupper() else m[2],
    ),
    (re.compile(r"(?<![\w-])(?:I-){1,4}(?=I\b)"), lambda m: "I, "),
    (  # an oven's
        re.compile(
            r"(?:(?<=[CF]/)|(?<=fan/)|(?<=\b[Tt]o )|(?<=\b[Aa]t )|(?<=\bor )|(?<=[Oo]ven ))"
            r"([1-5]?[0-9]{2})\s?°?([CF])(?![\w'’+#-])"
            r"|(?<![\w.,])([0-9]{2,3})\s?°?([CF])(?=\s?/|\sfan\b|\s?\([0-9]{2,3}\s?°?[CF])"
        ),
        lambda m: f"{m[1] or m[3]}°{m[2] or m[4]}",
    ),
    (
        re.compile(r"(?<=[0-9]°[CF])(\sfan)?\)?\s?/\s?(?=[0-9]{2,3}\s?°|[Gg]as\b)"),
        lambda m: f"{m[1] or ''}, ",
    ),
    (
        re.compile(r"(?<![\w.,])([0-9]{2,3}\.[0-9])\s?([CF])(?![\w'’+#-])"),
        lambda m: f"{m[1]}°{m[2]}",
    ),
    (  # 1-1½
        re.compile(r"(?<![\w.,/-])([0-9]{1,3}|[½¼¾])\s?[-–]\s?(?=[0-9]{1,3}\s?[½⅓⅔¼¾]|[0-9]\s[1-9]/[2-9])"),
        lambda m: f"{m[1]} to ",
    ),
    (re.compile(rf"{_AMOUNT}\s(c|T|t|qt|pts)\.\s(?=[a-z])"), _say_spoons),
    (  # 300ml/½ pint
        re.compile(
            r"(?<=[0-9])(\s?(?:k?g|[mc]?l|[mc]?m))/(?=[0-9½¼¾]{1,4}\s?(?:[0-9½¼¾/]{1,4}\s?)?"
            r"(?:lbs?|oz|fl|fluid|pints?|pt|in|inch|ft|cups?|tsp|tbsp)\b)"
        ),
        lambda m: f"{m[1]}, ",
    ),
    (
        re.compile(
            r"(?<![\w.,])(£[0-9,]{1,9}\s)?([0-9]{1,2})s\.?,?\s([0-9]{1,2})d\b(?:\.(?=\s[a-z(]|[,;)]))?"
        ),
        _say_shillings,
    ),
    (
        re.compile(r"(?<![\w.,])(£[0-9,]{1,9}\s)([0-9]{1,2})s\b(?:\.(?=\s[a-z(]|[,;)]))?()"),
        _say_shillings,
    ),
    (  # a French telephone's
        re.compile(r"(?<![\w.])(0[1-9](?:\.[0-9]{2}){4})(?!\w|\.[0-9])"),
        lambda m: m[1].replace(".", " "),
    ),
    (  # a telephone's
        re.compile(r"(?<![\w.])([0-9]{3})\.([0-9]{3})\.([0-9]{4})(?!\w|\.[0-9])"),
        lambda m: f"{m[1]}-{m[2]}-{m[3]}",
    ),
    (re.compile(r"(?:(?<=[\w%])\s|^)p\.a(?:\.(?=\s[a-z(]|[,;:)]))?(?!\w)"), lambda m: " per annum"),
    (
        re.compile(r"(?<![\w.,/:$£€+-])(0[0-9])\.([0-5][0-9])(?!\w|[.,][0-9]|\s?%)"),
        lambda m: f"{m[1]}:{m[2]}",
    ),
    (
        re.compile(rf"(?<![\w.,:/-])({_HOUR})\s?[-–]\s?(?={_HOUR}:[0-5][0-9](?![\w:]))"),
        lambda m: f"{m[1]} to ",
    ),
    (
        re.compile(
            rf"\b([Aa]t|[Bb]y|[Uu]ntil|[Bb]efore|[Aa]fter)\s({_HOUR})\.([0-5][0-9])"
            rf"(?=[,;]|\.(?:\s|$)|\s(?:{_AFTER_TIMES})\b|$)"
        ),
        lambda m: f"{m[1]} {m[2]}:{m[3]}",
    ),
    (re.compile(r"\bCtrl\b"), lambda m: "control"),
    (  # a Phase 1/2 trial, Windows 10/11
        re.compile(r"\b(Phase|Windows|Type|Stage|Grade|Year)\s([0-9]{1,2})/([0-9]{1,2})(?![\w/])"),
        lambda m: f"{m[1]} {m[2]} {m[3]}",
    ),
    (re.compile(r"\bFY\s?(?=['’]?[0-9])"), lambda m: "fiscal year "),
    (re.compile(r"(?<!\w)#(?=[A-Z]{1,5}-[0-9])"), lambda m: "number "),
    (re.compile(r"(?:(?<=[½¼¾⅛⅜⅝⅞])|(?<=[0-9]/[248]))\s?[x×]\s?(?=[0-9])"), lambda m: " by "),
    (re.compile(r"°\s(?=[CF](?!\w))"), lambda m: "°"),
    (re.compile(r"(?<=[0-9])\sdegrees\s(?=[CF](?![\w'’]))"), lambda m: "°"),
    (re.compile(r"(?<=[0-9])\s?([mk])\.p\.h\.?(?=\W|$)"), lambda m: f" {m[1]}ph"),
    (
        re.compile(r"(?:(?<=\bof )|(?<=\bhit ))([0-9]{2,3})([CF])(?![\w'’-])"),
        lambda m: f"{m[1]}°{m[2]}",
    ),
    (re.compile(r"\([cC]\)\s(?=(?:19|20)[0-9]{2}(?!\w))"), lambda m: "© "),
    (re.compile(r"\b([Cc]opyright)\s©"), lambda m: m[1]),
    (
        re.compile(r"(?<=\b[Tt]he )(5|10)[kK](?=\s(?:in|at|on|today|this|last)\b|[,.;])"),
        lambda m: f"{m[1]} kay",
    ),
    (  # of wood
        re.compile(r"(?<![\w.])([0-9])x([0-9])s(?!\w)"),
        lambda m: f"{m[1]} by {cardinal(m[2])}{'es' if m[2] == '6' else 's'}",
    ),
    (re.compile(r"(?<=\b12):00\s(?=noon\b|midnight\b)"), lambda m: " "),
    (re.compile(r"(?<=[0-9]:[0-5][0-9])\smins?\b\.?"), lambda m: " minutes"),
    (  # of a clock: no inch is so large
        re.compile(r"(?<![\w.,])([0-9]{1,2})['′’](1[2-9]|[2-5][0-9])[\"″”]"),
        lambda m: f"{m[1]} minutes {m[2]} seconds",
    ),
    (re.compile(r"(?<=[-.\s][0-9]{4})\sx(?=[0-9]{2,5}(?!\w))"), lambda m: " extension "),
    (re.compile(r"(?<=[0-9])[kK](?=\s(?:white\s|rose\s|yellow\s)?gold\b)"), lambda m: " karat"),
    (re.compile(r"(?<=[0-9])\.[xX](?!\w)"), lambda m: " point ex"),
    (
        re.compile(r"(?<!\w)([Dd]ep|[Aa]rr)\.\s([0-2]?[0-9])[:.](?=[0-5][0-9])"),
        lambda m: f"{'departing' if m[1].lower() == 'dep' else 'arriving'} {m[2]}:",
    ),
    (re.compile(r"(?<=[0-9]\s)T(sp|bsp)(s?)\b"), lambda m: f"t{m[1]}{m[2]}"),
    (re.compile(r"(?<=(?:st|nd|rd|th)\s)Sts\.(?=\s[a-z]|[,;)])"), lambda m: "Streets"),
    (re.compile(r"\b401\s?\(?k\)?(?!\w)"), lambda m: "4 oh 1 kay"),
    (re.compile(r"\bCmd\b"), lambda m: "command"),
    (re.compile(r"\s['’]n['’]?\s|(?<=[a-z]{3})['’]n['’](?!t)(?=[a-z]{3})"), lambda m: " and "),
    (
        re.compile(r"([$£€])([0-9]{1,6})-a-(?=[a-z])"),
        lambda m: f"{m[2]} {_COINS[m[1]]} a ",
    ),
    (re.compile(r"\b(UTC|GMT)\s?[-−–]\s?(?=[0-9])"), lambda m: f"{m[1]} minus "),
    (
        re.compile(r"(?<=[0-9](?:st|nd|rd|th))\sc\.(?=(\s(?!BC|AD|CE)[A-Z]|\s?$)?)"),
        lambda m: " century" + ("." if m[1] is not None else ""),
    ),
    (re.compile(r"(?<!\S)\*(?=[0-9]{1,3}\b)"), lambda m: "star "),
    (re.compile(r"(?<!\w)#\s?(?=of\b)"), lambda m: "number "),
    (
        re.compile(rf"\b({_NUMBERED})\s#(?=[A-Z0-9]{{0,5}}-?[0-9])", re.IGNORECASE),
        lambda m: f"{m[1]} number ",
    ),
    (
        re.compile(r"\b(OTP|[Cc]ode|[Pp]asscode|PIN)(:| is)?\s([0-9]{3})-([0-9]{3})(?![\w-])"),
        lambda m: f"{m[1]}{m[2] or ''} {' '.join(m[3])}, {' '.join(m[4])}",
    ),
    (
        re.compile(r"(?<![\w:])([A-Z]):([A-Z])(?![\w:])"),
        lambda m: f"{letter_names(m[1])} to {letter_names(m[2])}",
    ),
    (
        re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof)\.?\s([AI])\.\s(?=[A-Z][a-z])"),
        lambda m: f"{m[1]}. {letter_names(m[2]).capitalize()} ",
    ),
)  # fmt: skip
_ANY = re.compile(
    rf"\(\)|--|#|p\.a|pop\.|[a-z]\)|[0-9&:;<>=|~º°⁺⁻ⁿ$£€{_SMALL}]|\b[NSEW]{{1,2}}\b|Phil|Ctrl|/|[-–]|fl\.|\([iv]|§|[Tt]emps?\.|Cmd|['’]n['’]|\b[A-G]b\b|[½⅓⅔¼¾⅛⅜⅝⅞]|\b(?:lg|med)\.|\s[AI]\.\s|\b[ivxl]{{1,6}}\b|Fed\.|App\."
)


def shorthand(text: str) -> str:
    return rewritten(text, (*_RULES, *REFERENCES), _ANY)
