"""Shorthand of notices, notes and messages, written out so that the other rules know it.

"8/day", "2 miles N of Oxford", "7.30–11am", "J10–J12", "5/8ths", "&amp;", ":-)". Knows no numbers'
names: figures stay figures here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

_TIMES = {"wk": "week", "mo": "month", "yr": "year", "hr": "hour"}
_WINDS = {
    "N": "north", "S": "south", "E": "east", "W": "west", "NE": "north-east", "NW": "north-west",
    "SE": "south-east", "SW": "south-west",
}  # fmt: skip
_WIND = "|".join(sorted(_WINDS, key=len, reverse=True))
_HOUR = r"(?:1[0-2]|[1-9])"
_AGES = "year|day|week|month|hour|minute|page|mile|man|point|foot|inch"
_COUNTED = "km|miles|people|users|years|tons|tonnes|views|subscribers"

_Say = Callable[[re.Match[str]], str]
_RULES: tuple[tuple[re.Pattern[str], _Say], ...] = (
    (re.compile(r"&(?:amp|lt|gt|quot|nbsp|apos|#39);"), lambda m: html.unescape(m[0])),
    (re.compile(r"(?<!\S)(?:<3|[:;]-?[)(DPp]|xD)(?!\S)"), lambda m: ""),
    (re.compile(r"\bN[º°]\s?(?=[0-9])"), lambda m: "number "),
    (  # 7.30–11am
        re.compile(
            rf"(?<![\w.,:/])({_HOUR})\.([0-5][0-9])"
            rf"(?=\s?[-–—]\s?{_HOUR}(?:[.:][0-5][0-9])?\s?[ap]\.?m\b)"
        ),
        lambda m: f"{m[1]}:{m[2]}",
    ),
    (
        re.compile(r"(?<=[0-9s])/(day|week|month|year|hour|night|person|wk|mo|yr|hr)\b(?:\.(?=\s[a-z]|,))?"),
        lambda m: f" per {_TIMES.get(m[1], m[1])}",
    ),
    (
        re.compile(rf"\b(miles?|km|kilomet(?:re|er)s?|met(?:re|er)s?|yards|mph)\s({_WIND})(?=\s(?:of|from)\b|[,.;)])"),
        lambda m: f"{m[1]} {_WINDS[m[2]]}",
    ),
    (re.compile(r"(?<!\w)A(?=:\s)"), lambda m: "eigh"),  # the answer
    (
        re.compile(r"(?<![\w-])([A-Z])([0-9]{1,3})\s?[-–]\s?\1([0-9]{1,3})(?![\w-])"),
        lambda m: f"{m[1]}{m[2]} to {m[1]}{m[3]}",
    ),
    (re.compile(r"(?<=[0-9])ff\.?(?!\w)"), lambda m: " and following"),
    (re.compile(r"(?<![\w.,/])([0-9]{1,2}/[0-9]{1,2})(?:ths|rds|nds)\b"), lambda m: m[1]),
    (
        re.compile(rf"(?<![\w.,-])([0-9]{{1,3}})[-–]([0-9]{{1,3}})-(?={_AGES})"),
        lambda m: f"{m[1]} to {m[2]} ",
    ),
    (
        re.compile(r"(?<![\w.,])([0-9]{1,3})k(?=\s(?:run|race|walk|runners?)\b)"),
        lambda m: f"{m[1]} kay",
    ),
    (
        re.compile(rf"(?<![\w.,])([0-9]{{1,4}}(?:\.[0-9]{{1,3}})?)m\s(?=(?:{_COUNTED})\b)"),
        lambda m: f"{m[1]} million ",
    ),
    (
        re.compile(r"\b(Pop|pop)(?:\.|ulation)?:?\s([0-9]{1,4}(?:\.[0-9]{1,3})?)m\b"),
        lambda m: f"{m[1]}ulation {m[2]} million",
    ),
    (re.compile(r"\bD\.?\s?Phil\b\.?"), lambda m: "dee fill"),
)  # fmt: skip
_ANY = re.compile(r"[0-9&:;<º°]|\b[NSEW]{1,2}\b|Phil")


def shorthand(text: str) -> str:
    if _ANY.search(text):
        for pattern, say in _RULES:
            text = pattern.sub(say, text)
    return text
