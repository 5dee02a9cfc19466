"""Texts in languages that no model speaks are found by their letters and by their words."""

from __future__ import annotations

import pytest

from studio.voices.text_script import foreign


@pytest.mark.parametrize(
    ("text", "languages", "is_foreign"),
    [
        ("早上好", ("english",), True),
        ("早上好", ("chinese", "english"), False),
        ("Le projet est un groupe de gens qui ont une idée pour nous.", ("english",), True),
        ("Le projet est un groupe de gens qui ont une idée pour nous.", ("french",), False),
        ("The film was called Les Enfants du Paradis.", ("english",), False),
        ("", ("english",), False),
    ],
)
def test_foreign(text: str, languages: tuple[str, ...], is_foreign: bool) -> None:
    assert foreign(text, languages) is is_foreign
