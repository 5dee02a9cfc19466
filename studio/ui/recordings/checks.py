"""What is good and what is not in a recording, one by one, each with a picture and what to do.

HTML for the page. Knows no components; the numbers are the engine's (`Recording.quality`).
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from engine import Message, Recording, marks_of
from studio.ui.gradio_compat.scripts import on_load
from studio.ui.i18n import both, labelled, tell
from studio.ui.recordings import pictures

AT: Final = " · "
BEST: Final = (5.0, 15.0)  # seconds
CHECKED: Final = {  # notes that are checks of their own here
    "{flaw}: only the voice is copied, without its transcript",
    "{share:.1%} of it is clipped; a quieter recording would sound better",
}
LEVELS: Final = {
    "quiet": "Too quiet: go closer to the microphone.",
    "good": "A good level.",
    "loud": "Too loud: lower the input level, or go a little away.",
}
REFUSED: Final = {  # why there is no recording
    "denied": "The browser gives this page no microphone. Allow it in the address bar, and press "
    "Record once more.",
    "none": "The browser finds no microphone. Connect one, and press Record once more.",
    "insecure": "Browsers give a microphone only to pages over HTTPS, or on this computer itself. "
    "Drop a recording instead.",
}
LEVEL: Final = "Input level"
METER: Final = on_load("static/level_meter.js")


class _Check(NamedTuple):
    """`advice`: what to do where it is not good. `places`: what can be cut out."""

    name: str
    told: str
    good: bool
    picture: str
    advice: str
    places: Sequence[tuple[float, float]] = ()


def level_meter() -> str:
    """The level of the microphone, which static/level_meter.js shows while there is a recording, or
    why there is none."""
    advice = "".join(
        f'<span data-for="{name}">{both(text)}</span>'
        for name, text in {**LEVELS, **REFUSED}.items()
    )
    return (
        f'<div class="timbre-level" hidden><i role="meter" {labelled(LEVEL)}'
        ' aria-valuemin="-60" aria-valuemax="0" aria-valuenow="-60"></i>'
        f'<p role="status">{advice}</p></div>'
    )


def checks_of(recording: Recording) -> str:
    """A list of six checks, then what was changed in the recording."""
    rows = "".join(map(_row, _checks(recording)))
    changed = [each for each in recording.notes if each.key not in CHECKED]
    notes = "".join(f"<li>{escape(tell(each))}</li>" for each in changed)
    return f'<dl class="timbre-checks">{rows}</dl>' + (f"<ul>{notes}</ul>" if notes else "")


def _checks(recording: Recording) -> list[_Check]:
    quality, seconds, marks = recording.quality, recording.seconds, marks_of(recording)
    others = "1" if not quality.has_others else "2+"
    return [
        _Check(
            "Length",
            tell(Message("{seconds:.1f} s", seconds=seconds)),
            seconds >= BEST[0],
            pictures.length(marks, recording, BEST),
            "A longer one would sound closer: 5 to 15 seconds.",
        ),
        _Check(
            "Noise",
            tell(Message("{level:.0f} dB below the speech", level=min(99.0, quality.noise))),
            not quality.is_noisy,
            pictures.noise(marks, recording, quality.is_noisy),
            "Too noisy: only the voice is copied. Record in a quiet room, close to the microphone.",
        ),
        _Check(
            "Music",
            tell("music" if quality.is_musical else "none"),
            not quality.is_musical,
            pictures.noise(marks, recording, quality.is_musical),
            "Music: only the voice is copied. Record without it.",
        ),
        _Check(
            "Level",
            tell(Message("{share:.1%} clipped", share=quality.clipped)),
            not quality.is_clipped,
            pictures.level(marks, recording, quality.is_clipped),
            "Clipped: lower the input level, or go a little away from the microphone.",
            marks.clipped,
        ),
        _Check(
            "Room",
            tell("dry" if not quality.is_roomy else "echo"),
            not quality.is_roomy,
            pictures.room(marks, recording, quality.is_roomy),
            "Too much echo: only the voice is copied. Record among soft furniture.",
        ),
        _Check(
            "People",
            others,
            not quality.has_others,
            pictures.people(marks, recording, quality.has_others),
            "More than one person: only the voice is copied. Cut out what others say.",
            [(each.start, each.stop) for each in marks.others],
        ),
    ]


def picture_of(recording: Recording) -> str:
    """The picture of the first check that is not good; its level where all are."""
    checks = _checks(recording)[1:]
    first = next((each for each in checks if not each.good), None)
    return first.picture if first else pictures.level(marks_of(recording), recording, False)


def _row(check: _Check) -> str:
    state = "good" if check.good else "bad"
    mark, advice = ("✓", "") if check.good else ("⚠️", f"<p>{both(check.advice)}</p>")
    places = "" if check.good or not check.places else f"{AT}{pictures.in_words(check.places)}"
    return (
        f'<div class="{state}"><dt>{mark} {both(check.name)}</dt><dd>{check.picture}'
        f"<span>{escape(check.told)}{escape(places)}</span>{advice}</dd></div>"
    )
