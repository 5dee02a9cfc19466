"""The engine's side of two processes: what arrives late for a request is no fault."""

from __future__ import annotations

from typing import Any

from engine.remote.process import ProcessHost


class Ending(dict[int, Any]):
    """Requests of which each ends as soon as somebody has seen that it is there."""

    def __contains__(self, id: object) -> bool:
        return self.pop(id, None) is not None  # type: ignore[call-overload]


class Listening:
    def cancel(self, sequence: object, outbox: object) -> None: ...
    def add_text(self, sequence: object, piece: object) -> None: ...


def test_a_request_that_ends_while_something_comes_for_it_is_no_fault() -> None:
    host = ProcessHost(None)  # type: ignore[arg-type]
    host.engine = Listening()  # type: ignore[assignment]
    host._open = Ending({1: (None, None), 2: (None, None)})
    for id in (1, 2, 3):
        host.append(id, None)  # type: ignore[arg-type]
        host.cancel(id)
