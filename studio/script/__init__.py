"""Scripts: dialogue and long text, from a file to a spoken whole with subtitles.

    script_of_file / _text / _dialogue ─▶ Script ── edits ─▶ Script
    resolve_cast, plan ─▶ Jobs ─▶ Rendering ─▶ Sounds ─▶ lay_out ─▶ export_file, srt, vtt, …

A script, its cast and its delivery are immutable data in a Project; a line's sound is found by
the key of everything it depends on. So nothing has to be kept in step, and a reload, a crash or
a change costs exactly the lines it concerns. No pages here, and no tensors.
"""

from studio.script.captions import captions, chapter_list, ffmetadata, srt, vtt
from studio.script.casting import Casting, resolve_cast, suggest
from studio.script.export import export_file, export_lines
from studio.script.forecast import Progress
from studio.script.listening import ScriptStream
from studio.script.loudness import even_gains
from studio.script.model import Line, Script
from studio.script.passages import Manner, Passage
from studio.script.pauses import Pauses
from studio.script.projects import Listed, Project, Projects
from studio.script.reading import (
    SUFFIXES,
    dialogue_of,
    script_of_dialogue,
    script_of_file,
    script_of_text,
)
from studio.script.rendering import Piece, Rendering
from studio.script.sentences import Breath
from studio.script.sheet import Row, sheet
from studio.script.sounds import Sounds
from studio.script.speech import Delivery, Job, plan
from studio.script.spelling import Spelling, read_spellings, write_spellings
from studio.script.timeline import Timeline, lay_out, missing
from studio.script.tracks import Status, status_of
from studio.script.writing import text_of

__all__ = [
    "SUFFIXES",
    "Breath",
    "Casting",
    "Delivery",
    "Job",
    "Line",
    "Listed",
    "Manner",
    "Passage",
    "Pauses",
    "Piece",
    "Progress",
    "Project",
    "Projects",
    "Rendering",
    "Row",
    "Script",
    "ScriptStream",
    "Sounds",
    "Spelling",
    "Status",
    "Timeline",
    "captions",
    "chapter_list",
    "dialogue_of",
    "even_gains",
    "export_file",
    "export_lines",
    "ffmetadata",
    "lay_out",
    "missing",
    "plan",
    "read_spellings",
    "resolve_cast",
    "script_of_dialogue",
    "script_of_file",
    "script_of_text",
    "sheet",
    "srt",
    "status_of",
    "suggest",
    "text_of",
    "vtt",
    "write_spellings",
]
