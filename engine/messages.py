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
    words = problem["msg"].removeprefix("Value error, ")  # pydantic's words before a validator's
    return Message(key, **problem.get("ctx", {})) if key else Message(words)


def _plain(value: object) -> object:
    """Messages are pickled and outlive their errors, so values must not hold exceptions."""
    return value if isinstance(value, int | float | str) else str(value)


# By pydantic's error type; the names in braces are pydantic's too.
_MISFITS: Final[Mapping[str, str]] = {
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "string_type": "must be text",
    "finite_number": "must be a finite number",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "literal_error": "must be one of {expected}",
}
