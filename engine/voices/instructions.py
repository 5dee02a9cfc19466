"""Which instructions a checkpoint understands, where its config lists them.

A small model was taught a few styles and words for a voice. Anything else makes it do something
that nobody asked for, so it is left out and told. Published models list nothing and get everything.
"""

from __future__ import annotations

import re
from dataclasses import replace

from engine.messages import Message
from engine.types import Capabilities, Clone, Design, Preset

_NEGATED = re.compile(r"\b(?:no|not|without|never|less)\s+(?:any\s+|much\s+)?(?=[^\W\d_])")
_WORD = re.compile(r"(?:no_)?[^\W\d_]+")
_SILENT = frozenset(
    _WORD.findall(
        "a an and the in with of as if is it its this that please very more rather quite speak "
        "say read talk sound voice tone way like make be use give want i me my you your "
        "who should "
        "are up down pace take keep clearly full world "
        "would somebody someone for to on at by all had but so too little bit slightly"
    )
)
_MOST = 6  # words that are named


def style_of(instruct: str, able: Capabilities) -> tuple[str, tuple[str, ...]]:
    """The instruction that the model gets, and the words that it does not know."""
    words = words_of(instruct)
    if not able.styles or not words:
        return instruct, ()
    shares = {taught: len(set(known) & set(words)) for taught, known in able.styles.items()}
    best = max(shares, key=shares.__getitem__)
    known = set().union(*able.styles.values())
    return (best if shares[best] else ""), tuple(word for word in words if word not in known)


def unknown_in(description: str, able: Capabilities) -> tuple[str, ...]:
    """The words of a description that mean nothing to the model."""
    known = set(able.described)
    return tuple(word for word in words_of(description) if word not in known) if known else ()


def words_of(text: str) -> tuple[str, ...]:
    """The words that mean something, each once, in order; "without hurry" is one: "no-hurry"."""
    plain = _NEGATED.sub("no_", text.lower().replace("-", " "))
    words = (word.replace("_", "-") for word in _WORD.findall(plain))
    return tuple(dict.fromkeys(word for word in words if word not in _SILENT))


def understood(
    voice: Preset | Clone | Design, able: Capabilities
) -> tuple[Preset | Clone | Design, tuple[Message, ...]]:
    """The voice with the instruction that its model understands, and a word on the rest."""
    if isinstance(voice, Preset) and voice.instruct:
        instruct, unknown = style_of(voice.instruct, able)
        notice = Message(
            "{name} does not follow: {words}. It knows: {styles}",
            name=able.name,
            words=", ".join(unknown[:_MOST]),
            styles=" ".join(able.styles),
        )
        return replace(voice, instruct=instruct), (notice,) if unknown else ()
    if isinstance(voice, Design) and (unknown := unknown_in(voice.instruct, able)):
        notice = Message(
            "{name} does not know in a description: {words}. It knows sex, age, pitch, tone and "
            "pace.",
            name=able.name,
            words=", ".join(unknown[:_MOST]),
        )
        return voice, (notice,)
    return voice, ()
