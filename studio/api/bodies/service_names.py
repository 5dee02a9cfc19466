"""Names of models and languages in other services. Knows no routes."""

from __future__ import annotations

from typing import Final

from engine import LANGUAGE_CODES

OPENAI_MODELS: Final = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
_LANGUAGES = {code: name for name, code in LANGUAGE_CODES.items() if name != "auto"}


def language_name(language: str) -> str:
    """The models' name of a language code such as en or en-US; other names are unchanged."""
    code = language.strip().lower().replace("_", "-").partition("-")[0]
    return _LANGUAGES.get(code, language)
