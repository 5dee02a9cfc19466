"""Descriptions of the speakers as instructions, from their axes."""

from __future__ import annotations

import math
from random import Random

from training.data.speakers import PACE, Speaker

# Words for the ends of each axis. The middle is left out, or named as such.
LOW, HIGH = (
    ("low", "low-pitched", "deep-pitched", "rather low"),
    ("high", "high-pitched", "rather high"),
)
DARK, BRIGHT = (
    ("deep", "dark", "warm", "full", "mellow", "soft"),
    ("bright", "thin", "clear and bright", "sharp", "light"),
)
SLOW, FAST = (
    ("slow", "slow-speaking", "unhurried", "calm and slow"),
    ("fast", "fast-speaking", "quick", "hurried"),
)
ENDS = {"pitch": (LOW, HIGH), "tone": (DARK, BRIGHT), "pace": (FAST, SLOW)}
MEDIUM = ("medium", "ordinary", "normal", "neutral")
PACE_PHRASES = {
    -1: ("speaking fast", "who talks quickly", "at a quick pace", "in a hurry"),
    1: ("speaking slowly", "who takes time", "at a slow pace", "without any hurry"),
    0: ("at a normal pace", "speaking steadily"),
}
NOUNS = {
    "woman": ("woman", "female voice", "female speaker", "lady", "woman's voice"),
    "man": ("man", "male voice", "male speaker", "man's voice", "gentleman"),
    "": ("voice", "speaker", "narrator", "person"),
}
# Whom people think of: by sex, and how the voice's pitch is among those of that sex.
AGES = {
    ("woman", 1): ("girl", "young woman", "young girl", "young female voice"),
    ("woman", -1): ("older woman", "old woman", "elderly lady", "mature woman"),
    ("man", 1): ("young man", "boy", "young male voice", "youth"),
    ("man", -1): ("old man", "older man", "elderly gentleman", "mature man"),
}
MIDDLES = {"": 165.0, "woman": 228.0, "man": 115.0}  # Hz: what is neither high nor low
APART = {"": 0.25, "woman": 0.14, "man": 0.14}  # octaves from there: what is
FRAMES = (
    "{a} {noun}",
    "{a} {noun}, {pace}",
    "A voice for a story: {a} {noun}.",
    "Speak like {a} {noun}.",
    "Speak like {a} {noun} {pace}.",
    "I want {a} {noun}, {pace}.",
    "Give me {a} {noun}.",
    "Use {a} {noun}, please.",
    "Narration by {a} {noun}, {pace}",
    "Imagine {a} {noun} {pace}.",
    "I would like to hear {a} {noun}.",
    "It is {a} {noun} that reads this, {pace}.",
    "With {a} {noun}",
    # Short forms without an article, or without a noun.
    "{listed} {noun}",
    "{listed} {noun} {pace}",
    "{listed} {noun}, {pace}",
    "{listed}",
    "{listed}, {pace}",
    "{noun}, {listed}",
    "{noun}: {listed}, {pace}",
    "{pace}, {listed} {noun}",
    "Sound {listed}.",
    "Make it {listed}.",
    "The {noun} is {listed}.",
    "The {noun} should be {listed}, {pace}.",
    "Someone {listed}",
    "Somebody {listed}, {pace}",
    # Who it is, and nothing else.
    *(4 * ("{who}", "Speak like {who}.", "The voice of {who}", "I want {who}, {pace}.")),
)


def _end(value: float, edge: float) -> int:
    return (value > edge) - (value < -edge)


def levels(speaker: Speaker, who: str = "") -> dict[str, int]:
    """-1, 0 or 1 per axis: pitch low/high for a man, a woman or anybody, tone dark/bright, pace
    fast/slow."""
    _, height, drawl, tilt = speaker.axes()[:4]
    return {
        "pitch": _end(math.log2(speaker.hertz / MIDDLES[who]), APART[who]),
        "tone": _end(tilt + 0.6 * height, 0.35),
        "pace": _end(drawl, 0.1 * PACE),
    }


def gender(speaker: Speaker) -> str:
    """A man, a woman, or neither for certain."""
    man = speaker.man()
    if man >= 0.6 and speaker.hertz < 165:
        return "man"
    return "woman" if man <= 0.3 and speaker.hertz > 155 else ""


def describe(speaker: Speaker, random: Random) -> str:
    """A random instruction that fits the speaker."""
    frame = random.choice(FRAMES)
    shares = {"{noun}": 0.75, "{who}": 1.0}
    chance = max((share for slot, share in shares.items() if slot in frame), default=0.0)
    who = gender(speaker) if random.random() < chance else ""
    level = levels(speaker, who)
    age = AGES.get((who, level["pitch"]), ())
    noun = random.choice(age if age and random.random() < 0.35 else NOUNS[who])
    words = _words(level, random)
    listed = ", ".join(words) or random.choice(MEDIUM)
    text = frame.format(
        a=f"{'an' if listed[0] in 'aeiou' else 'a'} {listed}",
        listed=listed,
        noun=noun,
        who=f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}",
        pace=random.choice(PACE_PHRASES[level["pace"]]),
    )
    return _varied(text, random)


def _words(level: dict[str, int], random: Random) -> list[str]:
    """Words for most of the axes on which the voice is not in the middle."""
    words = []
    for axis, ends in ENDS.items():
        if level[axis] and random.random() < 0.75:
            words.append(random.choice(ends[level[axis] > 0]))
    random.shuffle(words)
    return words


def _varied(text: str, random: Random) -> str:
    if random.random() < 0.25:
        text = text.replace(", ", " and ", 1)
    text = text[0].upper() + text[1:]
    if random.random() < 0.2:
        text = text.lower()
    return text.rstrip(".") + random.choice(("", ".", "."))
