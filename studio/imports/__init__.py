"""Files of strangers: books, documents, subtitles, music and projects, parsed in bounded processes.

    tab ── file ─▶ Imports ── a process of its own ─▶ reader / project_reader ─▶ Script or Project

`Imports` (import_process.py) starts a process for each file and checks what it sends back, and
`projects/project_uploads.py` takes files in. All other modules here run in that process: they bound
sizes, depths and counts before anything is built, and take time linear in the file.
"""
