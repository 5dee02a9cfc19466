"""The engine's process, begun before the command line is read: that takes half a second itself.

It is begun where it will most likely be of use, and ends unused where it is not. Imports nothing
that takes long, and decides nothing: `own_process` does, once the settings are known.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from studio.layout import PREFIX

if TYPE_CHECKING:
    from engine import BootedProcess

COMMANDS = ("say", "serve")
ELSEWHERE = ("-h", "--help", "--server", "--device", "--replicas")  # or not what it is for
ZERO_GPU = "SPACES_ZERO_GPU"  # set by Hugging Face, whose device is lent for a call
VARIABLES = ("SERVER", "DEVICE", "PROCESS", "CLUSTER_REPLICAS")


def is_likely(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether this command will open an engine on this machine, in a process of its own."""
    if sys.platform != "linux" or not arguments or arguments[0] not in COMMANDS:
        return False
    if any(each.partition("=")[0] in ELSEWHERE for each in arguments):
        return False
    elsewhere = (ZERO_GPU, *(f"{PREFIX}{name}" for name in VARIABLES))
    return not any(environment.get(name) for name in elsewhere)


@contextmanager
def early_process(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> Iterator[BootedProcess | None]:
    if not is_likely(arguments, environment):
        yield None
        return
    from engine import boot_ahead, may_have_gpu

    with boot_ahead(on_cpu=not may_have_gpu()) as booted:
        yield booted
