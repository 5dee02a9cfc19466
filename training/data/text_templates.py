"""Sentences from patterns: numbers, dates, times, money, commands, questions, conversation.

Patterns are text as it is usually typed; the teacher's rules decide how digits are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random


def listed(text: str) -> list[str]:
    return text.split("|")


MONTHS = listed(
    "January|February|March|April|May|June|July|August|September|October|November|December"
)
DAYS = listed("Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday")
NAMES = listed(
    "Anna|Ben|Carla|David|Emma|Frank|Grace|Henry|Irene|Jack|Kate|Leo|Maria|Nora|Oscar|Paul|"
    "Rosa|Sam|Tina|Victor|Wendy|Alice|Robert|Susan|Peter|Laura|Martin|Julia|Simon|Helen"
)
PEOPLE = listed(
    "my brother|my sister|the teacher|the doctor|the driver|our neighbor|the old man|"
    "the girl|the boy|the captain|a friend of mine|the manager|the nurse|the farmer|"
    "the woman next door|the new student|the engineer|the cook|the pilot|somebody|everyone|"
    "nobody|he|she"
)
PLACES = listed(
    "the station|the market|the river|the library|the garden|the harbor|the kitchen|"
    "the office|the old bridge|the school|the hospital|the airport|the forest|the mountain|"
    "the museum|the city center|the beach|the hotel|the park|London|Paris|Boston|Chicago|"
    "New York|Berlin"
)
THINGS = listed(
    "book|letter|window|table|lamp|chair|picture|bottle|garden|computer|telephone|umbrella|"
    "hammer|basket|blanket|candle|camera|bicycle|suitcase|newspaper|violin|kettle|ticket|map|"
    "key|box|coat"
)
ADJECTIVES = listed(
    "small|large|red|blue|green|yellow|old|new|heavy|broken|quiet|bright|empty|beautiful|"
    "strange|warm|cold|soft|wooden|simple|expensive|cheap|clean|dirty|round|narrow|wide|sharp"
)
PAST = listed(
    "found|lost|bought|sold|carried|opened|repaired|painted|wanted|forgot|took|brought|"
    "dropped|cleaned|borrowed|noticed|remembered|described|moved|hid"
)
INFINITIVES = listed("find|lose|buy|sell|carry|open|repair|paint|want|forget")
LATER = listed(
    "yesterday|this morning|last night|two days ago|after lunch|before dinner|on Sunday|"
    "last week|an hour ago|at the end of the day|in the afternoon|just in time|"
    "without a word|again"
)
UNITS = listed(
    "meters|miles|kilometers|pounds|dollars|hours|minutes|seconds|days|people|pages|steps"
)
OPENERS = listed(
    "Well, |Of course, |Listen, |In the end, |Suddenly, |However, |Please, |Yes, |No, ||||||"
)
PATTERNS = (
    "{person} {past} the {adj} {thing} {later}.",
    "{opener}{person} {past} a {adj} {thing} near {place}.",
    "Did {person} really {base} the {thing}?",
    "Where is the {adj} {thing}?",
    "What a {adj} {thing}!",
    "Would you like the {adj} {thing} or the {adj2} one?",
    "The train to {place} leaves at {time}.",
    "The meeting on {day} starts at {time}, not at {time2}.",
    "It is {time} now.",
    "{name} was born on {month} {dom}, {year}.",
    "On {day}, {month} {dom}, we met near {place}.",
    "The {thing} costs ${cents}.",
    "{name} paid ${money} for the {adj} {thing}.",
    "That makes {number} {unit} in all.",
    "There were {number} {unit} and {small} {unit2}.",
    "Turn left after {small} {unit}, then go on to {place}.",
    "About {percent}% of the {unit} were {adj}.",
    "Call {phone} and ask for Mr. {name}.",
    "Dr. {name} lives at {small} {name2} St., near {place}.",
    "Mrs. {name} and Mr. {name2} arrived at {time}.",
    "Chapter {small}, page {number}.",
    "Room {small} is on the {ordinal} floor.",
    "In {year} it was {decimal} degrees in {place}.",
    "The answer is {decimal}.",
    "{name}, can you hear me?",
    "Good morning, {name}!",
    "How far is it to {place}? About {small} {unit}.",
    "If {person} {past} the {thing}, then who {past2} the {thing2}?",
    "{name} said that {person} {past} the {thing} {later}, but {name2} did not believe it.",
    "First the {thing}, then the {thing2}, and at last the {adj} {thing3}.",
    "Thank you very much, {name}.",
    "I will see you on {day} at {time}.",
    "Please bring the {thing}, the {thing2} and {small} {adj} {things}.",
    "Stop!",
    "Yes.",
    "No, not the {thing}!",
    "{small} plus {small2} is {number}.",
    "Of {number} {unit}, {number2} were {adj}.",
    "My name is {name}.",
    "{name} and {name2} grew up in {place}.",
    "Is {name} related to Mrs. {name2}?",
    "Letters came for {name}, {name2} and {name3}.",
    "We drove from {proper} to {proper2} in {small} hours.",
    "You have {small} new messages.",
    "The number is {digits}.",
    "All {hundreds} {unit} were {adj} {later}.",
    "{person} paid ${hundreds} for a {adj} {thing}.",
    "It costs ${hundreds}, not ${hundreds2}.",
    "Flight {hundreds} to {place} leaves at {time}.",
    "{opener}it is {hundreds} {unit} from {place} to {place2}.",
    "{name} counted {hundreds} {unit} and {number} {unit2}.",
    "Of the {hundreds}, {hundreds2} came back {later}.",
    "More than {hundreds} {unit} in {small} days!",
    "Room {hundreds}, please.",
    "Is it {hundreds} or {hundreds2}?",
    "{hundreds} {unit} are enough.",
    "They counted {hundreds} {things} and {hundreds2} {things2}.",
    "Behind {place} stood {hundreds} {adj} {things}.",
    "This {thing} is {hundreds} {unit} long and weighs {dozens} {unit2}.",
    "{person} still owes me ${dozens}.",
    "{opener}{person} asked for ${dozens} and got ${dozens2}.",
    "For ${dozens} you get a {thing}, for ${dozens2} a {adj} one.",
    "It was ${hundreds} at first, then ${dozens}, or ${dozens2} without the {thing}.",
    "Is ${dozens} too much for the {adj} {thing}?",
    "{name} saved ${round} in {small} weeks.",
)


def _plural(noun: str) -> str:
    return noun + ("es" if noun.endswith("x") else "s")


def _time(random: Random) -> str:
    hour, minute = random.randint(1, 12), random.choice((0, 5, 10, 15, 20, 30, 40, 45, 50, 55, 25))
    if random.random() < 0.3:
        minute = random.randint(0, 59)
    return f"{hour} o'clock" if not minute else f"{hour}:{minute:02d}"


def _number(random: Random) -> str:
    digits = random.choice((1, 2, 2, 3, 3, 3, 4, 4, 5, 6))
    value = random.randint(10 ** (digits - 1), 10**digits - 1)
    return f"{value:,}" if random.random() < 0.5 else str(value)


def _hundreds(random: Random) -> str:
    """From 100 to 999, half of them round."""
    return str(random.randint(100, 999) if random.random() < 0.5 else 10 * random.randint(10, 99))


def _round(random: Random) -> str:
    """Thousands or hundreds of thousands, as prices are."""
    return f"{random.choice((100, 500, 1000, 10_000)) * random.randint(11, 99):,}"


def ordinal(value: int) -> str:
    few = {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{few if value % 100 not in (11, 12, 13) else 'th'}"


def name(random: Random, proper: Sequence[str]) -> str:
    """A common first name, with or without one of these names, or one of them alone."""
    if not proper or random.random() < 0.4:
        return random.choice(NAMES)
    known = random.choice(NAMES) + " " if random.random() < 0.3 else ""
    return known + random.choice(proper)


SLOTS: dict[str, Callable[[Random], str]] = {
    "person": lambda r: r.choice(PEOPLE),
    "past": lambda r: r.choice(PAST),
    "base": lambda r: r.choice(INFINITIVES),
    "adj": lambda r: r.choice(ADJECTIVES),
    "thing": lambda r: r.choice(THINGS),
    "things": lambda r: _plural(r.choice(THINGS)),
    "later": lambda r: r.choice(LATER),
    "opener": lambda r: r.choice(OPENERS),
    "time": _time,
    "day": lambda r: r.choice(DAYS),
    "month": lambda r: r.choice(MONTHS),
    "dom": lambda r: str(r.randint(1, 31)),
    "year": lambda r: str(r.randint(1500, 2060)),
    "cents": lambda r: f"{r.randint(0, 99)}.{r.randint(0, 99):02d}",
    "money": _number,
    "number": _number,
    "hundreds": _hundreds,
    "dozens": lambda r: str(r.randint(1, 99)),
    "round": _round,
    "small": lambda r: str(r.randint(1, 60)),
    "unit": lambda r: r.choice(UNITS),
    "percent": lambda r: str(r.randint(1, 100)),
    "phone": lambda r: f"{r.randint(200, 999)}-{r.randint(1000, 9999)}",
    "digits": lambda r: " ".join(str(r.randint(0, 9)) for _ in range(r.randint(2, 6))),
    "ordinal": lambda r: ordinal(r.randint(1, 31)),
    "decimal": lambda r: f"{r.randint(0, 99)}.{r.randint(0, 999)}",
}


def place(random: Random, proper: Sequence[str]) -> str:
    return random.choice(proper if proper and random.random() < 0.3 else PLACES)


def sentence(random: Random, proper: Sequence[str] = ()) -> str:
    """One filled pattern with a capital first letter; `proper` are names that few people have."""
    named: dict[str, Callable[[Random, Sequence[str]], str]] = {
        "name": name, "place": place, "proper": lambda r, names: r.choice(names or PLACES)
    }  # fmt: skip

    def fill(match: re.Match[str]) -> str:
        slot = match[1]
        return named[slot](random, proper) if slot in named else SLOTS[slot](random)

    filled = re.sub(r"{([a-z]+)\d?}", fill, random.choice(PATTERNS))
    return filled[0].upper() + filled[1:]
