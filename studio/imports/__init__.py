"""Files of strangers: books, documents, subtitles and projects, parsed in bounded processes.

    tab ── file ─▶ Imports ── a process of its own ─▶ reader / project_reader ─▶ Script or Project

`Imports` (import_process.py) starts a process for each file and checks what it sends back. All
other modules here run in that process alone: they bound sizes, depths and counts before anything is
built, and take time linear in the file.
"""
