"""Translatable messages: English text, with a key and values for other languages.

`key` is the English template with `{names}`, `values` fill them. The page looks the key up in its
tables (studio/ui/i18n); programs and logs use the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final


class Message(str):
    """`Message("No voice is called '{name}'.", name="bob")`."""

    key: str
    values: Mapping[str, Any]

    def __new__(cls, key: str, /, **values: object) -> Message:
        plain = {name: _plain(value) for name, value in values.items()}
        message = super().__new__(cls, key.format(**plain) if plain else key)
        message.key, message.values = key, plain
        return message

    @classmethod
    def listed(cls, parts: Iterable[str], between: str = ", ") -> Message:
        """Several messages joined; each keeps its own key."""
        values = {f"part{number}": part for number, part in enumerate(parts)}
        return cls(between.join(f"{{{name}}}" for name in values), **values)


def misfit(problem: Mapping[str, Any]) -> Message:
    """The message of one of pydantic's validation errors."""
    key = _MISFITS.get(problem["type"])
    return Message(key, **problem["ctx"]) if key else Message(problem["msg"])


def _plain(value: object) -> object:
    """Messages are pickled and outlive their errors, so values must not hold exceptions."""
    return value if isinstance(value, int | float | str) else str(value)


# By pydantic's error type; the names in braces are pydantic's too.
_MISFITS: Final[Mapping[str, str]] = {
    "string_too_long": "String should have at most {max_length} characters",
    "string_too_short": "String should have at least {min_length} character",
    "greater_than": "Input should be greater than {gt}",
    "greater_than_equal": "Input should be greater than or equal to {ge}",
    "less_than_equal": "Input should be less than or equal to {le}",
}
