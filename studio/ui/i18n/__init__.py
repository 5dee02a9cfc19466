"""The interface's words in other languages. English is the key; the JSON files have the Chinese.

`word` goes wherever Gradio shows a text by itself: labels, buttons, choices, Markdown. It
replaces one such word a text, so our own HTML takes `both`: it carries all languages, and the
page's style shows the browser's (studio.css, help.py). What is said while the page runs,
errors above all, is a `Message` of the engine's: `tell` says it to whoever asks. The live player
has words of its own.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Final

from gradio import I18n
from gradio.context import LocalContext
from gradio.i18n import I18nData

from engine import Message, TimbreError


def _tables(pattern: str) -> dict[str, str]:
    return {
        english: chinese
        for table in sorted(Path(__file__).parent.glob(pattern))
        for english, chinese in json.loads(table.read_text(encoding="utf-8")).items()
    }


_SHOWN: Final = _tables("zh*.json")  # one for all, one a large tab; every page has them
CHINESE: Final = _SHOWN | _tables("messages_zh*.json")
LANGUAGES: Final = I18n(en={english: english for english in _SHOWN}, zh=_SHOWN)


def word(english: str) -> I18nData:
    """For Gradio's own texts; what is in no table stays English."""
    return I18nData(english)


def both(english: str, **values: object) -> str:
    """For our own HTML: the text in each language, escaped; `values` fill its {…}."""
    chinese = CHINESE.get(english)
    if chinese is None:
        return _filled(english, values)
    told = {"en": _filled(english, values), "zh": _filled(chinese, values)}
    return "".join(f'<span lang="{tongue}">{text}</span>' for tongue, text in told.items())


def tell(said: str) -> str:
    """In the language of the browser that asks now. To programs, and where nobody asks: English."""
    request = LocalContext.request.get(None)
    wanted = request.headers.get("accept-language", "") if request else ""
    return chinese(said) if wanted.lower().startswith("zh") else str(said)


def warning(error: TimbreError) -> str:
    """What went wrong, as a line of Markdown."""
    return f"⚠️ {tell(error.message)}"


def chinese(said: str) -> str:
    """The Chinese of a sentence, and of the sentences in it; what is in no table stays English."""
    if not isinstance(said, Message):
        return CHINESE.get(said, said)
    text = CHINESE.get(said.key, said.key)
    values = {
        name: chinese(value) if isinstance(value, Message) else value
        for name, value in said.values.items()
    }
    return text.format(**values) if values else text


def _filled(text: str, values: dict[str, object]) -> str:
    return escape(text.format(**values) if values else text)
