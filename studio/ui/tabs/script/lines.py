"""The board of a script: one page of lines with their status.

Measures the waveform of each sound once. Knows no components.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

import numpy as np

from engine import SAMPLE_RATE, InvalidAudio, Message, Pcm
from studio.scripts import Job, Line, LineAudio, Progress, Status
from studio.scripts.books import language_named
from studio.scripts.music.cue import lines_under
from studio.scripts.open_script import OpenScript
from studio.scripts.text.cues import cues_of
from studio.scripts.tracks import spoken_key
from studio.ui.tabs.script import view as board
from studio.ui.tabs.script.left_out import book_items
from studio.ui.tabs.script.view import BARS, HIGH, Board, Row, Summary, TakeRow, View
from studio.voices.text_script import foreign

READ = 40  # lines, by which a script's language is recognised
WANTED: dict[str, tuple[Status, ...]] = {"open": ("waiting", "speaking"), "failed": ("failed",)}


def lines_of(
    opened: OpenScript,
    view: View,
    standing: Callable[[Job], tuple[Status, str]],
    progress: Progress | None,
    undo: Message | None,
    heard: dict[str, list[tuple[int, int]]],
    interrupted: bool,
    answered: list[str],
    languages: Collection[str],
) -> Board:
    """The bar, the search field, a page of lines and the pager."""
    if opened.sounds is None:
        return board.board("", [("empty", board.EMPTY)])
    stands = [standing(job) for job in opened.jobs]
    wanted = WANTED.get(view.show)
    lines = opened.script.lines
    places = [
        place
        for place, (status, _) in enumerate(stands)
        if (not wanted or status in wanted) and view.finds(lines[place])
    ]
    shown = [places[each] for each in board.page_of(view, len(places))]
    speakers = opened.script.speakers
    cues = _music(opened)
    rows = [
        board.row(_row(opened, place, *stands[place], cues.get(place, ())), speakers)
        for place in shown
    ]
    spoken = sum(status in ("done", "locked") for status, _ in stands)
    summary = Summary(len(stands), spoken, _seconds(opened), progress, undo)
    found = [board.matches(len(places))] if view.words else []
    cut = [board.interrupted()] if interrupted and spoken < len(stands) else []
    book = book_items(opened.project.book, bool(opened.cover), opened.project.left_out)
    book = [board.foreign(), *book] if _foreign(opened, languages) else book
    head = [board.bar(view, summary), board.search(), *cut, *book, *found]
    items = [*head, *rows, *board.pager(view, len(places))]
    return Board(
        number=opened.number,
        items=items,
        changed=opened.project.changed,
        heard=heard,
        answered=answered,
        refused="",
        music=bool(opened.project.cues),
        view=view.key,
        polled=False,
    )


def _foreign(opened: OpenScript, languages: Collection[str]) -> bool:
    """Whether nobody here speaks the script: as the book says, or by how it begins."""
    language = language_named(opened.project.book.language)
    if language:
        return language not in languages
    return foreign(" ".join(each.text for each in opened.script.lines[:READ]), languages)


def _music(opened: OpenScript) -> dict[int, list[str]]:
    """The names of what begins under a line, by its place."""
    begins: dict[int, list[str]] = {}
    for cue in opened.project.cues:
        for place in lines_under(cue, opened.script)[:1]:
            begins.setdefault(place, []).append(cue.name)
    return begins


def _row(opened: OpenScript, place: int, status: Status, error: str, music: Sequence[str]) -> Row:
    script, job = opened.script, opened.jobs[place]
    line = script.lines[place]
    assert opened.sounds is not None
    seconds = opened.sounds.samples(job.key) / SAMPLE_RATE if job.key else 0.0
    begins = place == 0 or script.lines[place - 1].chapter != line.chapter
    chapter = (
        script.chapters[line.chapter] if begins and line.chapter < len(script.chapters) else ""
    )
    peaks = _peaks(opened.sounds, job.key) if seconds else ()
    dropped = () if line.speaker in opened.able else cues_of(line.text, job.moods)
    takes = _takes(opened, line, job)
    recorded = sorted({*job.moods}.difference(opened.moods))  # recordings of the voice's person
    moods = (*dict.fromkeys(opened.moods.values()), *recorded)
    outdated = any(not take.text for take in takes)
    return Row(
        place=place + 1,
        line=line,
        status=status,
        error=error,
        seconds=seconds,
        peaks=peaks,
        chapter=chapter,
        dropped=dropped,
        takes=takes,
        moods=moods,
        outdated=outdated,
        held=job.held.strip(),
        music=music,
    )


def _takes(opened: OpenScript, line: Line, job: Job) -> list[TakeRow]:
    """The takes, if there is more than one."""
    assert opened.sounds is not None
    sounds, takes = opened.sounds, opened.takes(line, job)
    used = (job.key, spoken_key(job, sounds))
    if len(takes) < 2 and (not takes or takes[0].key in used):
        return []
    return [
        TakeRow(
            take.key,
            sounds.samples(take.key) / SAMPLE_RATE,
            _peaks(sounds, take.key),
            take.key in used,
            "" if line.text.startswith(take.text) else take.text,
        )
        for take in takes
    ]


def _seconds(opened: OpenScript) -> float:
    assert opened.sounds is not None
    return sum(opened.sounds.samples(job.key) for job in opened.jobs if job.key) / SAMPLE_RATE


@lru_cache(maxsize=4096)
def _peaks(sounds: LineAudio, key: str) -> tuple[int, ...]:
    """Audio never changes under its key."""
    try:
        return peaks_of(sounds.read(key))
    except InvalidAudio:
        return ()


def peaks_of(pcm: Pcm) -> tuple[int, ...]:
    """The peak of each of BARS equal parts, 1 to HIGH."""
    if len(pcm) < BARS:
        return ()
    loud = np.abs(pcm[: len(pcm) // BARS * BARS].astype(np.int32)).reshape(BARS, -1).max(axis=1)
    scaled = np.ceil(loud / max(1, int(loud.max())) * HIGH).astype(int)
    return tuple(max(1, int(each)) for each in scaled)
