"""Scripts: dialogue and long text, from a file to a spoken whole with subtitles.

    script_of_text, Imports ─▶ Script ── edits ─▶ Script
    resolve_cast, plan ─▶ Jobs ─▶ BatchSynthesis ─▶ LineAudio ─▶ build_timeline ─▶ export_file, …

A script, its cast and its delivery are immutable data in a Project; a line's audio is found by a
key, a digest of everything it depends on. So a reload, a crash or a change affects exactly the
lines that it concerns. No pages here, and no tensors.
"""

from studio.scripts.casting import Casting, resolve_cast, suggest
from studio.scripts.export.captions import captions, chapter_list, srt, vtt
from studio.scripts.export.export_files import export_file, export_lines
from studio.scripts.export.loudness import loudness_gains
from studio.scripts.line_audio import LineAudio
from studio.scripts.line_requests import Delivery, Job, plan
from studio.scripts.model import Line, Script
from studio.scripts.pauses import Pauses
from studio.scripts.projects import Project, Projects, ProjectSummary
from studio.scripts.rendering.batch_synthesis import BatchSynthesis, Piece
from studio.scripts.rendering.progress import Progress
from studio.scripts.rendering.render_stream import ScriptStream
from studio.scripts.serializer import text_of
from studio.scripts.text.passages import Passage, SpeechOptions
from studio.scripts.text.pronunciation import Spelling, read_spellings, write_spellings
from studio.scripts.text.sentences import SpokenPiece
from studio.scripts.text.typed import script_of_text
from studio.scripts.timeline import Timeline, build_timeline, missing
from studio.scripts.tracks import Status, status_of

__all__ = [
    "BatchSynthesis",
    "Casting",
    "Delivery",
    "Job",
    "Line",
    "LineAudio",
    "Passage",
    "Pauses",
    "Piece",
    "Progress",
    "Project",
    "ProjectSummary",
    "Projects",
    "Script",
    "ScriptStream",
    "SpeechOptions",
    "Spelling",
    "SpokenPiece",
    "Status",
    "Timeline",
    "build_timeline",
    "captions",
    "chapter_list",
    "export_file",
    "export_lines",
    "loudness_gains",
    "missing",
    "plan",
    "read_spellings",
    "resolve_cast",
    "script_of_text",
    "srt",
    "status_of",
    "suggest",
    "text_of",
    "vtt",
    "write_spellings",
]
