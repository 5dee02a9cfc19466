"""Names that other services gave to models and languages. Knows no routes."""

from __future__ import annotations

from typing import Final

from engine import LANGUAGE_CODES

OPENAI_MODELS: Final = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
_LANGUAGES = {code: name for name, code in LANGUAGE_CODES.items() if name != "auto"}


def language_name(language: str) -> str:
    """A language by the name that models know, from a code like en or en-US, or as it is."""
    code = language.strip().lower().replace("_", "-").partition("-")[0]
    return _LANGUAGES.get(code, language)
