"""A sentence for a person: English as it stands, and what other languages are made from.

`key` is the English with `{names}` in it, `values` are what stands there. Whoever speaks to
people looks the key up in a table (studio/words); programs and logs read the text. Knows no tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final


class Message(str):
    """`Said("No voice is called '{name}'.", name="bob")`."""

    key: str
    values: Mapping[str, Any]

    def __new__(cls, key: str, /, **values: object) -> Message:
        plain = {name: _plain(value) for name, value in values.items()}
        said = super().__new__(cls, key.format(**plain) if plain else key)
        said.key, said.values = key, plain
        return said

    @classmethod
    def listed(cls, parts: Iterable[str], between: str = ", ") -> Message:
        """Several, one after the other; each keeps its own key."""
        values = {f"part{number}": part for number, part in enumerate(parts)}
        return cls(between.join(f"{{{name}}}" for name in values), **values)


def misfit(problem: Mapping[str, Any]) -> Message:
    """One of pydantic's complaints, in its own words."""
    key = _MISFITS.get(problem["type"])
    return Message(key, **problem["ctx"]) if key else Message(problem["msg"])


def _plain(value: object) -> object:
    """A sentence goes through processes and outlives its error: no exception stays in it."""
    return value if isinstance(value, int | float | str) else str(value)


# By pydantic's name for it; the names in braces are pydantic's too.
_MISFITS: Final[Mapping[str, str]] = {
    "string_too_long": "String should have at most {max_length} characters",
    "string_too_short": "String should have at least {min_length} character",
    "greater_than": "Input should be greater than {gt}",
    "greater_than_equal": "Input should be greater than or equal to {ge}",
    "less_than_equal": "Input should be less than or equal to {le}",
}
