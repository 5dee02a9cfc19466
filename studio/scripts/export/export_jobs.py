"""Exports of scripts that run on the server: started by a page, found again by any page.

    start(number) ─▶ thread: loudness ▸ subtitles ▸ audio ─▶ files
    state(number) ─▶ the step, how far it is; then the files, or why there are none

One export per script runs, AT_ONCE of all scripts, others wait. The files of a script's last export
stay until its next one is done. Knows no page. Thread-safe.
"""

from __future__ import annotations

import logging
import shutil
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from engine import Message, RequestError, TimbreError
from studio.scripts.export.script_files import ExportOptions, Step, check_export, export
from studio.scripts.open_script import OpenScript
from studio.scripts.store import ScriptStore

AT_ONCE: Final = 2
MOST: Final = 16  # that run and wait
REMEMBERED: Final = 200  # scripts whose last export is known
UNEXPECTED: Final = Message("The export has failed. Try again.")
CROWDED: Final = Message("Too many exports are waiting here. Try again in a minute.")
RUNNING: Final = Message("This script is being exported already. Wait for it, or cancel it.")
Phase: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]

log = logging.getLogger(__name__)


class _Cancelled(Exception):
    """Raised in the thread of an export that was cancelled."""


@dataclass(frozen=True)
class ExportState:
    """How far an export is."""

    phase: Phase
    steps: tuple[Step, ...]
    step: Step
    share: float = 0.0  # of this step that is done, 0 to 1
    files: tuple[Path, ...] = ()
    error: str = ""  # of a failed one
    changed: float = 0.0  # when the script had been changed last, as it was exported

    @property
    def running(self) -> bool:
        return self.phase in ("waiting", "running")

    @property
    def done(self) -> float:
        """The share of all steps that is done, 0 to 1; each counts alike."""
        return (self.steps.index(self.step) + self.share) / len(self.steps)


@dataclass(eq=False)
class _Export:
    state: ExportState
    cancelled: threading.Event = field(default_factory=threading.Event)
    before: tuple[Path, ...] = ()  # files of the export before it


class ExportJobs:
    """All exports of a store's scripts."""

    def __init__(self, store: ScriptStore) -> None:
        self._store = store
        self._exports: dict[str, _Export] = {}
        self._lock = threading.Lock()
        self._places = threading.Semaphore(AT_ONCE)

    def start(self, number: str, options: ExportOptions, folder: Path) -> None:
        """Start an export into a new folder under `folder`. Raises RequestError."""
        opened = self._store.open(number)
        check_export(opened, options)
        steps = options.steps
        state = ExportState("waiting", steps, steps[0], changed=opened.project.changed)
        with self._lock:
            before = self._exports.get(number)
            if before and before.state.running:
                raise RequestError(RUNNING)
            if sum(each.state.running for each in self._exports.values()) >= MOST:
                raise RequestError(CROWDED)
            self._exports.pop(number, None)
            job = _Export(state, before=before.state.files if before else ())
            self._exports[number] = job  # as the latest
            self._forget_oldest()
        # A daemon: a server that ends does not wait for it, and files are written atomically.
        threading.Thread(
            target=self._run, args=(job, opened, options, folder), name="export", daemon=True
        ).start()

    def state(self, number: str) -> ExportState | None:
        """The script's running or last export; None if there was none."""
        job = self._exports.get(number)
        return job.state if job else None

    def is_stale(self, number: str, state: ExportState) -> bool:
        """Whether the script was changed after it was exported."""
        return self._store.look(number).project.changed != state.changed

    def cancel(self, number: str) -> None:
        if job := self._exports.get(number):
            job.cancelled.set()

    def _run(self, job: _Export, opened: OpenScript, options: ExportOptions, folder: Path) -> None:
        def on_step(step: Step, share: float) -> None:
            _check(job)
            job.state = replace(job.state, phase="running", step=step, share=share)

        try:
            while not self._places.acquire(timeout=0.2):
                _check(job)
            try:
                files = export(opened, options, folder, on_step)
            finally:
                self._places.release()
        except _Cancelled:
            job.state = replace(job.state, phase="cancelled", files=job.before)
        except (TimbreError, OSError) as error:
            self._fail(job, getattr(error, "message", str(error)))
        except Exception:
            log.exception("an export has failed")
            self._fail(job, UNEXPECTED)
        else:
            _delete(job.before)
            job.state = replace(job.state, phase="done", share=1.0, files=tuple(files))

    def _fail(self, export: _Export, error: str) -> None:
        export.state = replace(export.state, phase="failed", error=error, files=export.before)

    def _forget_oldest(self) -> None:
        ended = [key for key, each in self._exports.items() if not each.state.running]
        for key in ended[: max(0, len(self._exports) - REMEMBERED)]:
            _delete(self._exports.pop(key).state.files)


def _check(export: _Export) -> None:
    if export.cancelled.is_set():
        raise _Cancelled


def _delete(files: tuple[Path, ...]) -> None:
    """An export's folder, which is its own."""
    for folder in {file.parent for file in files}:
        shutil.rmtree(folder, ignore_errors=True)
