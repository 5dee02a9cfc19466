"""The lines and the cast of a script as HTML, in items that the page updates one by one.

All text of users is escaped. Knows no components and no engine. A button's data attributes name its
action; static/script/board.js sends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal, TypeAlias, TypedDict, get_args

from engine import Message, folded
from studio.scripts import Line, Progress, Status
from studio.scripts.edits import shown
from studio.ui.i18n import both, tell
from studio.ui.tabs.script.line_form import attribute, line_form, option
from studio.voices.text_script import FOREIGN

Item: TypeAlias = tuple[str, str]  # key, HTML
Show: TypeAlias = Literal["all", "open", "failed"]
SHOWS: dict[Show, str] = {"all": "All lines", "open": "Not rendered", "failed": "Failed"}
PAGE = 25  # lines
MOST_SEARCHED = 200  # characters
BARS, HIGH = 44, 20  # of a waveform

WORDS: dict[Status, str] = {
    "waiting": "Not rendered",
    "speaking": "Speaking …",
    "done": "",
    "failed": "Failed",
    "locked": "",
}
OUTDATED = "Made before a change"  # its earlier takes are offered
ICONS = {
    "play": '<path d="M8 5v14l11-7z" fill="currentColor" stroke="none"/>',
    "onward": '<path d="M4 6v12l8-6zM13 6v12l8-6z" fill="currentColor" stroke="none"/>',
    "redo": '<path d="M20 11a8 8 0 1 0-2.3 6.2M20 4v7h-7"/>',
    "edit": '<path d="M4 20h4L19 9l-4-4L4 16zM13 7l4 4"/>',
    "grip": '<path d="M9 6h.01M15 6h.01M9 12h.01M15 12h.01M9 18h.01M15 18h.01"/>',
    "takes": '<path d="M4 7h11M4 12h11M4 17h11M19 7v10"/>',
    "lock": '<path d="M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5z"/>',
    "locked": '<path d="M7 11V8a5 5 0 0 1 10 0v3"/><path d="M5 11h14v9H5z" fill="currentColor"/>',
}

TEACHING = (
    "Write or paste a text above, or upload a file. It is split into lines that are spoken "
    "together; each can be heard, changed, spoken anew and locked on its own."
)
EMPTY = f"""
<div class="timbre-empty">
  <strong>{both("Nothing to speak yet")}</strong>
  <p>{both(TEACHING)}</p>
  <button type="button" data-act="example">{both("Show an example")}</button>
</div>
"""
EXAMPLE = """# The Key

Anna: Where have you been all this time?
Ben: I was looking for the key. [pause 0.6s] I found 12 doors, and not one of them was ours.

Anna laughed, and held up the key. It had been in her pocket all day.
"""


class Board(TypedDict):
    """The value of a board."""

    number: str  # of the script
    items: list[Item]  # in order
    changed: float  # when the script was changed last, to tell a late answer from a newer one
    heard: dict[str, list[tuple[int, int]]]  # by take: where a line begins in it, and which
    answered: list[str]  # the latest presses that were carried out, as board.js has named them
    refused: str  # one that was not
    music: bool  # there is some, whose place and fields a change of the script may change
    view: str  # which lines are shown, as `View.key` has it
    polled: bool  # nobody pressed for it: the page may show something else by now


def board(number: str, items: list[Item], changed: float = 0.0) -> Board:
    """One without sound."""
    return Board(
        number=number,
        items=items,
        changed=changed,
        heard={},
        answered=[],
        refused="",
        music=False,
        view="",
        polled=False,
    )


@dataclass(frozen=True)
class TakeRow:
    """A take of a line that can be picked."""

    key: str
    seconds: float
    peaks: Sequence[int]
    picked: bool
    text: str  # it was made from, if that differs from the line's


@dataclass(frozen=True)
class Row:
    """A line as it is shown."""

    place: int  # 1 for the first
    line: Line
    status: Status
    error: str
    seconds: float
    peaks: Sequence[int]  # of its waveform, 0 to HIGH
    chapter: str  # title, where one begins
    dropped: Sequence[str] = ()  # cues that its voice cannot follow
    takes: Sequence[TakeRow] = ()
    moods: Sequence[str] = ()  # that its text may be put in
    outdated: bool = False  # there is a sound of the same text, made before a change
    held: str = ""  # tags of moods that hold on from the lines before
    music: Sequence[str] = ()  # names of what begins under it


@dataclass(frozen=True)
class Summary:
    """The script as a whole."""

    lines: int
    spoken: int
    seconds: float
    progress: Progress | None
    undo: Message | None  # what Undo takes back


@dataclass(frozen=True)
class View:
    """Which lines are shown."""

    page: int = 0
    show: Show = "all"
    words: str = ""  # that a shown line has in its text or its speaker's name
    voices: str = ""  # in the names of the voices that the cast can choose among

    @property
    def key(self) -> str:
        """Of the same lines the same."""
        return f"{self.page} {self.show} {self.words}"

    def turned(self, page: int) -> View:
        return replace(self, page=max(0, page))

    def showing(self, show: str) -> View:
        known = show in get_args(Show)
        return replace(self, page=0, show=show) if known else self  # type: ignore[arg-type]

    def searching(self, words: str) -> View:
        return replace(self, page=0, words=folded(_searched(words)))

    def casting(self, words: str) -> View:
        return replace(self, voices=_searched(words))

    def finds(self, line: Line) -> bool:
        return not self.words or self.words in folded(f"{line.speaker}: {line.text}")


def page_of(view: View, count: int) -> range:
    """Indices of the lines on the page, of `count`."""
    last = max(0, (count - 1) // PAGE)
    start = min(view.page, last) * PAGE
    return range(start, min(start + PAGE, count))


def row(row: Row, speakers: Sequence[str]) -> Item:
    """A line with its buttons and its edit form."""
    line, number = row.line, row.line.id
    titled = (
        row.chapter != "" and row.chapter == line.text
    )  # a spoken title is shown as the line's text
    heading = f'<h4 class="chapter">{escape(row.chapter)}</h4>' * (row.chapter != "" and not titled)
    text = f"<p>{escape(shown(line)) or both('(silence)')}</p>"
    error = f'<em role="alert">{escape(tell(row.error))}</em>' if row.error else ""
    text += "".join(f'<small class="music">♪ {escape(name)}</small>' for name in row.music)
    if row.dropped:
        error += f'<em class="note">⚠️ {_left_out(row.dropped)}</em>'
    html = (
        f'<article class="line {"title" if titled else ""}" data-line="{number}" tabindex="-1"'
        f' data-status="{row.status}" aria-label="{_told_of("Line {place}", row)}">{heading}'
        f"{'' if titled else _grip(row)}"
        f"{_button('play', 'listen', _told_of('Listen to line {place}', row), 'listen')}"
        f'<div class="said">{_who(row)}{text}{error}</div>{_sound(row)}'
        f'<div class="does">{_does(row)}</div>{_takes(row)}'
        f"{line_form(line, speakers, row.moods)}</article>"
    )
    return f"line-{number}", html


def bar(view: View, summary: Summary) -> Item:
    """Counts, progress and the filter."""
    options = "".join(option(key, tell(label), key == view.show) for key, label in SHOWS.items())
    undo = _undo(summary.undo) if summary.undo else ""
    pick = f'<select data-act="show" aria-label="{attribute("Filter lines")}">{options}</select>'
    find = f'<button type="button" data-act="find" hidden>{both("Show the playing line")}</button>'
    anew = both("Regenerate the selected words")
    again = f'<button type="button" data-play="words" hidden>{anew}</button>'
    return "bar", f'<div class="bar">{_summary(summary)}<nav>{again}{find}{undo}{pick}</nav></div>'


def _undo(change: Message) -> str:
    text = tell(Message("Undo: {change}", change=change))
    return f'<button type="button" data-act="undo">{escape(text)}</button>'


def interrupted() -> Item:
    """The server ended while it rendered the script."""
    text = both("Rendering was interrupted. Rendered lines are kept; press Speak to continue.")
    button = f'<button type="button" data-act="dismiss">{both("Dismiss")}</button>'
    return "interrupted", f'<div class="interrupted" role="status"><p>⚠️ {text}</p>{button}</div>'


def foreign() -> Item:
    """Nobody here speaks the script's language."""
    return "foreign", f'<p class="matches" role="status">⚠️ {both(FOREIGN)}</p>'


def search() -> Item:
    return _search("search", "Search in lines")


def voice_search() -> Item:
    return _search("voices", "Search for a voice")


def matches(count: int) -> Item:
    text = (
        both("No results")
        if not count
        else both("1 line" if count == 1 else "{count} lines", count=f"{count:,}")
    )
    return "matches", f'<p class="matches" role="status">{text}</p>'


def pager(view: View, count: int) -> list[Item]:
    """Navigation between pages; empty for one page."""
    if count <= PAGE:
        return []
    places = page_of(view, count)
    page = places.start // PAGE
    before = _turn("Previous", page - 1, page > 0)
    after = _turn("Next", page + 1, places.stop < count)
    text = both(
        "{first} to {last} of {count}",
        first=f"{places.start + 1:,}",
        last=f"{places.stop:,}",
        count=f"{count:,}",
    )
    return [("pager", f'<nav class="pager">{before}<span>{text}</span>{after}</nav>')]


def no_voices() -> Item:
    return "no-voices", f'<p class="matches" role="status">{both("No results")}</p>'


def member(who: str, voice: str, voices: Sequence[tuple[str, str]], alone: bool) -> Item:
    """A speaker and the choice of a voice."""
    known = any(key == voice for _, key in voices)
    gone = tell(Message("Missing: {name}", name=voice.removeprefix("#")))
    offered = [*voices] if known else [(gone, voice), *voices]
    options = "".join(option(name, label, name == voice) for label, name in offered)
    listen = tell(Message("Listen to {who}", who=who or Message("the narrator")))
    name = escape(who) or both("Voice" if alone else "Narrator")
    return (
        f"who-{who}",
        f'<div class="who"><label><span>{name}</span>'
        f'<select data-act="cast" data-who="{escape(who)}">{options}</select></label>'
        f'<button type="button" data-play="voice" data-who="{escape(who)}"'
        f' aria-label="{escape(listen)}">{both("Listen")}</button></div>',
    )


def _search(action: str, label: str) -> Item:
    """Constant, so that it is not redrawn while somebody types."""
    attributes = f'placeholder="{attribute(label)}" aria-label="{attribute(label)}"'
    return (
        action,
        f'<div class="search"><input type="search" data-search="{action}" {attributes}></div>',
    )


def _searched(words: str) -> str:
    return " ".join(words.split())[:MOST_SEARCHED]


def duration(seconds: float) -> str:
    """3.4 s, 2 min 5 s, 1 h 4 min."""
    if seconds < 60:
        return tell(Message("{seconds:.1f} s", seconds=seconds))
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return tell(Message("{hours} h {minutes} min", hours=hours, minutes=minutes))
    return tell(Message("{minutes} min {seconds} s", minutes=minutes, seconds=rest))


def _summary(summary: Summary) -> str:
    if summary.progress is None:
        text = both(
            "1 line · {spoken} rendered · {length}"
            if summary.lines == 1
            else "{lines} lines · {spoken} rendered · {length}",
            lines=f"{summary.lines:,}",
            spoken=f"{summary.spoken:,}",
            length=duration(summary.seconds),
        )
        return f"<p>{text}</p>"
    done = summary.progress.done + summary.progress.failed
    bounds = f'max="{summary.progress.total}" value="{done}"'
    meter = f'<progress {bounds} aria-label="{attribute("Spoken")}"></progress>'
    stop = f'<button type="button" data-act="stop">{both("Stop")}</button>'
    return f"<p>{_going(summary.progress)}</p>{meter}{stop}"


def _about(seconds: float) -> str:
    """A duration as precisely as estimates allow: 40 s, 5 min, 1 h 10 min."""
    step = next((step for most, step in ((30, 5), (120, 10), (3600, 60)) if seconds < most), 600)
    whole = max(step, step * round(seconds / step))
    if whole < 120:
        return tell(Message("{seconds} s", seconds=whole))
    if whole < 3600:
        return tell(Message("{minutes} min", minutes=whole // 60))
    return duration(whole)


def _going(progress: Progress) -> str:
    parts = [
        both(
            "Lines rendered: {done} of {total}",
            done=f"{progress.done:,}",
            total=f"{progress.total:,}",
        )
    ]
    if progress.seconds_left is not None:
        parts.append(both("about {time} left", time=_about(progress.seconds_left)))
    parts += [both("{speed}× real time", speed=f"{progress.speed:.1f}")] if progress.speed else []
    parts += [both("{count} failed", count=f"{progress.failed:,}")] if progress.failed else []
    return " · ".join(parts)


def _who(row: Row) -> str:
    line = row.line
    direction = f" ({line.direction})" if line.direction else ""
    seed = "" if line.seed is None else tell(Message("seed {seed}", seed=line.seed))
    held = tell(Message("still {moods}", moods=row.held)) if row.held else ""
    text = " · ".join(filter(None, [f"{line.speaker}{direction}", seed, held]))
    return f"<small>{escape(text)}</small>" if text else ""


def _left_out(cues: Sequence[str]) -> str:
    text = ", ".join(f"[{cue}]" for cue in cues)
    return both("{cues} is skipped: this voice follows no instructions.", cues=text)


def _sound(row: Row) -> str:
    if not row.seconds:
        text = OUTDATED if row.outdated and row.status == "waiting" else WORDS[row.status]
        return f'<div class="sound"><span>{both(text)}</span></div>'
    text = both(WORDS[row.status]) or f"{row.seconds:.1f} s"
    return f'<div class="sound">{_wave(row.peaks)}<span>{text}</span></div>'


def _wave(peaks: Sequence[int]) -> str:
    middle = HIGH // 2
    path = "".join(
        f"M{3 * place + 1} {middle - high / 2:g}v{high}" for place, high in enumerate(peaks)
    )
    return (
        f'<svg viewBox="0 0 {3 * BARS} {HIGH}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="{path}"/></svg>'
    )


def _grip(row: Row) -> str:
    label = _told_of("Move line {place}: drag it, or press the up and down arrow keys", row)
    return (
        f'<button type="button" class="icon grip" data-grip title="{escape(label)}"'
        f' aria-label="{escape(label)}">{_icon("grip")}</button>'
    )


def _takes(row: Row) -> str:
    """The list of takes; board.js shows and hides it."""
    if not row.takes:
        return ""
    rows = "".join(_take(number, each) for number, each in enumerate(row.takes, 1))
    label = _told_of("Takes of line {place}", row)
    return f'<ol class="takes" hidden aria-label="{label}">{rows}</ol>'


def _take(number: int, take: TakeRow) -> str:
    key = f'data-take="{escape(take.key)}"'
    listen = tell(Message("Listen to take {number}", number=number))
    label = escape(tell(Message("Use take {number}", number=number)))
    use = f'<button type="button" data-act="pick" {key} aria-label="{label}">{both("Use")}</button>'
    state = f"<strong>{both('In use')}</strong>" if take.picked else use
    current = ' aria-current="true"' if take.picked else ""
    text = f"<small>{escape(take.text)}</small>" if take.text else ""
    return (
        f"<li{current}>{_button('play', 'take', listen, 'listen', key)}"
        f'<span>{both("Take {number}", number=number)}</span><div class="sound">'
        f"{_wave(take.peaks)}<span>{take.seconds:.1f} s</span></div>{state}{text}</li>"
    )


def _does(row: Row) -> str:
    takes = _takes_button(row) if row.takes else ""
    if row.line.locked:
        return takes + _button("locked", "unlock", tell("Unlock this take"), "held")
    parts = [
        takes,
        _button("onward", "onward", _told_of("Speak from line {place}", row)),
        _button("redo", "redo", tell("Regenerate")),
        f'<button type="button" class="icon" data-edit title="{attribute("Edit")}"'
        f' aria-label="{attribute("Edit")}">'
        f"{_icon('edit')}</button>",
    ]
    parts += [_button("lock", "lock", tell("Lock this take"))] if row.seconds else []
    return "".join(parts)


def _takes_button(row: Row) -> str:
    label = tell(Message("Compare {count} takes", count=len(row.takes)))
    return (
        f'<button type="button" class="icon takes" data-takes aria-expanded="false"'
        f' title="{escape(label)}" aria-label="{escape(label)}">{_icon("takes")}'
        f"<span>{len(row.takes)}</span></button>"
    )


def _button(icon: str, does: str, label: str, kind: str = "", more: str = "") -> str:
    event = "play" if does in ("listen", "onward", "redo", "take") else "act"
    return (
        f'<button type="button" class="icon {kind}" data-{event}="{does}" {more}'
        f' title="{escape(label)}" aria-label="{escape(label)}">{_icon(icon)}</button>'
    )


def _icon(name: str) -> str:
    return f'<svg viewBox="0 0 24 24" aria-hidden="true">{ICONS[name]}</svg>'


def _told_of(english: str, row: Row) -> str:
    return tell(Message(english, place=row.place))


def _turn(label: str, page: int, able: bool) -> str:
    off = "" if able else " disabled"
    return f'<button type="button" data-act="turn" data-page="{page}"{off}>{both(label)}</button>'
