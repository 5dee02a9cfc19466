"""What ends a command: an error as one line, Ctrl-C, a closed pipe; each with its exit code."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec

import typer

from studio.cli.console import Console
from studio.cli.interrupts import raised

Options = ParamSpec("Options")

FAULT, REFUSED, INTERRUPTED = 1, 2, 130


def plainly(
    command: Callable[Options, None], console: Console, environment: Mapping[str, str]
) -> Callable[Options, None]:
    """The command, with a traceback only where TIMBRE_DEBUG asks for it."""

    @wraps(command)
    def run(*arguments: Options.args, **options: Options.kwargs) -> None:
        try:
            with raised():
                command(*arguments, **options)
        except KeyboardInterrupt as stopped:
            console.line(str(stopped) or "Stopped.")
            raise typer.Exit(INTERRUPTED) from None
        except typer.Exit:
            raise
        except BrokenPipeError:  # as in `voices | head -1`: who reads has what he wanted
            console.discard()
            raise typer.Exit(0) from None
        except Exception as error:
            from engine import TimbreError

            if isinstance(error, TimbreError):
                console.line(f"error: {error}")
                raise typer.Exit(REFUSED) from None
            if environment.get("TIMBRE_DEBUG"):
                raise
            console.line(f"error: {explain(error)}")
            raise typer.Exit(FAULT) from None

    return run


def explain(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.strerror}. Nothing more can be written there."
    return f"{type(error).__name__}: {error}. TIMBRE_DEBUG=1 shows where."
