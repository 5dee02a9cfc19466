"""Subtitles and chapter lists from a timeline.

A line's start and end are those of its samples. A long line is shown in parts, which change where
the next part's first word is heard (studio.word_times), or without its sound by share of letters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from engine import SAMPLE_RATE, spoken_size
from studio.scripts.export.caption_rows import columns, wrapped
from studio.scripts.line_audio import LineAudio
from studio.scripts.text.sentences import SpokenPiece, spoken_pieces
from studio.scripts.timeline import Chapter, Span, Timeline
from studio.word_times import part_times

ROW, ROWS = 42, 2  # columns of a row, and rows of a caption
AT_ONCE = SpokenPiece(shortest=12, longest=84)  # letters per caption
SLACK = 10  # columns, so that the parts of a text need no further one for a word that is left
SHORTEST = 0.3  # seconds that a part is shown, at least


@dataclass(frozen=True)
class Caption:
    """A caption from `start` to `end`, in milliseconds."""

    start: int
    end: int
    speaker: str
    text: str


def captions(
    timeline: Timeline,
    sounds: LineAudio | None = None,
    on_progress: Callable[[float], object] = lambda _: None,
) -> list[Caption]:
    """The captions in order. `on_progress` is called with the progress, 0 to 1."""
    shown: list[Caption] = []
    for number, span in enumerate(timeline.heard, 1):
        shown += _parts(span, sounds)
        on_progress(number / len(timeline.heard))
    return shown


def srt(shown: Sequence[Caption]) -> str:
    """SubRip; speakers are named if there are several."""
    named = _is_dialogue(shown)
    entries = [
        f"{number}\n{_clock(each.start, ',')} --> {_clock(each.end, ',')}\n"
        f"{_rows(_with_name(each, named)).replace('-->', '→')}\n"
        for number, each in enumerate(shown, 1)
    ]
    return "\n".join(entries)


def vtt(shown: Sequence[Caption]) -> str:
    """WebVTT, with voices."""
    entries = [
        f"{_clock(each.start, '.')} --> {_clock(each.end, '.')}\n"
        f"{_voice(each.speaker)}{_escape(_rows(each.text))}\n"
        for each in shown
    ]
    return "\n".join(["WEBVTT\n", *entries])


def chapter_list(timeline: Timeline) -> str:
    """One chapter per line, `0:01:23 Title`, as video sites expect it."""
    return "".join(f"{_hours(each.start)} {chapter_title(each)}\n" for each in timeline.chapters)


def _parts(span: Span, sounds: LineAudio | None) -> Iterator[Caption]:
    pieces = (text.strip() for text in spoken_pieces(span.text, breath=AT_ONCE))
    texts = [text for piece in pieces for text in _fitting(piece, span.line.speaker)]
    if span.samples < len(texts) * SHORTEST * SAMPLE_RATE:
        texts = [span.text]
    start = span.start
    for text, end in zip(texts, _ends(texts, span, sounds), strict=True):
        yield Caption(milliseconds(start), milliseconds(end), span.line.speaker, text)
        start = end


def _ends(texts: Sequence[str], span: Span, sounds: LineAudio | None) -> list[int]:
    """The sample at which each part ends: where the next one is heard."""
    heard = len(texts) > 1 and sounds and span.key in sounds
    if heard and sounds and (times := part_times(texts, sounds.read(span.key))):
        starts = [span.start + round(start * SAMPLE_RATE) for start, _ in times[1:]]
        return [*starts, span.end]
    sizes = list(accumulate(map(spoken_size, texts)))
    return [span.start + span.samples * each // (sizes[-1] or 1) for each in sizes]


def _fitting(text: str, speaker: str) -> list[str]:
    """The text in as few and even parts as fit into a caption each, beside the speaker's name;
    only what would fit nowhere is broken inside a word."""
    before, size = _before(speaker), columns(text)
    for whole in (True, False):
        for parts in range(1, 2 + size // (ROW // 2)):
            width = -(-size // parts) + (SLACK if parts > 1 else 0)
            texts = wrapped(text, width, whole)
            if all(_fits(before + part) for part in texts):
                return texts
    return [text]


def _fits(text: str) -> bool:
    return _rows(text).count("\n") < ROWS


def _before(speaker: str) -> str:
    """A name as it stands before what is said; a long one is shortened."""
    if not speaker:
        return ""
    head = next(iter(wrapped(speaker, ROW // 2 - 3)), "")
    return f"{speaker if columns(speaker) <= ROW // 2 else f'{head}…'}: "


def _is_dialogue(shown: Iterable[Caption]) -> bool:
    return len({each.speaker for each in shown}) > 1


def _with_name(caption: Caption, named: bool) -> str:
    return f"{_before(caption.speaker)}{caption.text}" if named else caption.text


def _rows(text: str) -> str:
    return "\n".join(wrapped(text, ROW))


def _voice(speaker: str) -> str:
    return f"<v {_escape(speaker)}>" if speaker else ""


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def chapter_title(chapter: Chapter) -> str:
    return chapter.title or "Beginning"


def milliseconds(samples: int) -> int:
    return samples * 1000 // SAMPLE_RATE


def _clock(milliseconds: int, point: str) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{point}{rest:03}"


def _hours(samples: int) -> str:
    seconds = samples // SAMPLE_RATE
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
