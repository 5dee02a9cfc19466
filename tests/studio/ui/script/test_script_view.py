"""What is drawn of a script, and what is taken along: lines, fields, files, /script."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import math
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import gradio as gr
import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from engine import SAMPLE_RATE, InvalidSetting, RequestError
from studio.scripts import Delivery, Pauses, edits
from studio.scripts.casting import read_cast
from studio.scripts.export.audio_files import KINDS
from studio.scripts.export.loudness import LoudnessMeter
from studio.scripts.export.script_files import ExportOptions, export, safe_name
from studio.takes.downloads import file_name
from studio.takes.take_store import Take
from studio.ui.i18n import CHINESE
from studio.ui.tabs.script import view as board
from studio.ui.tabs.script.endpoint import ScriptEndpoint
from studio.ui.tabs.script.exports import LARGE
from studio.ui.tabs.script.lines import peaks_of
from studio.ui.tabs.script.options import AsRead, delivery_of, values_of
from studio.ui.tabs.script.tab import REFUSALS, _imports
from studio.ui.tabs.script.view import EXAMPLE, PAGE, View
from tests.support.script_tab_makers import LINES, LONG, html, spoken, whole


def loudness_of(pcm):
    meter = LoudnessMeter()
    meter.feed(pcm / 32768.0)
    return meter.loudness


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_line", [False, True])
def test_a_script_is_exported(tab, number, tmp_path, kind, by_line):
    spoken(tab, number, aloud=False)
    seen: list[tuple[str, float]] = []
    options = ExportOptions(kind, by_line)
    files = export(tab.store.ready(number), options, tmp_path, lambda *each: seen.append(each))
    assert seen[-1] == ("audio", pytest.approx(1))
    if by_line:
        names = zipfile.ZipFile(files[0]).namelist()
        assert len([name for name in names if name.endswith(kind)]) == LINES
        assert {"The-Key.srt", "The-Key.vtt"} <= set(names)
    else:
        assert [path.suffix for path in files] == [f".{kind}", ".srt", ".vtt"]
        seconds = len(whole(tab, number)) / 2 / SAMPLE_RATE
        with av.open(str(files[0])) as file:
            assert file.duration / av.time_base == pytest.approx(seconds, abs=0.1)


def test_an_export_says_what_is_missing(tab, number, tmp_path):
    for wish, opened in (
        (ExportOptions(), tab.store.ready(number)),
        (ExportOptions(partial=True), tab.store.blank()),
    ):
        with pytest.raises(RequestError):
            export(opened, wish, tmp_path, lambda *_: None)


@given(st.text(max_size=80))
def test_a_title_is_a_safe_name_of_a_file(title):
    name = safe_name(title)
    assert 1 <= len(name) <= 60
    assert not set(name) & set('/\\:*?"<>|.\0\n ')


@pytest.mark.parametrize("title", ["CON", "Nul", "com1", "-aux-"])
def test_a_title_that_windows_keeps_for_itself_is_another_name(title):
    assert safe_name(title) == f"script-{title.strip('-')}"
    assert safe_name(f"{title} 2").startswith(title.strip("-"))


def test_programs_get_a_sound_and_its_subtitles(tab, studio, monkeypatch):
    calls: list[Any] = []
    submit = studio.engine.submit

    def noted(request: Any) -> Any:
        calls.append(request)
        return submit(request)

    monkeypatch.setattr(studio.engine, "submit", noted)

    async def ask(**changes: Any) -> tuple[bytes, str]:
        arguments = dict(text=EXAMPLE, voice="", cast="", language="auto", seed=0, format="wav")
        async for sound, captions in ScriptEndpoint(studio).script(**{**arguments, **changes}):
            return Path(sound).read_bytes(), Path(captions).read_text("utf-8")
        raise AssertionError

    sound, captions = asyncio.run(ask())
    assert captions.count("-->") == LINES
    assert soundfile.info(io.BytesIO(sound)).duration > 5
    asyncio.run(ask(cast="Anna = vivian, Ben=ryan", voice="serena"))
    assert {request.voice.name for request in calls[LINES:]} == {"vivian", "ryan", "serena"}
    assert tab.store.listed() == []
    wrong_ones: list[dict[str, Any]] = [{"cast": "Anna"}, {"voice": "nobody"}, {"text": " "}]
    wrong_ones += [{"format": "exe"}, {"seed": -1}, {"seed": math.inf}, {"voice": "a" * 201}]
    for wrong in wrong_ones:
        with pytest.raises(gr.Error):
            asyncio.run(ask(**wrong))


def test_refusals_of_an_upload_are_there_in_all_languages():
    script = _imports(5 << 20)
    words = json.loads(script[script.index('{"events"') : script.rindex("}),") + 1])["words"]
    assert set(words) == {text.format(most=5) for text in REFUSALS}
    assert all('lang="zh"' in each for each in words.values())
    assert "最多 5 MB" in words["The file is too large: at most 5 MB."]


def test_a_cast_is_written_in_lines_or_with_commas():
    assert read_cast("Anna = vivian,Ben= ryan", "x") == read_cast("Anna=vivian\nBen=ryan\n", "x")
    with pytest.raises(InvalidSetting, match="Anna"):
        read_cast("Anna", "x")


@given(
    st.sampled_from(["auto", "english"]),
    st.integers(0, 10**9),
    st.booleans(),
    st.floats(0, 60),
    st.sampled_from([0.5, 1.0, 1.7]),
)
def test_the_fields_say_what_the_delivery_is(language, seed, numbers, pause, speed):
    changed = delivery_of(
        Delivery(), (language, str(seed), numbers, False, pause, 0.4, 0.7, 1.6, "a = b", speed)
    )
    assert changed.speed == speed
    assert delivery_of(Delivery(), values_of(changed)) == changed
    assert changed.pauses == Pauses(sentence=pause)


@pytest.mark.parametrize(
    "changes", [{1: "x"}, {4: 61.0}, {4: -1.0}, {8: "no arrow"}], ids=["seed", "long", "-", "word"]
)
def test_a_field_that_means_nothing_is_refused(tab, number, changes):
    values = list(values_of(Delivery()))
    for place, value in changes.items():
        values[place] = value
    with pytest.warns(UserWarning, match=r"seed|pause|pronunciation"):
        tab.read_settings(number, View(), AsRead(), *values)
    assert tab.store.open(number).project.delivery == Delivery()


def test_only_a_page_of_lines_is_drawn(tab):
    number = tab.store.read("", LONG).number
    first, _ = tab.look(number, View())
    last, _ = tab.look(number, View(page=99))
    count = len(tab.store.open(number).jobs)
    assert html(first).count("<article") == PAGE
    assert html(last).count("<article") == count - count // PAGE * PAGE
    assert f"of {count}" in html(last)


@given(st.integers(0, 10**6), st.integers(0, 2000))
def test_every_line_is_on_exactly_one_page(page, count):
    pages = [board.page_of(View(each), count) for each in range(count // PAGE + 1)]
    assert [place for places in pages for place in places if places][:count] == list(range(count))
    assert set(board.page_of(View(page), count)) <= set(range(count))


@given(st.text(max_size=40).map(lambda text: f'<b onclick="x">{text}'))
def test_what_a_person_wrote_is_never_markup(text):
    line = edits.Line(id=0, text=text[:90], speaker=text[:50], direction=text[:50])
    row = board.Row(1, line, "failed", text, 1.0, (1, 2), text)
    shown = board.row(row, [text])[1] + board.member(text, text, [(text, text)], False)[1]
    assert "<b onclick" not in shown
    assert 'onclick="x"' not in shown


def test_a_mood_that_goes_on_from_before_is_shown():
    line = edits.Line(id=0, text="Sit down.", speaker="Anna")
    plain = board.Row(1, line, "waiting", "", 0.0, (), "")
    assert "still" not in board.row(plain, ["Anna"])[1]
    assert "Anna · still [lower 0.6]" in board.row(replace(plain, held="[lower 0.6]"), ["Anna"])[1]


@given(st.lists(st.integers(-32768, 32767), max_size=400))
def test_a_waveform_has_its_bars_within_its_height(samples):
    peaks = peaks_of(np.array(samples, np.int16))
    assert len(peaks) in (0, board.BARS)
    assert all(1 <= peak <= board.HIGH for peak in peaks)


@pytest.mark.parametrize(
    ("seconds", "says"), [(3.41, "3.4 s"), (125, "2 min 5 s"), (3840, "1 h 4 min")]
)
def test_a_duration_is_told(seconds, says):
    assert board.duration(seconds) == says


def test_the_tab_speaks_chinese():
    """Every word of its own HTML and of its fields that is written as one."""
    written = set(board.WORDS.values()) - {""} | {"Voice", "Narrator", "Previous", "Next"}
    for path in Path(board.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("word", "both"):
                written |= {each.value for each in node.args if isinstance(each, ast.Constant)}
    assert len(written) > 40
    assert written - set(CHINESE) == set()
    slots = re.compile(r"\{\w+\}")
    for english in written:
        assert set(slots.findall(english)) == set(slots.findall(CHINESE[english]))


@pytest.mark.parametrize("target", [-19.0, -23.0])
def test_an_export_is_as_loud_as_was_asked(tab, number, tmp_path, target):
    spoken(tab, number, aloud=False)
    opened = tab.store.open(number)
    sound = export(opened, ExportOptions("wav", loudness=target), tmp_path, lambda *_: None)[0]
    pcm, _ = soundfile.read(sound, dtype="int16")
    assert loudness_of(pcm) == pytest.approx(target, abs=1.0)
    plain = export(opened, ExportOptions("wav", loudness=None), tmp_path, lambda *_: None)[0]
    natural, _ = soundfile.read(plain, dtype="int16")
    assert abs(loudness_of(natural) - target) > 1.0


@pytest.mark.parametrize(
    ("text", "voice", "name"),
    [
        ("Where have you been?", "Clara", "Where-have-you-been-Clara"),
        ("你好，世界。", "", "你好-世界"),
        ("../../etc/passwd", "a/b", "etc-passwd-a-b"),
        ("...", "", "timbre-x1"),
    ],
)
def test_a_downloaded_take_has_a_name_that_people_recognise(text, voice, name):
    take = Take(id="x1", text=text, voice=voice, seed=1, seconds=1, created=1)
    assert file_name(take) == name


def test_a_project_that_cannot_be_uploaded_again_is_told() -> None:
    assert LARGE in CHINESE
