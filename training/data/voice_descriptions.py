"""Descriptions of synthetic voices as instructions, from the voices' axes."""

from __future__ import annotations

import math
from random import Random

from training.data.speakers import BASE, PACE, Speaker

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
)


def _end(value: float, edge: float) -> int:
    return (value > edge) - (value < -edge)


def levels(speaker: Speaker) -> dict[str, int]:
    """-1, 0 or 1 per axis: pitch low/high, tone dark/bright, pace fast/slow."""
    pitch, height, _, tilt = speaker.axes()[:4]
    return {
        "pitch": _end(pitch, 0.2),
        "tone": _end(tilt + 0.6 * height, 0.45),
        "pace": _end(math.log2(speaker.drawl) * PACE, 0.5),
    }


def gender(speaker: Speaker) -> str:
    if speaker.other is not None and BASE["slt"] in (speaker.base, speaker.other):
        return ""
    if speaker.base == BASE["slt"]:
        return "woman" if speaker.height > 1.02 else ""
    return "man" if speaker.height < 1.08 and speaker.pitch < 165 else ""


def describe(speaker: Speaker, random: Random) -> str:
    """A random instruction that fits the speaker."""
    level = levels(speaker)
    words = _words(level, random)
    who = gender(speaker) if random.random() < 0.7 else ""
    listed = ", ".join(words) or random.choice(MEDIUM)
    text = random.choice(FRAMES).format(
        a=f"{'an' if listed[0] in 'aeiou' else 'a'} {listed}",
        listed=listed,
        noun=random.choice(NOUNS[who]),
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
