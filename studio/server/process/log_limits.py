"""The log of a server: one handler, bounded, without the words that a visitor has sent.

Visitors decide how often some lines are written, and what stands in them: an event with a false
value raises an error that quotes it. So a line is at most LINE bytes, and in SECONDS the same
line is written at most MOST times and all lines together take at most BYTES. The log names kind and
place of an error that another library raises or prints, but not its message, which may quote a
request; TIMBRE_DEBUG adds it.

What goes through here: loggers, warnings, `print`, `traceback.print_exc`, ends of threads. Knows no
sentences.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
import traceback
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect

if TYPE_CHECKING:
    Handler = logging.StreamHandler[Any]
else:
    Handler = logging.StreamHandler  # Python 3.10 has no parameter for it
MOST: Final = 5
SECONDS: Final = 60.0
# In SECONDS, 60 kB together: of this program's loggers, of other libraries', and of what these
# print, which is the easiest to bring about.
BYTES: Final = {"ours": 24 << 10, "theirs": 24 << 10, "printed": 12 << 10}
LINE: Final = 4000  # bytes of a line, its traceback included
WORDS: Final = 500  # characters of a message
HEAD: Final = 100  # characters of what another library says
FRAMES: Final = 12  # of a traceback, its last ones
CHAIN: Final = 3  # errors that led to one another
OURS: Final = ("timbre", "studio", "engine")
PRINTED: Final = ("print", "traceback", "warnings")  # loggers


class RepeatFilter(logging.Filter):
    """Passes MOST of the same line in SECONDS; then counts what it leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self._start = 0.0
        self._counts: dict[tuple[object, ...], int] = {}
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if left_out := self._turn():
            record.msg = f"{record.msg} ({left_out} lines like the last ones were left out)"
        key = _kind(record)
        self._counts[key] = self._counts.get(key, 0) + 1
        passed = self._counts[key] <= MOST
        self._left_out += not passed
        return passed

    def _turn(self) -> int:
        """The lines that were left out before a new minute; 0 within one."""
        now = time.monotonic()
        if now - self._start <= SECONDS:
            return 0
        left_out, self._left_out = self._left_out, 0
        self._start, self._counts = now, {}
        return left_out


class ServerLog(Handler):
    """Writes bounded lines. `debug`: with the messages of foreign errors."""

    def __init__(self, stream: Any, debug: bool = False) -> None:
        super().__init__(stream)
        self._debug = debug
        self._start = 0.0
        self._left = dict[str, int]()
        self._unwritten = 0  # lines, since the minute began
        self.addFilter(RepeatFilter())
        self._writes = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(self._writes, "now", False):  # what goes wrong while a line is written
            return
        if record.exc_info and _of_one_who_left(record.exc_info[1]):
            return
        self._writes.now = True
        try:
            if line := self._affordable(record, self._line(record)):
                self.stream.write(line)
                self.flush()
        except (OSError, ValueError, AttributeError):  # nobody reads the log, or there is none
            pass
        finally:
            self._writes.now = False

    def _line(self, record: logging.LogRecord) -> str:
        """The line of a record. If its values do not fit its words, or its error cannot be shown,
        it names the kind of fault instead: logging never raises in the code that logs."""
        try:
            return self.format(record)
        except Exception as error:
            place = f"{_short(record.pathname)}:{record.lineno}"
            return f"{record.levelname} {record.name}: {type(error).__name__} in a line of {place}"

    def format(self, record: logging.LogRecord) -> str:
        ours = is_ours(record.name)
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        lines = [f"{moment} {record.levelname} {record.name}: {self._words(record, ours)}"]
        if record.exc_info and record.exc_info[1]:
            lines += self._trace(record.exc_info[1], record.name.startswith("timbre"))
        return "\n".join(lines)

    def _affordable(self, record: logging.LogRecord, line: str) -> str:
        """The line as it is written; empty where no more is written in this minute."""
        notice = ""
        if record.created - self._start > SECONDS or record.created < self._start:
            if self._unwritten:
                notice = f"({self._unwritten} lines were left out, beyond what a minute may have)\n"
            self._start, self._left, self._unwritten = record.created, dict(BYTES), 0
        cut = line.encode("utf-8", "backslashreplace")[:LINE].decode("utf-8", "ignore") + "\n"
        whose = (
            "printed" if record.name in PRINTED else "ours" if is_ours(record.name) else "theirs"
        )
        self._left[whose] -= len(cut.encode())
        if self._left[whose] >= 0:
            return notice + cut
        self._unwritten += 1
        return notice

    def _words(self, record: logging.LogRecord, ours: bool) -> str:
        if ours or self._debug:
            return one_line(record.getMessage(), WORDS)
        told = record.getMessage() if _counts(record.args) else str(record.msg)
        return one_line(told.partition("\n")[0], HEAD)

    def _trace(self, error: BaseException, worded: bool) -> Iterator[str]:
        """Kind and place of an error, and of what led to it."""
        for number, each in enumerate(_chain(error)):
            yield f"  {'' if number == 0 else 'after '}{_named(each, worded or self._debug)}"
            for frame in traceback.extract_tb(each.__traceback__)[-FRAMES:]:
                yield f"    {_short(frame.filename)}:{frame.lineno} {frame.name}"


@contextmanager
def bounded_log(debug: bool = False) -> Iterator[None]:
    """Let all that this process writes through one bounded handler, while it serves."""
    with ExitStack() as restored:
        for name in tuple(logging.root.manager.loggerDict):  # whose own handlers would write too
            each = logging.getLogger(name)
            _set(restored, each, handlers=[], propagate=True)
        _set(restored, logging.root, handlers=[ServerLog(sys.__stderr__, debug)])
        restored.enter_context(warnings.catch_warnings())
        warnings.simplefilter("always", append=True)  # else each text of a warning is kept for good
        _set(restored, warnings, showwarning=_log_warning)
        _set(restored, traceback, print_exc=_log_printed_error)
        _set(restored, threading, excepthook=_log_thread)
        _set(restored, sys, unraisablehook=_log_unraisable, stdout=Printed(), stderr=Printed())
        yield


def _set(restored: ExitStack, place: Any, **values: object) -> None:
    """Set attributes until the end."""
    for name, value in values.items():
        restored.callback(setattr, place, name, getattr(place, name))
        setattr(place, name, value)


class Printed(io.TextIOBase):
    """What is printed, as lines of the log."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text.strip():
            _log("print", logging.INFO, text.strip(), sys._getframe(1))
        return len(text)


def is_ours(logger: str) -> bool:
    return logger.partition(".")[0] in OURS


def one_line(text: str, most: int) -> str:
    """The text's beginning, whose control characters cannot begin a new line or colour one."""
    cut = text if len(text) <= most else f"{text[:most]}…"
    return "".join(
        each if unicodedata.category(each)[0] != "C" else each.encode("unicode_escape").decode()
        for each in cut.strip()
    )


def _log(
    name: str, level: int, words: str, frame: FrameType | None, error: BaseException | None = None
) -> None:
    """Write a line as if `frame` had logged it."""
    logger = logging.getLogger(name)
    path, line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
    about = (type(error), error, error.__traceback__) if error else None
    logger.handle(logger.makeRecord(name, level, path, line, words, (), about))


def _log_printed_error(*_: object, **__: object) -> None:
    """Replaces `traceback.print_exc`, with which libraries print errors of requests."""
    _log("traceback", logging.ERROR, "An error was caught.", sys._getframe(1), sys.exc_info()[1])


def _log_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    """A warning's kind and place; its message may quote a request."""
    words = f"{category.__name__} at {_short(filename)}:{lineno}\n%s"  # the first line is written
    logger = logging.getLogger("warnings")
    record = logger.makeRecord(
        "warnings", logging.WARNING, filename, lineno, words, (str(message),), None
    )
    logger.handle(record)


def _log_thread(about: threading.ExceptHookArgs) -> None:
    name = about.thread.name if about.thread else "?"
    _log("threads", logging.ERROR, f"{name} ended with an error.", None, about.exc_value)


def _log_unraisable(about: Any) -> None:
    _log("threads", logging.ERROR, "An error could not be raised.", None, about.exc_value)


def _kind(record: logging.LogRecord) -> tuple[object, ...]:
    """A line without its values: lines that differ only in values are of one kind."""
    raised, _, place = record.exc_info or (None, None, None)
    line = _innermost(place) if place else ()
    return record.name, record.pathname, record.lineno, raised, *line


def _innermost(place: TracebackType) -> tuple[str, int]:
    while place.tb_next:
        place = place.tb_next
    return place.tb_frame.f_code.co_filename, place.tb_lineno


def _of_one_who_left(error: BaseException | None) -> bool:
    """Whether an error says no more than that a client left in the middle of a request: Starlette
    and FastAPI raise one of their own about the answer that nobody waits for."""
    reason = error and (error.__cause__ or error.__context__)
    return isinstance(reason, ClientDisconnect) and isinstance(error, RuntimeError)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, one of a group's, and what led to it."""
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and len(seen) < CHAIN and following not in seen:
        seen.append(following)
        yield following
        parts = getattr(following, "exceptions", ())
        if parts and isinstance(following, Exception):
            following = parts[0]
        else:
            hidden = following.__suppress_context__
            following = following.__cause__ or (None if hidden else following.__context__)


def _named(error: BaseException, worded: bool) -> str:
    kind = type(error).__name__
    if worded:
        return f"{kind}: {one_line(str(error), WORDS)}"
    return f"{kind}: {error.strerror}" if isinstance(error, OSError) and error.strerror else kind


def _counts(values: object) -> bool:
    """Whether the values of a line are numbers, which quote nothing."""
    return isinstance(values, tuple) and all(isinstance(each, int | float) for each in values)


def _short(path: str) -> str:
    """A path below the installed packages or this program."""
    for folder in ("site-packages/", "dist-packages/"):
        if folder in path:
            return path.rpartition(folder)[2]
    return path
