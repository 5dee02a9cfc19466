"""Scripts from text, dialogue and files; hostile input is refused plainly and early."""

from __future__ import annotations

import io
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import InvalidText
from studio.imports.formats import BOOKS, MAX_BYTES, SUFFIXES
from studio.imports.reader import imported
from studio.scripts.model import MAX_LINES, Script
from studio.scripts.text.passages import SpeechOptions, clean
from studio.scripts.text.tags import at_pauses
from studio.scripts.text.typed import script_of_text
from tests.support.script_makers import script_of_file

LETTERS = st.text(
    st.sampled_from("abcdefghij ABC,.;!?\n\n'\"-()éß你好世界。，"), min_size=1, max_size=400
)


def lines_of(script: Script) -> list[tuple[str, str]]:
    return [(line.speaker, line.text) for line in script.lines]


def letters(text: str) -> str:
    return "".join(text.split())


@settings(max_examples=150)
@given(LETTERS)
def test_no_letter_is_lost_between_text_and_lines(text: str) -> None:
    if not text.strip():
        return
    script = script_of_text(text)
    if set(script.speakers) == {""}:  # a name by chance is no text
        assert letters("".join(line.text for line in script.lines)) == letters(text)


@settings(max_examples=100)
@given(st.text(max_size=500))
def test_any_text_is_a_script_or_refused(text: str) -> None:
    try:
        script = script_of_text(text)
    except InvalidText:
        spoken = "".join(piece for piece, _ in at_pauses(clean(text)))
        assert not spoken.strip()
        return
    ids = [line.id for line in script.lines]
    assert len(set(ids)) == len(ids)
    assert max(ids) < script.issued
    assert Script.model_validate_json(script.model_dump_json()) == script


def test_dialogue_with_names_directions_and_a_narrator() -> None:
    script = script_of_text(
        "It was late in the evening when they met.\n\n"
        "Anna: Where have you been all this time?\n"
        "Ben (whispering): I was looking for the key, and I found nothing.\n"
        "Anna： Then look again, before somebody else comes.\n"
        "http://example.org: is no speaker.\n"
        "At 10:30 we left."
    )
    assert lines_of(script)[:4] == [
        ("", "It was late in the evening when they met."),
        ("Anna", "Where have you been all this time?"),
        ("Ben", "I was looking for the key, and I found nothing."),
        ("Anna", "Then look again, before somebody else comes."),
    ]
    assert script.lines[2].direction == "whispering"
    assert script.speakers == ("", "Anna", "Ben")
    assert all(speaker in ("", "Anna") for speaker, _ in lines_of(script)[4:])


def test_a_colon_alone_makes_no_speaker() -> None:
    text = "Remember: be good to each other, all of you.\n\nThen they went home and slept well."
    assert script_of_text(text).speakers == ("",)
    assert script_of_text(text, speakers=["remember"]).speakers == ("Remember", "")


def test_a_name_that_comes_back_speaks_even_in_a_text_that_is_mostly_told() -> None:
    narrated = "She went on and on about it.\n\n" * 6
    text = (
        f"Anna: I have seen it.\n\n{narrated}Anna: And I shall see it again.\n\nNote: it was late."
    )
    assert script_of_text(text).speakers == ("Anna", "")


def test_wrapped_lines_are_one_paragraph() -> None:
    text = (
        "The old lighthouse keeper climbed the winding stairs\n"
        "every evening, carrying a lantern and a flask of tea\n"
        "that his daughter had made for him."
    )
    assert lines_of(script_of_text(text)) == [("", text.replace("\n", " "))]


def test_pauses_in_the_text_stand_behind_the_line_they_follow() -> None:
    script = script_of_text("[pause 2s] Wait for me here [pause 1.5s] and now we can go on.")
    assert [(line.text, line.pause) for line in script.lines] == [
        ("", 2.0),
        ("Wait for me here", 1.5),
        ("and now we can go on.", None),
    ]


def test_markdown_headings_are_chapters_and_marks_are_not_spoken() -> None:
    source = (
        "---\ntitle: x\n---\n# One *fine* day\n\nSome **bold** text with [a link](http://x.y) and "
        "`code`.\n\n```python\nprint('no')\n```\n\nSecond\n------\n\n- first point of the list\n"
        "- second point of the list\n\n> quoted words <!-- hidden -->\n\n| a | b |\n|---|---|\n"
        "| c | d |\n\n![picture](x.png)\n"
    )
    script = script_of_file("book.md", source.encode())
    assert script.chapters == ("One fine day", "Second")
    text = " ".join(line.text for line in script.lines)
    assert "Some bold text with a link and code." in text
    assert "first point of the list" in text
    assert "c, d" in text
    assert "picture" in text
    for mark in ("*", "`", "http", "print", "hidden", "title", "---", "|", ">", "#"):
        assert mark not in text
    silent = script_of_file("book.md", source.encode(), SpeechOptions(speak_headings=False))
    assert silent.chapters == script.chapters
    assert "Second" not in " ".join(line.text for line in silent.lines)


def test_chapter_lines_of_a_plain_book() -> None:
    script = script_of_text(
        "Preface.\n\nChapter 1: The Storm\n\nIt rained.\n\n第二章 雨\n\n下雨了。"
    )
    assert script.chapters == ("", "Chapter 1: The Storm", "第二章 雨")
    assert [line.chapter for line in script.lines] == sorted(line.chapter for line in script.lines)


def test_subtitles_are_lines_with_their_pauses() -> None:
    source = (
        "1\n00:00:01,000 --> 00:00:02,000\n<i>I was going to</i>\n\n"
        "2\n00:00:02,100 --> 00:00:03,000\n{\\an8}tell you &amp; everybody the truth.\n\n"
        "3\n00:00:05,500 --> 00:00:06,000\nANNA: Then do it at once, please.\n"
    )
    script = script_of_file("film.srt", source.encode())
    assert [(line.speaker, line.text, line.pause) for line in script.lines] == [
        ("", "I was going to tell you & everybody the truth.", 2.5),
        ("ANNA", "Then do it at once, please.", None),
    ]
    vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Bob>Good evening to all of you.</v>\n"
    assert lines_of(script_of_file("film.vtt", vtt.encode())) == [
        ("Bob", "Good evening to all of you.")
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_tables_find_their_columns_by_name(delimiter: str) -> None:
    rows = [
        ["Scene", "Character", "Pause", "Line", "other"],
        ["One", "Anna", "1.5s", "Hello to everybody in here.", "x"],
        ["One", "Ben", "", "=SUM(A1:A9)", "y"],
        ["Two", "Anna", "-4", "Goodbye to everybody in here.", ""],
    ]
    script = script_of_file("a.csv", "\n".join(delimiter.join(row) for row in rows).encode())
    assert lines_of(script)[1] == ("Ben", "=SUM(A1:A9)")
    assert [line.pause for line in script.lines] == [1.5, None, None]
    assert script.chapters == ("One", "Two")


def test_a_table_without_text_says_what_it_needs() -> None:
    with pytest.raises(InvalidText, match="column named text"):
        script_of_file("a.csv", b"when,what\n1,2\n")


@pytest.mark.parametrize("suffix", [each for each in SUFFIXES if each not in BOOKS])
def test_a_hundred_thousand_lines_are_refused_at_once(suffix: str) -> None:
    line = "1\n00:00:01,000 --> 00:00:02,000\nHi.\n" if suffix == ".srt" else "Hello there.\n"
    head = "text\n" if suffix == ".csv" else "WEBVTT\n\n" if suffix == ".vtt" else ""
    started = time.process_time()
    with pytest.raises(InvalidText, match=r"Split it into parts"):
        script_of_file(f"long{suffix}", (head + line * 100_000).encode())
    assert time.process_time() - started < 15


def test_too_many_spoken_lines_are_refused() -> None:
    text = "This is a line of its own, and long enough.\n\n" * (MAX_LINES + 1)
    with pytest.raises(InvalidText, match="lines"):
        script_of_text(text)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.exe", b"MZ", "no script"),
        ("a.txt", b"\xff\xfe\x00\xd8\x00\xd8", "UTF-8"),
        ("a.txt", b"caf\xe9", "UTF-8"),
        ("a.txt", b"a\x00b", "not a text file"),
        ("a.txt", b" \n\t ", "nothing to speak"),
        ("a.txt", b"x" * (MAX_BYTES + 1), "MB"),
        ("a.srt", b"no captions here", "captions"),
        ("a.csv", b"", "column named text"),
        ("a.csv", b'text\n"' + b"x" * 200_000, "cannot be read"),
        ("../../etc/passwd", b"root", "no script"),
    ],
)
def test_bad_files_get_one_clear_error(name: str, data: bytes, says: str) -> None:
    with pytest.raises(InvalidText, match=says):
        script_of_file(name, data)


def test_utf16_and_byte_order_marks_are_read() -> None:
    for encoding in ("utf-16", "utf-8-sig"):
        assert (
            lines_of(script_of_file("a.txt", "Größe: 你好".encode(encoding)))[0][1] == "Größe: 你好"
        )


def test_notes_of_markdown_are_left_out_and_not_spoken() -> None:
    text = (
        "One[^1] and two.[^b]\n\n[^1]: The first\nnote.\n\n    Its end.\n[^b]: The second.\n\n"
        "After [the link][l] to [a page](https://en.wikipedia.org/wiki/A_(b)).\n\n"
        '[l]: https://example.org "Title"\n'
    )
    read = imported("a.md", io.BytesIO(text.encode()))
    assert lines_of(read.script) == [("", "One and two."), ("", "After the link to a page.")]
    notes = [(part.kind, part.text) for part in read.left_out]
    assert notes == [("notes", "The first\nnote.\n\nIts end."), ("notes", "The second.")]


def test_markdown_that_was_escaped_is_read_without_its_marks() -> None:
    text = rb"\*kept\* and \_this\_, *not* _these_, and R&amp;D&nbsp;too."
    expected = [("", "*kept* and _this_, not these, and R&D too.")]
    assert lines_of(script_of_file("a.md", text)) == expected


def test_a_table_of_contents_in_markdown_makes_no_chapters() -> None:
    text = (
        "- [Chapter One](#one){#toc-one}\n  - [A *part*](#part)\n- [Chapter Two](#two)\n\n"
        "# Chapter One\n\nAnd see:\\\n- [below](#two)\n\n# Chapter Two\n\nThe end.\n"
    )
    read = imported("a.md", io.BytesIO(text.encode()))
    assert read.script.chapters == ("Chapter One", "Chapter Two")
    spoken = ["Chapter One", "And see:", "below", "Chapter Two", "The end."]
    assert [text for _, text in lines_of(read.script)] == spoken
    [contents] = read.left_out
    assert (contents.kind, contents.text.partition("{")[0]) == ("contents", "Chapter One")


def test_tables_of_excel_name_their_delimiter_and_those_of_old_macs_end_rows_their_way() -> None:
    expected = [("Anna", "Well; I, for one; stay."), ("Ben", "Yes.")]
    excel = b'\xef\xbb\xbfsep=;\r\nspeaker;text\r\nAnna;"Well; I, for one; stay."\r\nBen;Yes.\r\n'
    mac = b'speaker,text\rAnna,"Well; I, for one; stay."\rBen,Yes.\r'
    assert [lines_of(script_of_file("a.csv", each)) for each in (excel, mac)] == [expected] * 2


def test_a_caption_of_two_voices_is_a_line_of_each() -> None:
    dashes = b"1\n00:00:01,000 --> 00:00:02,000\n- <i>Who?</i>\n<i>- Me,\nsilly.</i>\n"
    assert lines_of(script_of_file("a.srt", dashes)) == [("", "Who?"), ("", "Me, silly.")]
    voices = b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ben>Who?</v>\n<v.loud Anna>Me</v>\n"
    assert lines_of(script_of_file("a.vtt", voices)) == [("Ben", "Who?"), ("Anna", "Me")]


def test_marks_for_the_eye_hide_no_name_and_divide_no_word() -> None:
    text = "דנה: שלום!\n\u200fיוסי\u200f: Donau\u00addampf.\n\u202bדנה: כן.\u202c\n"
    assert lines_of(script_of_text(text)) == [
        ("דנה", "שלום!"),
        ("יוסי", "Donaudampf."),
        ("דנה", "כן."),
    ]


def test_words_with_times_of_their_own_are_read_once_though_captions_roll() -> None:
    """As automatic captions are: a row is shown as it is heard, then again above the next one."""
    text = """WEBVTT
Kind: captions

00:00:00.320 --> 00:00:02.510 align:start position:0%
\x20
good<00:00:00.640><c> morning</c><00:00:01.040><c> all</c>

00:00:02.510 --> 00:00:02.520 align:start position:0%
good morning all
\x20

00:00:02.520 --> 00:00:04.870 align:start position:0%
good morning all
welcome<00:00:02.800><c> to</c><00:00:03.040><c> the show.</c>

00:00:04.870 --> 00:00:04.880 align:start position:0%
welcome to the show.
\x20

00:00:06.880 --> 00:00:08.870 align:start position:0%
Today<00:00:07.800><c> we</c><00:00:08.040><c> talk.</c>
"""
    script = script_of_file("a.vtt", text.encode())
    assert [(line.text, line.pause) for line in script.lines] == [
        ("good morning all welcome to the show.", 2.0),
        ("Today we talk.", None),
    ]


def test_a_refrain_is_no_roll() -> None:
    rows = ["Row your boat.", "Row your boat.", "Down the stream.", "Merrily, merrily.", "A dream."]
    captions = (
        f"{each}\n00:00:{each:02},000 --> 00:00:{each:02},900\n{row}\n"
        for each, row in enumerate(rows)
    )
    script = script_of_file("a.srt", "\n".join(captions).encode())
    assert " ".join(line.text for line in script.lines) == " ".join(rows)


@pytest.mark.parametrize("suffix", ["srt", "vtt", "md", "txt"])
def test_files_of_old_macs_have_lines(suffix: str) -> None:
    head = {"vtt": "WEBVTT\n\n", "md": "---\ntitle: x\n---\n"}.get(suffix, "")
    times = "00:00:01.000 --> 00:00:02.000\n" if suffix in ("srt", "vtt") else ""
    text = f"{head}{times}It was late and dark.\n".replace("\n", "\r")
    script = script_of_file(f"a.{suffix}", text.encode())
    assert [line.text for line in script.lines] == ["It was late and dark."]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("---\n\nBehind a rule.\n\n---\n\nThe end.", ["Behind a rule.", "The end."]),
        ("---\ntitle: x\n...\n\nIt began here.\n\n---\n\nThe end.", ["It began here.", "The end."]),
        ("---\ntitle: a --- b\n--- # no\n---\nIt began here.", ["It began here."]),
        ("```not code``` at all.\n\nThe end of it.", ["not code at all.", "The end of it."]),
        ("~~~ `x`\ncode\n~~~\n\nThe end.", ["The end."]),
        ("````\ncode\n````\n\nThe end.", ["The end."]),
        ("It was.\n\n```py\nx = 1\n```\n\nThe end.", ["It was.", "The end."]),
        ("::: {.note}\nIt was a note.\n:::\n\n:::tip\nA tip.\n:::", ["It was a note.", "A tip."]),
        ("# One {#one .unnumbered}\n\nText of it.", ["One", "Text of it."]),
        ("# Two {-} ##\n\n# A {set} #", ["Two {-}", "A {set}"]),
    ],
)
def test_markdown_of_pandoc_loses_no_text_and_speaks_no_marks(text: str, spoken: list[str]) -> None:
    assert [line.text for line in script_of_file("a.md", text.encode()).lines] == spoken


@pytest.mark.parametrize("suffix", ["txt", "md", "srt", "csv"])
def test_a_name_whose_accents_stand_apart_speaks(suffix: str) -> None:
    """As macOS and many PDFs write them."""
    turns = [("Zoë", "Where have you been?"), ("ザエ", "At the café."), ("Zoë", "I see.")]
    if suffix == "csv":
        text = "speaker,text\n" + "".join(f"{who},{said}\n" for who, said in turns)
    elif suffix == "srt":
        text = "".join(
            f"{place}\n00:00:{place:02},000 --> 00:00:{place:02},500\n{who}: {said}\n\n"
            for place, (who, said) in enumerate([*turns, turns[1]])
        )
    else:
        text = "\n".join(f"{who}: {said}" for who, said in turns)
    script = script_of_file(f"a.{suffix}", unicodedata.normalize("NFD", text).encode())
    assert [(line.speaker, line.text) for line in script.lines][:3] == turns
