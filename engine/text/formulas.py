"""Formulas of mathematics, chemistry and games, written out so that the other rules know them.

"f(x)", "log₁₀(100)", "5! =", "NaCl", "1/250 s", "3:2:1". Knows no numbers' names but shares of a
second: figures stay figures here.
"""

from __future__ import annotations

import re

from engine.text.letters import letter_names
from engine.text.number_words import ordinal
from engine.text.rules import Rule, rewritten

_FUNCTIONS = {
    "sin": "sine", "cos": "cosine", "tan": "tangent", "ln": "natural log", "exp": "exponential",
    "log": "log",
}  # fmt: skip
_ELEMENTS = (  # of two letters; then those of one
    "He|Li|Be|Ne|Na|Mg|Al|Si|Cl|Ar|Ca|Sc|Ti|Cr|Mn|Fe|Co|Ni|Cu|Zn|Ga|Ge|As|Se|Br|Kr|Rb|Sr|Zr|Nb|"
    "Mo|Ru|Rh|Pd|Ag|Cd|In|Sn|Sb|Te|Xe|Cs|Ba|Pt|Au|Hg|Pb|Bi|Ra|Th|Pu|[HBCNOFPSKVYWIU]"
)
_SPELLED = {  # letters and figures that no other rule takes apart
    "IPv": "eye pee vee", "NVMe": "en vee em ee", "PCIe": "pee see eye ee", "IoT": "eye oh tee",
    "HbA1c": "aitch bee eigh one see", "LaTeX": "lay tek",
    "SaaS": "sass", "PaaS": "pass", "pKa": "pee kay eigh",
}  # fmt: skip
_STEPS = (
    "[Ss]tep|[Pp]art|[Pp]age|[Ss]lide|[Dd]ay|[Ll]ap|[Rr]ound|[Ee]pisode|[Qq]uestion|[Ll]evel|"
    "[Ss]tage|[Dd]is[ck]|[Tt]weet|[Pp]hoto|[Ll]esson|[Tt]ask"
)


def _say_function(match: re.Match[str]) -> str:
    name, base, inner = match.groups()
    return f"{_FUNCTIONS[name]} {f'base {base} ' if base else ''}of {inner}"


def _say_compound(match: re.Match[str]) -> str:
    """ "NaCl": the names of its letters; "PCs" are no caesium."""
    symbols = match[0]
    halide = symbols[-2:] in ("Cl", "Br") and symbols[:-2].isupper()
    if symbols.isalpha() and not halide and (symbols.isupper() or symbols[:-1].isupper()):
        return symbols
    parts = re.findall(r"[A-Za-z]+|[0-9]+", symbols)
    return " ".join(letter_names(part) or part for part in parts)


def _say_ion(match: re.Match[str]) -> str:
    """ "Na+", "Fe2+", "Ca²⁺"."""
    charge = (match[2] or match[4] or "").translate(str.maketrans("²³", "23"))
    sign = "minus" if match[5] == "⁻" else "plus"
    return " ".join(filter(None, (letter_names(match[1]), charge, sign)))


_RULES: tuple[Rule, ...] = (
    (
        re.compile(r"(?<![\w.])(sin|cos|tan|ln|exp|log)([0-9]{1,2})?\s?\(([^()\n]{1,20})\)"),
        _say_function,
    ),
    (  # f(x)
        re.compile(r"(?<![\w.])([fghpFPN])\(([a-zA-Z]|[-−]?[0-9]{1,4})\)"),
        lambda m: f"{letter_names(m[1])} of {letter_names(m[2]) or m[2]}",
    ),
    (
        re.compile(r"(?:(?<=[=±(]\s)|(?<=[=±]))[-−](?=[a-z](?!\w))"),
        lambda m: "minus ",
    ),
    (  # 2NaOH
        re.compile(rf"(?<![\w.,@-])([1-9])(?=(?:(?:{_ELEMENTS})[0-9]{{0,2}}){{2,6}}(?![\w'’@-]))(?=[A-Z]{{0,3}}[A-Z][a-z])"),
        lambda m: f"{m[1]} ",
    ),
    (re.compile(r"(?:(?<=hat's )|(?<=hat’s )|(?<=hat is ))([0-9]{1,4})\s?x\s?(?=[0-9])"),
     lambda m: f"{m[1]} times "),
    (re.compile(r"([$£€]\s?[0-9][0-9.,]{0,12})/(?=[0-9]{1,4}\s?(?:g|kg|ml|l|L|m|km)\b)"),
     lambda m: f"{m[1]} per "),
    (  # an ion
        re.compile(
            rf"(?<![\w.])((?:{_ELEMENTS})(?<=[A-Z][a-z]))(?:([0-9]?)(\+)(?!\w)|([²³]?)([⁺⁻]))"
        ),
        _say_ion,
    ),
    (  # E = mc², y = mx + b
        re.compile(
            r"(?:(?<=[=+]\s)|(?<=[=+]))(?!(?:k[gm]|[cm]m|m[gls]|lb|ft|hr)\b)([b-df-hj-np-tv-z]{2})(?=[²³^]|\s?[-+]|[.,;)]|$)"
        ),
        lambda m: letter_names(m[1]),
    ),
    (re.compile(r"\b(sin|cos|tan)(?=[²³⁻^])"), lambda m: _FUNCTIONS[m[1]]),
    (  # a map's scale
        re.compile(r"(?<![\w.,:/-])1:([0-9]{1,3}(?:,[0-9]{3}){1,3}|[0-9]{4,9})(?![\w:]|[.,][0-9])"),
        lambda m: f"1 to {m[1]}",
    ),
    (
        re.compile(r"(?<![\w.,:/-])([0-9]{1,3}(?:,[0-9]{3}){1,3}|[0-9]{4,9}):1(?![\w:]|[.,][0-9])"),
        lambda m: f"{m[1]} to 1",
    ),
    (  # 5°C–10°C, 10p-20p
        re.compile(r"(?:(?<=[0-9]°[CF])\s?[-–]\s?(?=[0-9]{1,3}\s?°)|(?<=[0-9]p)\s?[-–]\s?(?=[0-9]{1,2}p\b))"),
        lambda m: " to ",
    ),
    (re.compile(r"(?<=[0-9]/[2-9] )mi\b"), lambda m: "mile"),
    (re.compile(r"∛\s?(?=[0-9a-z])"), lambda m: "cube root of "),
    (re.compile(r"√\s?(?=[0-9a-z])"), lambda m: "square root of "),
    (
        re.compile(r"(?<![\w.,])([0-9]{1,3}|[nk])!(?=\s?[=+×*/÷])"),
        lambda m: f"{m[1]} factorial",
    ),
    (  # of a camera
        re.compile(r"(?<![\w.,/])1/([1-9][0-9]{1,4})(?:th)?\s?(?:s|secs?|seconds?)(?![\w/])"),
        lambda m: f"one {ordinal(m[1])} of a second",
    ),
    (
        re.compile(r"(?<![\w.,:/-])([1-9][0-9]?):([1-9]):([1-9][0-9]?)(?![\w:]|\.[0-9])"),
        lambda m: f"{m[1]} to {m[2]} to {m[3]}",
    ),
    (
        re.compile(rf"\b({_STEPS})\s([0-9]{{1,3}})/([0-9]{{1,3}})(?![\w/]|[.,][0-9])"),
        lambda m: f"{m[1]} {m[2]} of {m[3]}",
    ),
    (re.compile(r"(?<![\w-])(IPv(?=[46]\b)|(?:NVMe|PCIe|IoT|HbA1c|LaTeX|[SP]aaS|pKa)(?!\w))"),
     lambda m: _SPELLED[m[1]] + (" " if m[1] == "IPv" else "")),
    (
        re.compile(rf"(?<![\w.@-])(?!WW|FY)(?:(?:{_ELEMENTS})[0-9]{{0,2}}){{2,6}}(?![\w'’@-])"),
        _say_compound,
    ),
)  # fmt: skip
_ANY = re.compile(
    r"[(√∛!/:=+⁺⁻]|[0-9]\s?x\s?[0-9]|°[CF]|[A-Z][a-z]?[0-9]?[A-Z]|[A-Z]v[46]|HbA|IoT|aaS|pKa|(?:sin|cos|tan)[²³⁻^]|[-−][a-z]\b"
)


def formulas(text: str) -> str:
    return rewritten(text, _RULES, _ANY)
