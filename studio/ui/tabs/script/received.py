"""What is told of a file that became a script: another title, and sounds that are not in it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from engine import Message
from studio.scripts.open_script import OpenScript
from studio.scripts.tracks import spoken_key
from studio.ui.i18n import inform, warn

RENAMED: Final = "There is a script of this name already. This one is called “{title}”."
LOST: Final = (
    "Sounds of this script are not in its file: those of {lines} lines (Speak makes them anew), "
    "{music} pieces of music, {takes} earlier takes."
)


def tell_received(opened: OpenScript, taken: Collection[str]) -> None:
    """`taken`: titles that others had."""
    title = opened.project.title
    if re.sub(r" \(\d+\)$", "", title) in taken:
        inform(Message(RENAMED, title=title))
    lost = _lost(opened)
    if any(lost.values()):
        warn(Message(LOST, **lost))


def _lost(opened: OpenScript) -> dict[str, int]:
    """How many sounds are not there; lines that were never spoken lack none."""
    project, sounds = opened.project, opened.sounds
    assert sounds is not None
    silent = [job for job in opened.jobs if job.key and not spoken_key(job, sounds)]
    takes = {take.key for each in project.takes.values() for take in each}
    return {
        "lines": len(silent) if project.casting.digests else 0,
        "music": len(opened.music.missing) if opened.music else 0,
        "takes": sum(key not in sounds for key in takes),
    }
