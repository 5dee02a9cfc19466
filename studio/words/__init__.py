"""The interface's words in other languages. English is the key; zh.json has the Chinese.

`word` goes wherever Gradio shows a text by itself: labels, buttons, choices, Markdown. It
replaces one such word a text, so our own HTML takes `both`: it carries all languages, and the
page's style shows the browser's (studio.css, help.py). The live player has words of its own.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Final

from gradio import I18n
from gradio.i18n import I18nData

CHINESE: Final[dict[str, str]] = {
    english: chinese
    for table in sorted(Path(__file__).parent.glob("zh*.json"))  # one for all, one a large tab
    for english, chinese in json.loads(table.read_text(encoding="utf-8")).items()
}
LANGUAGES: Final = I18n(en={english: english for english in CHINESE}, zh=CHINESE)


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


def _filled(text: str, values: dict[str, object]) -> str:
    return escape(text.format(**values) if values else text)
