"""Translatable messages: English text, with a key and values for other languages.

`key` is the English template with `{names}`, `values` fill them. The page looks the key up in its
tables (studio/ui/i18n); programs and logs use the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

LONGEST: Final = 1 << 16  # characters of a message that is restored
# One of a key's names. Its format widens no value: a hundred million spaces are eight digits.
_FIELD: Final = re.compile(r"\{([^\W\d]\w*)(?:![rs])?(?::[+,]{0,2}\d{0,2}(?:\.\d)?[a-zA-Z%]?)?\}")


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

    @property
    def stored(self) -> str | dict[str, Any]:
        """As JSON: its text alone, or its key and values, messages among them."""
        return self._parts() if self.values else self.key

    def _parts(self) -> dict[str, Any]:
        values = {
            name: value._parts() if isinstance(value, Message) else value
            for name, value in self.values.items()
        }
        return {"key": self.key, "values": values}

    @classmethod
    def restored(cls, stored: object) -> Message:
        """The message that was stored, or one as it is. Raises ValueError for anything else, since
        a stranger may have written it: a key reaches nothing but its plain values."""
        if isinstance(stored, Message):
            return stored
        if isinstance(stored, str):
            return cls(stored)
        key, values = _parts_of(stored)
        if not values:
            return cls(key)  # whatever it has in braces
        rest, names = _FIELD.sub("", key), [match[1] for match in _FIELD.finditer(key)]
        if any(name not in values for name in names) or "{" in rest or "}" in rest:
            raise ValueError("its key and its values do not fit")
        whole = {
            name: cls.restored(value) if isinstance(value, dict) else value
            for name, value in values.items()
        }
        if len(key) + sum(len(str(whole[name])) for name in names) > LONGEST:
            raise ValueError("a message that is too long")
        try:
            return cls(key, **whole)
        except OverflowError as error:
            raise ValueError("a value that its format does not write") from error


def misfit(problem: Mapping[str, Any]) -> Message:
    """The message of one of pydantic's validation errors."""
    key = _MISFITS.get(problem["type"])
    words = problem["msg"].removeprefix("Value error, ")  # pydantic's words before a validator's
    return Message(key, **problem.get("ctx", {})) if key else Message(words)


def _parts_of(stored: object) -> tuple[str, dict[str, Any]]:
    parts = stored if isinstance(stored, dict) else {}
    key, values = parts.get("key"), parts.get("values")
    if not isinstance(key, str) or not isinstance(values, dict):
        raise ValueError("no message")
    if not all(isinstance(value, int | float | str | dict) for value in values.values()):
        raise ValueError("a value that is neither a number nor a text")
    return key, values


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
