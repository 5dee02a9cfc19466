"""Whether an engine runs in a process of its own, and that process before it is told anything.

Imports little: the process begins while this one still reads what a command needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine import InvalidSetting, boot_ahead, may_have_gpu
from studio.settings import StudioSettings

if TYPE_CHECKING:
    from engine import BootedProcess


def own_process(settings: StudioSettings) -> bool:
    """Raises InvalidSetting where it is asked for and cannot be."""
    if settings.process == "own" and sys.platform == "win32":  # which hands no socket to a child
        raise InvalidSetting(
            "An engine has no process of its own on Windows. Leave TIMBRE_PROCESS out."
        )
    if settings.process == "auto":
        return sys.platform == "linux"
    return settings.process == "own"


@contextmanager
def process_ahead(
    settings: StudioSettings, early: BootedProcess | None = None
) -> Iterator[BootedProcess | None]:
    """The engine's process, if it has one; it ends unless an engine was opened in it.

    `early`: one that was begun before the settings were read; it ends here if it is of no use.
    """
    wanted, on_cpu = own_process(settings), _on_cpu(settings)
    if early and not (wanted and early.is_for(on_cpu)):
        early.discard()
        early = None
    if early or not wanted:
        yield early
        return
    with boot_ahead(on_cpu) as booted:
        yield booted


def _on_cpu(settings: StudioSettings) -> bool:
    return settings.device == "cpu" or (settings.device == "auto" and not may_have_gpu())
