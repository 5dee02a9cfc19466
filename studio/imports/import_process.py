"""Imports: each file is parsed by a process of its own (worker.py), a few at a time.

An address has one import at a time, others wait in a short queue, and who finds it full is told so.
What a process sends back is bounded and checked as if a stranger had sent it. Knows no formats.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from engine import InvalidText, Message, Pcm, RequestError
from studio.api.page_request import page_address
from studio.imports.archives import DAMAGED
from studio.imports.cover import MOST_BYTES, is_jpeg
from studio.imports.formats import check_name
from studio.imports.music_file import MOST_SAMPLES
from studio.imports.projects.packed import unpacked_imported, unpacked_script
from studio.imports.projects.project_reader import project_of
from studio.scripts.books import Imported
from studio.scripts.line_audio import SUFFIX
from studio.scripts.model import Script, check_speakers
from studio.scripts.project_files import MOST_PARTS, MOST_SOUND
from studio.scripts.projects import COVER, Project
from studio.scripts.text.passages import MAX_CHAPTERS, MAX_CHARACTERS, PLAIN, SpeechOptions
from studio.scripts.text.typed import bounded, script_of_text
from studio.storage import is_plain_file, is_safe_id

AT_ONCE, WAITING = 2, 6  # imports of all addresses
PATIENCE = 90.0  # seconds in the queue
MEGABYTES = 160  # of memory that one may have, with 35 that numpy reserves and never touches
CPU_SECONDS = 40
SECONDS = 120  # on the wall, in which a busy machine has given it those
ENDING = 10.0  # seconds between the end of what it writes and its own
SHORT = 20_000  # characters of typed text that are parsed at once
MOST_RESULT = 40 << 20  # bytes
MOST_HEAD = 4_096
_WORKER = Path(__file__).with_name("worker.py")
_ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_FAULT = re.compile(r"\w{1,60} at [\w.<> ]{1,60}:\d{1,6}")  # of a reader, without words

# How one ends that has used up its CPU time; 0 where the system does not bound that.
_CPU_TIME: Final = int(getattr(signal, "SIGXCPU", 0))
# And its time on the wall, or the machine's memory.
_MACHINE: Final = {int(getattr(signal, name, 0)) for name in ("SIGKILL", "SIGALRM")} - {0}

BUSY_ADDRESS = "Another file from your address is being read. Try again when it is done."
BUSY = "Many files are being read at the moment. Try again in a minute."
TOO_SLOW = "The file takes too long to read. Split it into parts."
TOO_BUSY = "The computer is too busy to read the file now. Try again in a few minutes."
TOO_MUCH = "The file needs too much memory to be read. Split it into parts."
CLOSED = "The server is closing. Try again in a minute."
UNAVAILABLE = "The file cannot be read at the moment. Try again in a minute."
log = logging.getLogger("timbre")
_ALL: Final[weakref.WeakSet[Imports]] = weakref.WeakSet()


def close_imports() -> None:
    """End all imports of this process, which is closing: their threads would hold it up."""
    for each in [*_ALL]:
        each.close()


class Imports:
    """The imports of one server, for any thread. `address`: the visitor's whose event runs."""

    def __init__(self, address: Callable[[], str] = page_address) -> None:
        self._address = address
        self._changed = threading.Condition()  # holds what follows
        self._addresses: set[str] = set()  # with an import that runs or waits
        self._taken = 0  # of the places
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False
        _ALL.add(self)

    def close(self) -> None:
        """End what runs; nothing starts any more."""
        with self._changed:
            self._closed = True
            for process in self._running:
                _kill(process)
            self._changed.notify_all()

    def script(self, path: Path) -> Imported:
        """A script from a file; the extension tells the format. Raises RequestError."""
        check_name(path.name)
        with self._place(), _unavailable():
            return _imported_in(self._result(path=str(path.absolute())))

    def typed(
        self,
        text: str,
        options: SpeechOptions = PLAIN,
        speakers: Collection[str] = (),
        moods: Collection[str] = (),
    ) -> Script:
        """A script from typed text; a long one is parsed like a file. `moods`: names in brackets
        that are no speakers."""
        if len(text) <= SHORT:
            return script_of_text(text, options, speakers, moods)
        names = {"speakers": [*speakers], "moods": [*moods]}
        task = {"text": bounded(text), **names, "options": options.model_dump()}
        with self._place(), _unavailable():
            return _script_in(self._result(**task))

    def project(self, path: Path, folder: Path) -> Project:
        """A project from a file, its audio in a folder. Raises RequestError."""
        with self._place():
            data = self._result(path=str(path.absolute()), folder=str(folder.absolute()))
            _check_sounds(folder)
            _check_cover(folder.parent / COVER)
            return project_of(data)

    def music(self, path: Path) -> Pcm:
        """The samples of an audio file; its content tells the format. Raises RequestError."""
        with self._place(), _unavailable(), tempfile.TemporaryDirectory() as folder:
            samples = Path(folder) / "samples"
            self._result(path=str(path.absolute()), music=str(samples))
            if not is_plain_file(samples) or not 0 < samples.stat().st_size <= 2 * MOST_SAMPLES:
                raise InvalidText(DAMAGED)
            pcm: Pcm = np.fromfile(samples, "<i2").astype(np.int16, copy=False)
            return pcm

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Wait for a place among the few imports that may run. Raises RequestError."""
        address = self._address()
        with self._changed:
            if address in self._addresses:
                raise RequestError(BUSY_ADDRESS)
            if len(self._addresses) >= AT_ONCE + WAITING:
                raise RequestError(BUSY)
            self._addresses.add(address)
            free = self._changed.wait_for(self._has_place, PATIENCE)
            if not free:
                self._addresses.discard(address)
                raise RequestError(BUSY)
            self._taken += 1
        try:
            yield
        finally:
            with self._changed:
                self._addresses.discard(address)
                self._taken -= 1
                self._changed.notify()

    def _has_place(self) -> bool:
        return self._closed or self._taken < AT_ONCE

    def _result(self, **task: Any) -> bytes:
        """The result of a task that a process works on. Raises RequestError."""
        limits = {
            "path": [str(each) for each in sys.path if each],
            "parent": os.getpid(),
            "megabytes": MEGABYTES,
            "cpu_seconds": CPU_SECONDS,
            "seconds": SECONDS,
            "file_bytes": MOST_SOUND,
        }
        process = self._started()
        late = threading.Event()

        def end() -> None:
            late.set()
            _kill(process)

        clock = threading.Timer(SECONDS, end)
        clock.start()
        try:
            head, body = _answer(process, [json.dumps(limits), json.dumps(task)])
        finally:
            clock.cancel()
            with self._changed:
                self._running.discard(process)
        if self._closed:
            raise RequestError(CLOSED)
        if not head:
            raise _ended(process.returncode, late.is_set())
        return _body_of(head, body)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._changed:  # so that none starts while all are ended
            if self._closed:
                raise RequestError(CLOSED)
            try:
                process = subprocess.Popen(
                    [sys.executable, "-I", str(_WORKER)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=None if sys.platform == "win32" else _ENVIRONMENT,
                    start_new_session=True,
                )
            except OSError as error:
                raise RequestError(UNAVAILABLE) from error
            self._running.add(process)
            return process


def _answer(process: subprocess.Popen[bytes], lines: Sequence[str]) -> tuple[bytes, bytes]:
    """The first line and the rest of what it writes, or the beginning of too much."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(OSError), process.stdin as sent:  # it may have ended
            sent.write("\n".join(lines).encode())
        with process.stdout as out:
            head = out.readline(MOST_HEAD)
            body = out.read(MOST_RESULT + 1)
        if len(body) <= MOST_RESULT:
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDING)
        return head, body
    finally:
        _kill(process)
        process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its group; one that has ended is left alone."""
    if process.poll() is None:
        if sys.platform != "win32":
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()


def _ended(returned: int, late: bool) -> RequestError:
    """Why a process has ended without a word.

    One that had less than its CPU time when its time on the wall was over was held up by the
    machine; where CPU time is not bounded, the file is to blame.
    """
    if -returned == _CPU_TIME or (late and not _CPU_TIME):
        return InvalidText(TOO_SLOW)
    return RequestError(TOO_BUSY) if late or -returned in _MACHINE else InvalidText(DAMAGED)


def _body_of(head: bytes, body: bytes) -> bytes:
    """The result. Raises InvalidText as its reader did."""
    try:
        answer = json.loads(head)
    except (ValueError, RecursionError):
        answer = {}
    if not isinstance(answer, dict):
        answer = {}
    if answer == {"done": True} and len(body) <= MOST_RESULT:
        return body
    if answer.get("failed") == "memory":
        raise InvalidText(TOO_MUCH)
    if answer.get("failed") == "files":
        raise OSError(answer["errno"], "a file could not be written")
    fault = answer.get("fault")
    if isinstance(fault, str) and _FAULT.fullmatch(fault):
        log.warning("A file could not be read: %s", fault)
    try:
        refused = Message.restored(answer.get("refused"))
    except ValueError:
        raise InvalidText(DAMAGED) from None
    raise InvalidText(refused)


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RequestError(UNAVAILABLE) from error


def _script_in(data: bytes) -> Script:
    return _checked(unpacked_script(data))


def _imported_in(data: bytes) -> Imported:
    found = unpacked_imported(data)
    try:
        cover = base64.b64decode(found.cover, validate=True)
    except ValueError as error:
        raise InvalidText(DAMAGED) from error
    _checked(found.script)
    if cover and not is_jpeg(cover):
        raise InvalidText(DAMAGED)
    if sum(len(part.text) for part in found.left_out) > MAX_CHARACTERS:
        raise InvalidText(DAMAGED)
    return found


def _checked(script: Script) -> Script:
    characters = sum(len(line.text) for line in script.lines)
    if not script.lines or characters > MAX_CHARACTERS or len(script.chapters) > MAX_CHAPTERS:
        raise InvalidText(DAMAGED)
    return check_speakers(script)


def _check_cover(path: Path) -> None:
    if path.exists() and not (is_plain_file(path) and is_jpeg(path.read_bytes()[: MOST_BYTES + 1])):
        raise InvalidText(DAMAGED)


def _check_sounds(folder: Path) -> None:
    """Plain files under keys, no larger and no more than a project may have."""
    for count, path in enumerate(folder.iterdir()):
        named = is_safe_id(path.name.removesuffix(SUFFIX)) and path.suffix == SUFFIX
        if count >= MOST_PARTS or not named or not is_plain_file(path):
            raise InvalidText(DAMAGED)
