"""The API's own tests, of everything that a client sees, against the cluster.

Those that reach into the server's engine stay with the server in one process.
"""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from tests.studio.api import test_compat
from tests.studio.api.routes import test_speech, test_voices
from tests.studio.api.websocket import test_websocket, test_websocket_faults

MODULES = (
    test_speech,
    test_voices,
    test_compat,
    test_websocket,
    test_websocket_faults,
)
OTHERWISE = {
    "test_every_answer_has_an_id",  # Serve takes any id of a client
    # The cluster has the voices that come with the program.
    "test_an_uploaded_voice_is_listed_spoken_with_and_deleted",
    "test_bad_uploads_are_refused",
}
INSIDE = {"engine", "slow", "serve", "monkeypatch"}  # fixtures of a server in this process


@pytest.fixture(autouse=True)
def _empty(library) -> None:
    """No test leaves voices to the next."""
    assert library.list() == ()


def _from(module: ModuleType) -> dict[str, object]:
    tests = inspect.getmembers(module, inspect.isfunction)
    return {
        name: each
        for name, each in tests
        if name.startswith("test_")
        and name not in OTHERWISE
        and "client" in (wanted := inspect.signature(each).parameters)
        and not INSIDE & set(wanted)
    }


for module in MODULES:
    globals().update(_from(module))
