"""Markup as tags and texts: what documents say, and time linear in whatever comes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import InvalidText
from studio.imports.markup import Tag, parse, scan, unescaped
from tests.hostile.growth import Work, check_linear

UNITS = (
    *("<p>x</p>", "<p>", "<", "<!--", "<!-- x", "</", "&", "&amp", "&#9", "<a ", "<a b='", "a=a "),
    *("<a ='", '="', "= ", "<![CDATA[", "]]>", "<?", "<!", "<![<!", "<!DOCTYPE ", "<script>"),
    *("<style", "-->", "'", '"', "<a\n", "</script", "<i/>", "<a b=\"x\" c='y'>"),
)


def tokens(text: str, size: int = 1 << 16, html_page: bool = True) -> list[Tag | str]:
    return list(scan((text[at : at + size] for at in range(0, len(text), size)), html_page))


def texts(found: list[Tag | str]) -> str:
    return "".join(each for each in found if isinstance(each, str))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("a <!-- b --> c", "a  c"),
        ("a <!-- b", "a "),
        ("3 < 4 &lt; 5 &#x41;&#65 &nosuch; &", "3 < 4 < 5 AA &nosuch; &"),
        ("<script>if (a<b) x</script>c", "c"),
        ("<script/>c", "c"),
        ("<p title='a > b'>c</p>", "c"),
        ("<![CDATA[a<b]]>c", "a<bc"),
        ("<!DOCTYPE html [<!ENTITY a 'b'>]>c", "c"),
        ("<!DOCTYPE html [\n<!ENTITY a 'b'>\n] >c", "c"),
        ("a<![<!b>c", "ac"),
        ("<?xml version='1.0'?>a</>b", "ab"),
        ("a<b", "a"),
    ],
)
def test_text_is_what_a_browser_shows(page: str, text: str) -> None:
    for size in (1, 2, 3, 7, 1_000):
        assert texts(tokens(page, size)) == text


def test_attributes_have_their_values_with_and_without_a_namespace() -> None:
    (tag,) = tokens('<w:a w:val="1 &amp; 2" b c=\'3\' d=4 e = "5"/>', html_page=False)
    assert isinstance(tag, Tag)
    assert (tag.name, tag.empty, tag.ends) == ("a", True, False)
    values = tag.values()
    assert [values[name] for name in ("w:val", "val", "b", "c", "d", "e")] == [
        "1 & 2", "1 & 2", "", "3", "4", "5",
    ]  # fmt: skip


@settings(max_examples=200, deadline=None, database=None)
@given(st.text(st.sampled_from("<>!-/&;a'\"= [](CDAT?#1"), max_size=60), st.integers(1, 9))
def test_how_it_is_cut_into_blocks_changes_nothing(page: str, size: int) -> None:
    def whole(found: list[Tag | str]) -> Iterator[object]:
        yield texts(found)
        yield [each for each in found if isinstance(each, Tag)]

    assert list(whole(tokens(page, size))) == list(whole(tokens(page)))


@pytest.mark.parametrize("unit", UNITS)
def test_time_is_linear(unit: str) -> None:
    for html_page in (True, False):
        check_linear(partial(scanned, unit, html_page), 1 << 14, 1 << 18)


def scanned(unit: str, html_page: bool, size: int) -> Work:
    text = unit * (size // len(unit))

    def work() -> None:
        with suppress(InvalidText):
            for each in tokens(text, 1 << 18, html_page)[:99]:
                if isinstance(each, Tag):
                    each.values()

    return work


def test_numbers_of_characters_of_any_length_do_no_harm() -> None:
    assert unescaped("&#" + "9" * 100_000 + ";").endswith(";")
    assert unescaped("&#xd800;&#0;&#1114112;") != ""


class Silent:
    def start(self, tag: Tag) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


@pytest.mark.parametrize(
    "document", [b"<a>", b"<a></a></a>", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"]
)
def test_damaged_xml_and_entities_are_refused(document: bytes) -> None:
    with pytest.raises(InvalidText):
        parse([document], Silent())


def test_a_tag_without_an_end_is_refused_before_it_fills_memory() -> None:
    with pytest.raises(InvalidText):
        parse((b"<a " + b"b" * (1 << 20) for _ in range(64)), Silent(), html_page=False)
