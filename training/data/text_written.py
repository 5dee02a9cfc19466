"""Sentences with what people write and nobody says so: abbreviations, units, addresses, acronyms.

Mini is given their spoken form (`engine.text.spoken_form`); what is drawn here is the writing, in
as many shapes as it has (`ITEMS`), in sentences that begin and go on in many ways (`CARRIERS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from string import ascii_lowercase, ascii_uppercase

from engine.text.letters import LETTERED, WORDS
from training.data.text_templates import (
    ADJECTIVES,
    DAYS,
    LATER,
    MONTHS,
    NAMES,
    PEOPLE,
    PLACES,
    THINGS,
    listed,
    ordinal,
)

ACRONYMS = sorted(LETTERED | WORDS)
ROMAN = listed("II|III|IV|V|VI|VII|VIII|IX|X|XI|XII|XIII|XIV|XV|XVI|XVIII|XIX|XX|XXI")
DO = listed(
    "read|add|take|open|close|install|print|visit|use|cut|pour|bake|wait|call|text|ring|dial|see|"
    "ask|bring|send|go to|follow|choose|press|turn|check|write to|look at|come on|buy|sell|try|"
    "move|keep|leave|meet me at|save|start|stop|find|get|put|mix|boil|lift|watch|count|name|play|"
    "drop|push|pull|hold|show|tell me about|ship|fill|stir|skip"
)
TITLES = listed("Dr.|Mrs.|Mr.|Ms.|Prof.|Gen.|Capt.|Sen.|Rep.|Sgt.|Lt.|St.|Rev.|Gov.|Col.")
STREETS = listed("St.|Ave.|Rd.|Dr.|Blvd.|Ln.|Sq.")
KINGS = listed(
    "Henry|Louis|Elizabeth|George|Edward|Charles|William|Philip|Pope Pius|Queen Mary|Pope Paul|"
    "King James"
)
PARTS = listed("Chapter|Act|Part|Volume|Book|Scene|World War|Section|Type|Phase|Level|Title")
UNITS = listed(
    "km|m|cm|mm|mi|ft|kg|g|mg|lb|oz|ml|l|km/h|mph|m/s|GB|MB|kB|TB|GHz|MHz|Hz|kHz|W|kW|V|A|min|h|s|"
    "ms|°C|°F|km²|m²|m³|µg|%|dB|rpm|kWh|hrs|lbs|tbsp|tsp"
)
DOMAINS = listed("com|org|net|co.uk|de|edu|io|gov|info")
FILES = listed("txt|pdf|docx|jpg|png|mp3|csv|zip|html|py")
MODELS = listed("{L}{d}|{L}{L} {dd}|{L}{dd}|{L}{L}{dd}|{L}-{dd}|{L}{d}{L}|{dd}{L}|{L}{d}-{d}")
CURRENCIES = listed(
    "${n}|£{n}|€{n}|${n}|¥{n}|${n} million|£{n}m|${n}bn|${n}k|€{n} billion|{n}p|{n}¢|{n} USD|"
    "US${n}|${n}-${m}"
)
FRACTIONS = listed("1/2|1/4|3/4|2/3|1/8|½|¾|⅓|1/3|5/8|7/10")
AND_FRACTIONS = listed("½|¾| 1/2| 1/4| 2/3")

CARRIERS = (
    "{Do} {item} {later}.",
    "{Do} {item}, please.",
    "{Do} {item} and {do} the {thing}.",
    "{Do} {item} near {place}.",
    "{Do} {item}!",
    "{Item} was {adj}.",
    "{Item} and {item} were {adj} {later}.",
    "{Item}, as {person} said, is {adj}.",
    "{person} wanted {item}.",
    "{person} said {item}, not {item}.",
    "{person} and {name} spoke about {item}.",
    "Nobody told {person} about {item}.",
    "What about {item}?",
    "Did you say {item} or {item}?",
    "{name}, is {item} {adj}?",
    "How {adj} is {item}?",
    "Have you got {item}?",
    "First {item}, then {item}.",
    "Near {place} there was {item}.",
    "I think that {item} will do.",
    "This must be {item}.",
    "On the {thing} we found {item} and {item}.",
    "No {thing} without {item}.",
    "Between {item} and {item} lies {place}.",
    "For {item} you need a {adj} {thing}.",
    "That was {item} {later}.",
    "{day}: {item}.",
    "{Item}.",
    "{Item}?",
)
ITEMS = listed(
    "{money}|{money}|{amount}|{amount}|a {thing} of {amount}|{amount} of {thing}s|approx. {amount}|"
    "{range} {unit}|{range} {thing}s|{range}% of the {thing}s|{percent}%|{degrees}|{big} {thing}s|"
    "{big}|{fraction} {thing}|{fraction} of the {thing}|{mixed} {thing}s|{version} {thing}s|"
    "the {ordinal} {thing}|{small} + {small}|{small} < {small}|{small}:{small}|{small}x{small}|"
    "{date}|{date}|{time}|{time}|the {decade}s|the '{decade2}s|{century}|{century} and {century}|"
    "{century} BC|{day3}-{day3}|{hour}-{hour} {half}|"
    "{acronym}|the {acronym}|the {acronym}'s {thing}|a {acronym} {thing}|{small} {acronym}s|"
    "{letters}|the {letters} {thing}|{letter} or {letter}|{letter} and {letter}|{thing} {letter}|"
    "{code}|{code}|the {code}|{phone}|{isbn}|{digits}|{ip}|{web}|{address}|{file}|@{word}|#{word}|"
    "{word} {version}|"
    "{king} {roman}|{part} {roman}|{title} {name}|{title} {name} and {title} {name}|Mt. {name}|"
    "{small} {name} {street}|{name} & {name} Ltd.|{name} Inc.|{name} {name} Jr.|{name} vs. {name}|"
    "No. {small}|{part} {small}, pp. {range}|fig. {small}|U.S. {thing}s|"
    "a {thing}, e.g. a {adj} one|{adj}, i.e. {adj}|{thing}s, {thing}s, etc.|"
    "the {THING}|{ADJ} {THING}S|{thing}/{thing}|the {thing} ({adj})|*{adj}* {thing}s|"
    "the {thing}—{adj} or {adj}—|“{adj}” {thing}s"
)


def _date(random: Random) -> str:
    day, name, year = random.randint(1, 28), random.choice(MONTHS), random.randint(1700, 2060)
    month, short = MONTHS.index(name) + 1, name[:3]
    return random.choice(
        (
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
            f"{ordinal(day)} {name} {year}",
            f"{short} {ordinal(day)}",
            f"the {ordinal(day)} of {name}",
            f"{year}-{month:02d}-{day:02d}",
            f"{day:02d}/{month:02d}/{year}",
            f"{random.choice(DAYS)[:3]}, {day} {short}",
            f"{name} {year}",
            f"{day} {name}",
            f"{short}. {year}",
        )
    )


def _time(random: Random) -> str:
    hour, minute = random.randint(0, 23), random.choice((0, 5, 15, 30, 45, random.randint(0, 59)))
    small, half = hour % 12 or 12, random.choice(("am", "pm", " a.m.", " p.m.", " am", "AM"))
    return random.choice(
        (
            f"{hour}:{minute:02d}",
            f"{small}:{minute:02d}{half}",
            f"{small}{half}",
            f"{small}.{minute:02d} pm",
            f"{small} o'clock",
        )
    )


def _number(random: Random) -> str:
    value = random.randint(1, 10 ** random.randint(1, 4))
    cents = f"{random.randint(1, 99)}.{random.randint(0, 99):02d}"
    return random.choice((f"{value}", f"{value:,}", f"{value / 10:.1f}", cents))


def _big(random: Random) -> str:
    value = random.randint(1, 10 ** random.randint(3, 7))
    return random.choice((f"{value:,}", f"{value}"))


def _range(random: Random) -> str:
    low = random.randint(1, 300)
    return f"{low}{random.choice('-–')}{low + random.randint(1, 60)}"


def _code(random: Random) -> str:
    def drawn(match: re.Match[str]) -> str:
        if match[1] == "L":
            return random.choice(ascii_uppercase)
        return str(random.randint(1, 9) if match[1] == "d" else random.randint(10, 400))

    return re.sub(r"{(\w+)}", drawn, random.choice(MODELS))


def _digits(random: Random, *groups: int) -> str:
    return "-".join("".join(random.choices("0123456789", k=count)) for count in groups)


def _phone(random: Random) -> str:
    return random.choice(
        (
            _digits(random, 3, 4),
            _digits(random, 3, 3, 4),
            f"({_digits(random, 3)}) {_digits(random, 3, 4)}",
            f"+44 20 {_digits(random, 4)} {_digits(random, 4)}",
            f"1-800-{_digits(random, 3, 4)}",
            random.choice(("911", "999", "112")),
            f"0{_digits(random, 4)} {_digits(random, 6)}",
        )
    )


def _word(random: Random) -> str:
    return random.choice(
        (random.choice(THINGS), random.choice(NAMES).lower(), random.choice(ADJECTIVES))
    )


def _web(random: Random) -> str:
    site, page = f"{_word(random)}.{random.choice(DOMAINS)}", _word(random)
    return random.choice(
        (site, f"www.{site}", f"https://{site}", f"{site}/{page}", f"https://www.{site}/{page}")
    )


def _address(random: Random) -> str:
    first, second = _word(random), _word(random)
    who = random.choice((first, f"{first}.{second}", f"{first}{random.randint(1, 99)}", "info"))
    return f"{who}@{_word(random)}.{random.choice(DOMAINS)}"


def _money(random: Random) -> str:
    pattern = random.choice(CURRENCIES)
    return pattern.replace("{n}", _number(random)).replace("{m}", _number(random))


def _percent(random: Random) -> str:
    whole = str(random.randint(1, 100))
    return random.choice((whole, f"{random.randint(0, 30)}.{random.randint(1, 9)}"))


def _degrees(random: Random) -> str:
    sign, unit = random.choice(("", "-")), random.choice(("°", "°C", "°F", " °C"))
    return f"{sign}{random.randint(1, 120)}{unit}"


def _of(choices: Sequence[str]) -> Callable[[Random], str]:
    return lambda random: random.choice(choices)


def _between(low: int, high: int, form: str = "{}") -> Callable[[Random], str]:
    return lambda random: form.format(random.randint(low, high))


SLOTS: dict[str, Callable[[Random], str]] = {
    "acronym": _of(ACRONYMS),
    "address": _address,
    "adj": _of(ADJECTIVES),
    "amount": lambda r: _number(r) + r.choice(("", " ")) + r.choice(UNITS),
    "big": _big,
    "century": _between(1000, 2050),
    "code": _code,
    "date": _date,
    "day": _of(DAYS),
    "day3": lambda r: r.choice(DAYS)[:3],
    "decade": _between(170, 202, "{}0"),
    "decade2": _between(2, 9, "{}0"),
    "degrees": _degrees,
    "digits": lambda r: _digits(r, r.randint(3, 8)),
    "do": _of(DO),
    "file": lambda r: f"{_word(r)}.{r.choice(FILES)}",
    "fraction": _of(FRACTIONS),
    "half": _of(("am", "pm", "a.m.", "p.m.")),
    "hour": _between(1, 12),
    "ip": lambda r: ".".join(str(r.randint(0, 255)) for _ in range(4)),
    "isbn": lambda r: _digits(r, 3, 1, 2, 6, 1),
    "king": _of(KINGS),
    "later": _of(LATER),
    "letter": _of(ascii_uppercase + ascii_lowercase),
    "letters": lambda r: "".join(r.choices(ascii_uppercase, k=r.randint(2, 4))),
    "mixed": lambda r: f"{r.randint(1, 9)}{r.choice(AND_FRACTIONS)}",
    "money": _money,
    "name": _of(NAMES),
    "ordinal": lambda r: ordinal(r.randint(1, 130)),
    "part": _of(PARTS),
    "percent": _percent,
    "person": _of(PEOPLE),
    "phone": _phone,
    "place": _of(PLACES),
    "range": _range,
    "roman": _of(ROMAN),
    "small": _between(1, 60),
    "street": _of(STREETS),
    "thing": _of(THINGS),
    "time": _time,
    "title": _of(TITLES),
    "unit": _of(UNITS),
    "version": lambda r: f"{r.choice(('', '', 'v'))}{r.randint(0, 20)}.{r.randint(0, 99)}",
    "web": _web,
    "word": _word,
}


def sentence(random: Random, proper: Sequence[str] = ()) -> str:
    """A carrier with items; `proper` are names that few people have."""

    def fill(match: re.Match[str]) -> str:
        slot = match[1]
        if slot.lower() == "item":
            value = filled(random.choice(ITEMS))
        elif slot in ("name", "place") and proper and random.random() < 0.4:
            value = random.choice(proper)
        else:
            value = SLOTS[slot.lower()](random)
        if slot.isupper():
            return value.upper()
        return value[0].upper() + value[1:] if slot[0].isupper() else value

    def filled(pattern: str) -> str:
        return re.sub(r"{([A-Za-z]+\d?)}", fill, pattern)

    made = filled(random.choice(CARRIERS))
    return made[0].upper() + made[1:]
