"""The reading settings as form fields: language, seed, numbers, pauses, pronunciation."""

from __future__ import annotations

from typing import Any, NamedTuple

import gradio as gr
from pydantic import ValidationError

from engine import InvalidSetting
from studio.scripts import Delivery, Pauses, SpeechOptions, read_spellings, write_spellings
from studio.scripts.model import MAX_PAUSE
from studio.ui.i18n import word
from studio.ui.speech_form import SPEEDS, read_seed

SPELLINGS = "One a line: Nguyen = win"


class ReadingFields(NamedTuple):
    """In the order of the values in `delivery_of` and `values_of`."""

    language: gr.Dropdown
    seed: gr.Textbox
    numbers: gr.Checkbox
    directions: gr.Checkbox
    sentence: gr.Number
    turn: gr.Number
    paragraph: gr.Number
    chapter: gr.Number
    spellings: gr.Textbox
    speed: gr.Slider


class AsRead(NamedTuple):
    """The reading settings as they were read last, and of which script: an answer may come when
    another one is shown."""

    number: str = ""
    fields: tuple[Any, ...] = ()


UNREAD = AsRead()


def reading_fields(languages: list[tuple[str, str]]) -> ReadingFields:
    """Build the fields."""
    plain = Delivery()
    with gr.Accordion(word("Reading settings"), open=False, elem_id="script-manner"):
        with gr.Row():
            language = gr.Dropdown(languages, value="auto", label=word("Language"), min_width=140)
            seed = gr.Textbox(
                "0", label=word("Seed"), info=word("One for all lines"), max_lines=1, min_width=120
            )
            with gr.Column(min_width=220):
                numbers = gr.Checkbox(plain.numbers, label=word("Spell out numbers"))
                directions = gr.Checkbox(
                    plain.directions, label=word("Follow directions: Anna (softly): …")
                )
        with gr.Row():
            pauses = plain.pauses
            sentence = _pause("between sentences", pauses.sentence)
            turn = _pause("between speakers", pauses.turn)
            paragraph = _pause("between paragraphs", pauses.paragraph)
            chapter = _pause("between chapters", pauses.chapter)
        speed = gr.Slider(*SPEEDS, value=1, step=0.05, label=word("Speaking speed"))
        spellings = gr.Textbox(
            "", label=word("Pronunciation"), placeholder=word(SPELLINGS), lines=2, max_lines=12
        )
    return ReadingFields(
        language, seed, numbers, directions, sentence, turn, paragraph, chapter, spellings, speed
    )


def moments_of(field: Any) -> list[Any]:
    """The events that end an input: choices at once, text and numbers when they are left, or by
    Enter."""
    if isinstance(field, gr.Slider):
        return [field.release]
    if isinstance(field, gr.Dropdown | gr.Checkbox | gr.Radio):
        return [field.input]
    one_line = isinstance(field, gr.Number) or field.lines == 1
    return [field.blur, field.submit] if one_line else [field.blur]


def _pause(what: str, value: float) -> gr.Number:
    return gr.Number(
        value, label=word(f"Seconds {what}"), minimum=0, maximum=MAX_PAUSE, step=0.1, min_width=140
    )


def values_of(delivery: Delivery) -> tuple[Any, ...]:
    """The values of the fields for a delivery."""
    pauses = delivery.pauses
    return (
        delivery.language,
        str(delivery.seed),
        delivery.numbers,
        delivery.directions,
        pauses.sentence,
        pauses.turn,
        pauses.paragraph,
        pauses.chapter,
        write_spellings(delivery.spellings),
        delivery.speed,
    )


def delivery_of(before: Delivery, values: tuple[Any, ...]) -> Delivery:
    """The delivery for the values of the fields. Raises InvalidSetting."""
    language, seed, numbers, directions, *silences, spellings, speed = values
    sentence, turn, paragraph, chapter = silences
    pauses = dict(sentence=sentence, turn=turn, paragraph=paragraph, chapter=chapter)
    return before.having(
        language=language or "auto",
        seed=read_seed(seed or "") or 0,
        numbers=bool(numbers),
        directions=bool(directions),
        spellings=read_spellings(spellings or ""),
        pauses=_pauses(pauses),
        speed=min(SPEEDS[1], max(SPEEDS[0], float(speed or 1))),
        manner=SpeechOptions(language=language or "auto", breath=before.manner.breath),
    )


def with_changes(delivery: Delivery, before: tuple[Any, ...], fields: tuple[Any, ...]) -> Delivery:
    """The delivery with what differs from `before`. Raises InvalidSetting."""
    pairs = zip(fields, before or (None,) * len(fields), values_of(delivery), strict=True)
    return delivery_of(delivery, tuple(now if now != had else kept for now, had, kept in pairs))


def _pauses(seconds: dict[str, float | None]) -> Pauses:
    try:
        return Pauses(**{name: each or 0.0 for name, each in seconds.items()})
    except ValidationError:
        raise InvalidSetting(
            "A pause lasts from 0 to {most:.0f} seconds.", most=MAX_PAUSE
        ) from None
