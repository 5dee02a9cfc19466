"""Requests become sequences, whatever happens to the models meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine import EngineSettings, Preset, SpeechRequest
from engine.plan import Prompt
from engine.requests.input_processor import InputProcessor
from engine.testing import FakeCheckpoint


class Watched(FakeCheckpoint):
    """Calls `look` whenever a prompt is made."""

    look: Callable[[], None]

    def prompt(self, *values: Any) -> Prompt:
        self.look()
        return super().prompt(*values)


@pytest.mark.parametrize("open_text", [False, True])
def test_a_model_may_be_exchanged_while_a_request_is_read(open_text: bool) -> None:
    checkpoint = Watched()
    processor = InputProcessor({"fake": checkpoint}, EngineSettings(), lambda: 0.0)

    def exchange() -> None:
        processor.checkpoints = {}

    object.__setattr__(checkpoint, "look", exchange)
    request = SpeechRequest("Hello there.", Preset("ryan"), open_text=open_text)
    assert processor.process(request).sequence.talker == "fake"
