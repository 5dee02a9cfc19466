"""Translations of the interface. English texts are the keys; the JSON files have the Chinese.

`word` is for texts that Gradio shows: labels, buttons, choices, Markdown. Gradio translates one per
text, so the studio's own HTML uses `both`: it contains all languages, and the page's style shows
the browser's (studio.css, shortcuts.py). `labelled` is its counterpart for attributes. Texts at run
time, mainly errors, are `Message`s of the engine, which `tell` translates for the current request.
The live player has its own table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Final

import gradio as gr
from gradio.i18n import I18nData

from engine import Message, TimbreError
from studio.ui.gradio_compat.events import request_language


def _tables(pattern: str) -> dict[str, str]:
    return {
        english: chinese
        for table in sorted(Path(__file__).parent.glob(pattern))
        for english, chinese in json.loads(table.read_text(encoding="utf-8")).items()
    }


_SHOWN: Final = _tables("zh*.json")  # one shared table, and one per large tab
CHINESE: Final = _SHOWN | _tables("messages_zh*.json")
LANGUAGES: Final = gr.I18n(en={english: english for english in _SHOWN}, zh=_SHOWN)


def word(english: str) -> I18nData:
    """A translatable text for Gradio; English if it is in no table."""
    return I18nData(english)


def both(english: str, **values: object) -> str:
    """HTML with the text or message in each language, escaped; `values` fill its {…}."""
    message = english if isinstance(english, Message) else Message(english, **values)
    by_language = {"en": message, "zh": chinese(message)}
    if by_language["zh"] == message:
        return escape(message)
    spans = [f'<span lang="{tongue}">{escape(text)}</span>' for tongue, text in by_language.items()]
    return "".join(spans)


def labelled(*parts: str) -> str:
    """An `aria-label` of texts joined by colons, for HTML that all languages share: in English, and
    in Chinese for static/labels.js, which puts it there, and into a `placeholder`."""
    here = escape(": ".join(map(chinese, parts)))
    return f'aria-label="{escape(": ".join(parts))}" data-zh="{here}"'


def tell(message: str) -> str:
    """Translate to the language of the current request's browser; otherwise English."""
    return told_in(request_language(), message)


def told_in(languages: str, message: str) -> str:
    """The same in the languages that a browser asks for."""
    return chinese(message) if languages.lower().startswith("zh") else str(message)


@contextmanager
def errors_shown(words: Callable[[Message], str] = tell) -> Iterator[None]:
    """Convert a TimbreError to Gradio's: for a visitor by `tell`, for a program by `str`."""
    try:
        yield
    except TimbreError as error:
        title = words(Message("Error"))
        raise gr.Error(words(error.message), title=title, print_exception=False) from error


def warn(message: str) -> None:
    """Show a message over the page, as a warning."""
    gr.Warning(tell(message), title=tell("Warning"))


def inform(message: str) -> None:
    """Show a message over the page."""
    gr.Info(tell(message), title=tell("Info"))


def warning(error: TimbreError) -> str:
    """An error as a line of Markdown."""
    return f"⚠️ {tell(error.message)}"


def chinese(message: str) -> str:
    """The Chinese of a message and of messages in its values; English if it is in no table."""
    if not isinstance(message, Message):
        return CHINESE.get(message, message)
    text = CHINESE.get(message.key, message.key)
    values = {
        name: chinese(value) if isinstance(value, Message) else value
        for name, value in message.values.items()
    }
    return text.format(**values) if values else text
