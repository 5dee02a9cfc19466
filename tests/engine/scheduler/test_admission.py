"""What is known without a simulation of the queue is what the simulation says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.plan import Prompt, ResolvedSampling
from engine.requests.sequence import Sequence
from engine.scheduler.admission import Admission
from engine.testing import FakeCheckpoint
from engine.types import Preset, SamplingParams

CHECKPOINT = FakeCheckpoint()
SAMPLING: ResolvedSampling = CHECKPOINT.resolve_sampling(SamplingParams())


def sequence(id: int, tokens: int, runs: bool) -> Sequence:
    prompt: Prompt = CHECKPOINT.prompt(
        tuple(range(tokens)), Preset("ryan"), "auto", "whole", open_text=False
    )
    return Sequence(id, "fake", prompt, SAMPLING, 1, 0.0, "auto", 4000, placed=runs)


@given(
    runs=st.lists(st.booleans(), max_size=6),
    slots=st.integers(1, 8),
    token_frames=st.sampled_from([0.0, 0.5, 3.0]),
)
def test_nobody_waits_while_a_slot_is_left(
    runs: list[bool], slots: int, token_frames: float
) -> None:
    admission = Admission(slots=slots, step=0.02, token_frames=token_frames)
    ahead = [sequence(number, 5 + 3 * number, each) for number, each in enumerate(runs)]
    waiting = [each for each in ahead if not each.runs]
    *_, last = admission.starts([each for each in ahead if each.runs], waiting)
    assert admission.expected_wait(ahead) == last
    assert (last == 0.0) == (len(ahead) < slots)
