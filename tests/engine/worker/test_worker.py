"""A slot's speech depends on its own prompt, settings and seed, and nothing else.

All in float64 on the golden checkpoints, driven by written plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.plan import Admit, AppendText, ResolvedSampling
from engine.types import Clone
from engine.worker.worker import TorchWorker
from tests.engine.worker.driver import (
    DRAWN,
    GREEDY,
    Speech,
    Voice,
    admission,
    advance,
    begin,
    speak,
    step,
    synchronize,
)
from tests.support.golden_cases import Case, speech_cases

CASES = speech_cases()
STREAMED = [case for case in CASES if case.layout == "streamed"]
FRAMES = 4
quick = settings(max_examples=8, deadline=None)

DRAWS = st.builds(
    ResolvedSampling,
    greedy=st.booleans(),
    temperature=st.floats(0.3, 2),
    top_k=st.sampled_from([0, 1, 20, 50, 64, 200]),
    top_p=st.floats(0.3, 1),
    repetition_penalty=st.floats(1, 2),
    predictor_greedy=st.booleans(),
    predictor_temperature=st.floats(0.3, 2),
    predictor_top_k=st.sampled_from([0, 1, 50]),
    predictor_top_p=st.floats(0.3, 1),
)


@dataclass(frozen=True)
class Wish:
    """A request in a property: all that its speech may depend on."""

    case: Case
    draw: ResolvedSampling
    seed: int

    def admit(self, worker: TorchWorker, slot: int) -> Admit:
        name = self.case.folder.name
        prompt = self.case.prompt(worker._checkpoints[name])
        return admission(worker, prompt, self.draw, slot, self.seed, FRAMES, name)


WISHES = st.builds(Wish, st.sampled_from(CASES), DRAWS, st.integers(0, 2**63 - 1))


def alone(worker: TorchWorker, wish: Wish, slot: int = 0, pieces: Sequence[int] = ()) -> Speech:
    voice = Voice(wish.admit(worker, slot), pieces)
    begin(worker, voice)
    return synchronize(worker, [voice])[0]


def assert_same(one: Speech, other: Speech) -> None:
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.pcm, other.pcm)
    assert one.ended == other.ended


@quick
@given(wishes=st.lists(WISHES, min_size=2, max_size=4), waits=st.lists(st.integers(0, 3)))
def test_company_changes_nothing(exact: TorchWorker, wishes: list[Wish], waits: list[int]) -> None:
    """Other sequences join and leave while one runs, on any talker."""
    voices = [Voice(wish.admit(exact, slot)) for slot, wish in enumerate(wishes)]
    joined: list[Voice] = []
    for voice, wait in zip(voices, [*waits, 0, 0, 0, 0], strict=False):
        for _ in range(wait):
            advance(exact, joined)
        begin(exact, voice)
        joined.append(voice)
    for wish, speech in zip(wishes, synchronize(exact, voices), strict=True):
        assert_same(speech, alone(exact, wish))


def test_how_many_are_ranked_for_neighbours_changes_nothing(exact: TorchWorker) -> None:
    """The best of two logits that are one number in float32, ranked alone and among all."""
    (case,) = (each for each in CASES if (each.folder.name, each.name) == ("base-1b7", "x_vector"))
    free = ResolvedSampling(False, 1, 0, 1, 1, False, 1, 0, 1)
    strict = ResolvedSampling(False, 1.25, 20, 0.75, 2, False, 1, 1, 1)
    wishes = [Wish(case, strict, 44), Wish(case, free, 0)]
    both = [Voice(wish.admit(exact, slot)) for slot, wish in enumerate(wishes)]
    for voice in both:
        begin(exact, voice)
    assert_same(synchronize(exact, both)[0], alone(exact, wishes[0]))


@quick
@given(wish=WISHES, slot=st.integers(1, 3))
def test_the_slot_changes_nothing(exact: TorchWorker, wish: Wish, slot: int) -> None:
    assert_same(alone(exact, wish, slot), alone(exact, wish))


def test_the_seed_changes_what_is_drawn(exact: TorchWorker) -> None:
    made = [alone(exact, Wish(CASES[0], DRAWN, seed)).codes for seed in range(3)]
    assert len({codes.tobytes() for codes in made}) == 3


@quick
@given(wish=WISHES, pieces=st.lists(st.integers(1, 20), max_size=6))
def test_a_prompt_in_pieces_is_the_whole_prompt(
    exact: TorchWorker, wish: Wish, pieces: list[int]
) -> None:
    assert_same(alone(exact, wish, pieces=pieces), alone(exact, wish))


@quick
@given(wishes=st.lists(WISHES, min_size=2, max_size=4))
def test_who_comes_in_the_same_step_changes_nothing(exact: TorchWorker, wishes: list[Wish]) -> None:
    """Prompts of any lengths, of any talkers, admitted and run together."""
    voices = [Voice(wish.admit(exact, slot)) for slot, wish in enumerate(wishes)]
    admit = tuple(voice.admit for voice in voices)
    pieces = tuple(piece for voice in voices for piece in voice.prefills())
    step(exact, admit=admit, prefill=pieces)
    for wish, speech in zip(wishes, synchronize(exact, voices), strict=True):
        assert_same(speech, alone(exact, wish))


@quick
@given(
    case=st.sampled_from(STREAMED),
    seed=st.integers(0, 99),
    sizes=st.lists(st.integers(0, 5), max_size=6),
    ahead=st.integers(0, 6),
)
def test_text_fed_while_speaking_is_the_text_whole(
    exact: TorchWorker, case: Case, seed: int, sizes: list[int], ahead: int
) -> None:
    wish = Wish(case, DRAWN, seed)
    voice = typed(exact, wish.admit(exact, 0), sizes, ahead)
    assert_same(synchronize(exact, [voice])[0], alone(exact, wish))


def typed(worker: TorchWorker, whole: Admit, sizes: list[int], ahead: int) -> Voice:
    """Append a text in pieces and decode as early as possible: a row or frame waits for its text.

    `ahead`: how much more text is appended than the next frame needs.
    """
    ids, reference = list(whole.prompt.text_ids), whole.prompt.reference
    voice = Voice(replace(whole, prompt=replace(whole.prompt, text_ids=(), open_text=True)))
    rows = 1 + (len(reference.codes) if reference else 0)  # of the prompt that want text
    texts, ready = len(reference.text_ids) if reference else 0, False
    step(worker, admit=(voice.admit,))
    for size in (*sizes, len(ids)):
        while ready and not voice.done and texts > rows + len(voice.frames) + ahead:
            advance(worker, [voice])
        piece, ids = tuple(ids[:size]), ids[size:]
        texts += len(piece)
        step(worker, append_text=(AppendText(voice.slot, piece, closed=not ids),))
        if not ready and (texts >= rows or not ids):
            step(worker, prefill=tuple(voice.prefills()))
            ready = True
        if not ids:
            break
    return voice


@quick
@given(wish=WISHES, chunks=st.lists(st.integers(1, FRAMES), min_size=1, max_size=4))
def test_how_sound_is_cut_changes_nothing(
    exact: TorchWorker, wish: Wish, chunks: list[int]
) -> None:
    voice = Voice(wish.admit(exact, 0), chunks=chunks)
    begin(exact, voice)
    assert_same(synchronize(exact, [voice])[0], alone(exact, wish))


@quick
@given(wish=WISHES, slot=st.integers(0, 3))
def test_nothing_is_left_of_a_slots_last_owner(exact: TorchWorker, wish: Wish, slot: int) -> None:
    clean = alone(exact, wish, slot)
    poison(exact, slot)
    assert_same(alone(exact, wish, slot), clean)


def poison(worker: TorchWorker, row: int) -> None:
    """Overwrite a row's state in every model runner and the codec, finite where it is masked."""
    size = worker._settings.max_num_seqs
    with torch.inference_mode():
        for runner in worker._runners.values():
            slots = runner.slots
            for tensor in slots.cache.tensors:
                tensor[:, row] = 1e3
            for tensor in slots.tensors[: -len(slots.cache.tensors)]:
                tensor[row] = torch.nan if tensor.is_floating_point() else 1
        for tensor in worker._codec()._state.tensors:
            tensor[row::size] = torch.nan if tensor.is_floating_point() else 5


def test_a_vector_is_a_vector_wherever_it_comes_from(exact: TorchWorker) -> None:
    """A preset given by its vector sounds as the preset itself."""
    case = next(case for case in CASES if "speaker" in case.asked and "instruct" not in case.asked)
    loaded = exact._checkpoints[case.folder.name]
    ids = loaded.text_ids(case.asked["text"])
    vector = Clone(loaded.speaker_vector(case.asked["speaker"]))
    language = next(iter(loaded.capabilities.languages))
    named = loaded.prompt(ids, case.voice, language, "whole", False)
    given_ = loaded.prompt(ids, vector, language, "whole", False)
    talker = case.folder.name
    assert_same(
        speak(exact, named, draw=DRAWN, max_frames=FRAMES, talker=talker),
        speak(exact, given_, draw=DRAWN, max_frames=FRAMES, talker=talker),
    )


def test_an_endless_slot_never_ends(exact: TorchWorker) -> None:
    for case in CASES:
        if not case.asked["ended_by_eos"]:
            continue
        name = case.folder.name
        prompt = case.prompt(exact._checkpoints[name])
        admit = admission(exact, prompt, GREEDY, max_frames=case.frames + 4, talker=name)
        voice = Voice(replace(admit, ignore_end=True))
        begin(exact, voice)
        assert len(synchronize(exact, [voice])[0].codes) == case.frames + 4


@pytest.mark.parametrize("case", STREAMED, ids=str)
def test_a_reference_is_listened_to_once(
    exact: TorchWorker, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = case.prompt(exact._checkpoints[case.folder.name])
    if prompt.reference is None:
        return
    name, frames = case.folder.name, []
    first = speak(exact, prompt, max_frames=2, talker=name)
    select_codec = exact._codec()._stepper
    monkeypatch.setattr(
        exact._codec(),
        "_stepper",
        lambda *work: (frames.append(work[1].shape[1]), select_codec(*work))[1],
    )
    assert_same(speak(exact, prompt, max_frames=2, talker=name), first)
    assert frames == [1, 1]


def test_a_reference_leaves_nothing_to_the_next(exact: TorchWorker) -> None:
    case = next(case for case in STREAMED if "ref_text" in case.asked)
    reference = case.prompt(exact._checkpoints[case.folder.name]).reference
    assert reference is not None
    other = replace(reference, codes=reference.codes[::-1].copy())
    with torch.inference_mode():
        first, between, again = map(exact._codec()._decode_reference, (reference, other, reference))
    for one, two in zip(first.tensors, again.tensors, strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(first.pasts, between.pasts)
