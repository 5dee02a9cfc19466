"""What an admission makes of a prompt: rows as ids, and slots written from one table.

The rows are spelled out here one by one, as the reference lays them out. Recordings are
played on the CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import engine.worker.model_runner as runner_module
from engine.checkpoints.checkpoint import LocalCheckpoint, SpecialIds
from engine.errors import StepFailed
from engine.model.talker import Talker
from engine.plan import Admit, AppendText, Prefill, Prompt, ReferencePrompt
from engine.worker.loading.model_loader import load_talker
from engine.worker.lru_cache import LRUCache
from engine.worker.model_runner import ModelRunner
from engine.worker.staging import StagingBuffer
from engine.worker.state.prompts import PromptRows
from engine.worker.state.row_metadata import RowMetadata
from engine.worker.talker.prefill import CPU_BLOCK, Prefiller, PromptPiece
from tests.engine.worker.driver import DRAWN, GREEDY
from tests.engine.worker.fake_graphs import fake_capture
from tests.support.golden_cases import speech_cases

FOLDER = next(case.folder for case in speech_cases() if "speaker" in case.asked)
CHECKPOINT = LocalCheckpoint(FOLDER)
IDS, WIDTH = CHECKPOINT.ids, CHECKPOINT._width
SLOTS, POSITIONS = 5, 160
CPU = torch.device("cpu")
quick = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module")
def talker() -> Talker:
    return load_talker(FOLDER, CPU, torch.float64)


@pytest.fixture(scope="module")
def runners(talker: Talker) -> Iterator[tuple[ModelRunner, ModelRunner]]:
    """A plain runner and one that replays."""
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        plain = made(talker)
        patch.setattr(runner_module, "graph_capture", lambda device: fake_capture)
        yield plain, made(talker)


def made(talker: Talker) -> ModelRunner:
    return ModelRunner(talker, IDS, SLOTS, POSITIONS, CPU, torch.float64)


def texts(most: int, least: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, 150), min_size=least, max_size=most).map(tuple)


@st.composite
def prompts(draw: st.DrawFn) -> Prompt:
    """Any prompt: whole, streamed or open, of any speaker."""
    layout = draw(st.sampled_from(["whole", "streamed"]))
    numbers = np.random.default_rng(draw(st.integers(0, 5)))
    frames = draw(st.sampled_from([0, 0, 1, 3, 20]))
    codes = numbers.integers(0, 30, (frames, 16))
    speaker = draw(st.sampled_from(["none", "preset", "vector", "trained"]))
    vector = numbers.random(WIDTH, np.float32) if speaker in ("vector", "trained") else None
    learned = numbers.random((draw(st.sampled_from([1, 8, 64])), WIDTH), np.float32)
    return Prompt(
        text_ids=draw(texts(40)),
        layout=layout,
        open_text=layout == "streamed" and draw(st.booleans()),
        instruct_ids=draw(texts(20)),
        role_ids=draw(texts(3, 3)),
        language_id=draw(st.sampled_from([None, 7])),
        speaker_id=9 if speaker == "preset" else None,
        vector=vector,
        rows=learned if speaker == "trained" else None,
        reference=ReferencePrompt(codes.tobytes().hex(), draw(texts(9)), codes) if frames else None,
    )


def spelled(talker: Talker, ids: SpecialIds, prompt: Prompt) -> tuple[list[Tensor], list[Tensor]]:
    """Every row of a prompt, and its text track."""

    def text(number: int) -> Tensor:
        return talker.embed_text(torch.tensor(number))

    def code(number: int) -> Tensor:
        return talker.embed_first(torch.tensor(number))

    language = prompt.language_id
    tags = [ids.nothink] if language is None else [ids.think]
    tags += [ids.think_bos] + ([] if language is None else [language]) + [ids.think_eos]
    column = [code(tag) for tag in tags]
    if prompt.speaker_id is not None:
        column.append(code(prompt.speaker_id))
    if prompt.vector is not None:
        column.append(torch.tensor(prompt.vector).double())
    if prompt.rows is not None:
        column += list(torch.tensor(prompt.rows).double())
    rows = [text(number) for number in (*prompt.instruct_ids, *prompt.role_ids)]
    rows += [text(ids.tts_pad) + each for each in column]
    rows.append(text(ids.tts_bos) + code(ids.codec_pad))
    reference = prompt.reference
    spoken = [*(reference.text_ids if reference else ()), *prompt.text_ids]
    track = [text(number) for number in spoken + [ids.tts_eos] * (not prompt.open_text)]
    codes = [code(ids.codec_bos)]
    if reference is not None:
        codes += list(talker.embed_codes(torch.tensor(reference.codes)))
    if prompt.layout == "whole":
        rows += [each + code(ids.codec_pad) for each in track]
        return rows + [text(ids.tts_pad) + each for each in codes], []
    beside = track + [text(ids.tts_pad)] * len(codes)
    return rows + [one + two for one, two in zip(codes, beside, strict=False)], track


def close(ours: Tensor, wanted: Sequence[Tensor] | Tensor) -> None:
    other = wanted if isinstance(wanted, Tensor) else torch.stack(list(wanted))
    torch.testing.assert_close(ours, other, rtol=0, atol=1e-11)


@quick
@given(prompt=prompts(), cuts=st.tuples(st.integers(0, 99), st.integers(0, 99)))
def test_ids_become_the_rows_of_the_reference(
    runners: tuple[ModelRunner, ModelRunner], prompt: Prompt, cuts: tuple[int, int]
) -> None:
    runner = runners[0]
    (laid,) = runner.embedder.layout([prompt])
    rows, track = spelled(runner.talker, IDS, prompt)
    assert len(laid) == len(prompt) == len(rows)
    start, stop = sorted(cut % (len(rows) + 1) for cut in cuts)
    close(laid.embed(0, len(rows)), rows)
    if start < stop:
        close(laid.embed(start, stop), rows[start:stop])
    if track:
        close(runner.talker.embed_text(torch.tensor(laid.track_ids)), track)
    body = laid.ids[0, laid.body :].tolist()
    assert body == [*laid.track_ids, *[IDS.tts_pad] * len(body)][: len(body)]


def admit(prompt: Prompt, row: int) -> tuple[int, Admit]:
    draw = replace(DRAWN if row % 2 else GREEDY, temperature=0.1 + row / 3, top_k=17 * row)
    return row, Admit(row, "x", prompt, draw, (row + 1) * 0x123456789ABC, 9, bool(row % 2))


@quick
@given(
    company=st.lists(prompts(), min_size=1, max_size=SLOTS),
    more=texts(30),
    cut=st.integers(0, 40),
    pieces=st.lists(st.integers(1, 30), max_size=3),
)
def test_replayed_admissions_are_plain_ones(
    runners: tuple[ModelRunner, ModelRunner],
    company: list[Prompt],
    more: tuple[int, ...],
    cut: int,
    pieces: list,
) -> None:
    """MixedBatch, text in two feeds where it is open, prompts in pieces."""
    for runner in runners:
        runner.clear()
        runner.admit([admit(prompt, row) for row, prompt in enumerate(company)])
        for row, prompt in enumerate(company):
            if prompt.open_text:
                runner.append_text(row, AppendText(row, more[:cut], False))
                runner.append_text(row, AppendText(row, more[cut:], True))
        start = 0
        for size in (*pieces, POSITIONS):
            due = [(row, start, len(prompt)) for row, prompt in enumerate(company)]
            stop = start + size
            runner.prefill((row, Prefill(row, start, min(stop, end))) for row, _, end in due
                         if start < end)  # fmt: skip
            start = stop
    for row, prompt in enumerate(company):
        whole = replace(prompt, text_ids=(*prompt.text_ids, *more * prompt.open_text))
        whole = replace(whole, open_text=False)
        rows, track = spelled(runners[0].talker, IDS, whole)
        for runner in runners:
            close(runner.row_states[row].prompt.embed(0, len(rows)), rows)
            assert runner.slots.texts[row] == runner.row_states[row].texts == len(track)
            if track:
                close(runner.slots.text[row, : len(track)], track)
    plain, replayed = (runner.slots for runner in runners)
    upto = range(len(company))
    for name in ("code", "position", "frame", "seen", "spoken", "sampling", "keys", "endless"):
        assert torch.equal(getattr(replayed, name)[upto], getattr(plain, name)[upto]), name
    close(replayed.hidden[upto], plain.hidden[upto])


@pytest.fixture(scope="module")
def single() -> Iterator[ModelRunner]:
    """A runner in float32, in which sums depend on their order."""
    with torch.inference_mode():
        talker = load_talker(FOLDER, CPU, torch.float32)
        yield ModelRunner(talker, IDS, SLOTS, POSITIONS, CPU, torch.float32)


@quick
@given(prompt=prompts(), cuts=st.lists(st.integers(1, 40), max_size=4))
def test_a_prompt_is_the_same_to_the_bit_however_it_is_cut(
    single: ModelRunner, prompt: Prompt, cuts: list[int]
) -> None:
    found = []
    for sizes in ([], cuts):
        single.clear()
        single.admit([admit(prompt, 0)])
        start = 0
        for size in (*sizes, POSITIONS):
            stop = min(start + size, len(prompt))
            if start < stop:
                single.prefill([(0, Prefill(0, start, stop))])
            start = stop
        slots = single.slots
        found.append([slots.hidden[0].clone(), slots.code[0].clone()])
        found[-1] += [each[:, 0, :, : len(prompt)].clone() for each in slots.cache.tensors]
    for whole, cut in zip(*found, strict=True):
        assert torch.equal(whole, cut)


@quick
@given(company=st.dictionaries(st.integers(0, SLOTS - 1), prompts(), min_size=1))
def test_replayed_slots_are_plain_ones_and_nothing_else_is_touched(
    talker: Talker, runners: tuple[ModelRunner, ModelRunner], company: dict[int, Prompt]
) -> None:
    """Every tensor, whatever was there before; but the spare row, where padding's text goes."""
    for runner in runners:
        runner.clear()
        for at, tensor in enumerate(runner.slots.tensors):
            tensor.copy_(torch.full_like(tensor, 1 + at % 2))
        runner.admit([admit(prompt, row) for row, prompt in company.items()])
    plain, replayed = ([each.clone() for each in runner.slots.tensors] for runner in runners)
    for one, two in zip(plain, replayed, strict=True):
        axis = int(one.dim() == 5)  # the cache's layers come first
        one, two = one.movedim(axis, 0), two.movedim(axis, 0)
        close(two[:SLOTS].double(), one[:SLOTS].double())
    slots = runners[0].slots
    for row, prompt in company.items():
        assert slots.position[row] == len(prompt)
        assert slots.frame[row] == 0
        assert not slots.seen[row].any()
    for row in {*range(SLOTS)} - company.keys():
        assert slots.seen[row].all()
        assert slots.frame[row] == 2


def test_text_that_a_slot_cannot_hold_is_refused_before_anything_is_written(
    runners: tuple[ModelRunner, ModelRunner],
) -> None:
    fine = Prompt(text_ids=(1, 2), layout="whole", role_ids=(3,))
    long = replace(fine, layout="streamed", text_ids=(1,) * POSITIONS)
    for runner in runners:
        runner.clear()
        before = [tensor.clone() for tensor in runner.slots.tensors]
        with pytest.raises(StepFailed, match="text"):
            runner.admit([admit(fine, 0), admit(long, 1)])
        assert not runner.row_states
        for tensor, was in zip(runner.slots.tensors, before, strict=True):
            assert torch.equal(tensor, was)


def test_a_voice_is_embedded_once(
    runners: tuple[ModelRunner, ModelRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of voices that were used of late are kept."""
    embedder, heard = runners[0].embedder, []
    row = embedder._rows
    monkeypatch.setattr(embedder, "_rows", lambda voice: (heard.append(voice[0, 0]), row(voice))[1])
    monkeypatch.setattr(embedder, "_cache", LRUCache(2))
    voices = [np.full(WIDTH, number, np.float32) for number in range(3)]
    for number in (0, 1, 0, 2, 0, 1):
        prompt = Prompt(text_ids=(), layout="whole", vector=voices[number].copy())
        (laid,) = embedder.layout([prompt])
        ((_, rows),) = laid.given
        close(rows[0], torch.full((WIDTH,), float(number), dtype=torch.float64))
    assert heard == [0, 1, 2, 1]


@pytest.mark.parametrize("played", [False, True])
def test_tables_are_cut_and_filled_up(played: bool) -> None:
    seen: list[list[list[int]]] = []
    work = StagingBuffer(lambda table: seen.append(table.tolist()), 2, (1, 4), 9, CPU,
                   fake_capture if played else None)  # fmt: skip
    table = np.arange(12).reshape(6, 2)
    work(table)
    work(table[:1])
    rows = table.tolist()
    filled = [[*rows[4:], [9, 0], [9, 0]], rows[:1]]
    assert seen == ([rows[:4], *filled] if played else [rows, rows[:1]])


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        self.names[func.name()] += 1
        return func(*args, **(kwargs or {}))


def test_an_admission_is_few_operations(talker: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is some 10 µs or more of the host, which first sounds wait for."""

    def silent(work: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: None

    monkeypatch.setattr(runner_module, "graph_capture", lambda device: silent)
    prompt = Prompt(text_ids=(4,) * 30, layout="whole", role_ids=(1, 2, 3), speaker_id=9)
    with torch.inference_mode():
        runner = made(talker)
        monkeypatch.setattr(runner.decoder, "timings", lambda usual: {})
        runner.warm()
        with Counting() as count:
            runner.admit([admit(prompt, 0), admit(prompt, 1)])
            runner.prefill([(row, Prefill(row, 0, len(prompt))) for row in range(2)])
    assert sum(count.names.values()) <= 8, count.names


@torch.inference_mode()
def test_on_a_cpu_a_prompt_shares_no_product_with_those_that_come_with_it(talker: Talker) -> None:
    """Sums of a batch have another order on some threads: a draw could depend on the company."""
    step = ModelRunner(talker, IDS, SLOTS, POSITIONS, CPU, torch.float64).step
    seen: list[tuple[int, ...]] = []
    run = step.run
    step.run = lambda x, *rest: seen.append(tuple(x.shape[:2])) or run(x, *rest)  # type: ignore
    numbers = np.random.default_rng(0)
    pieces = [
        PromptPiece(row, PromptRows(talker, numbers.integers(0, 9, (2, 99)), (), 99, ()), 0, stop)
        for row, stop in enumerate((CPU_BLOCK, CPU_BLOCK, 2 * CPU_BLOCK + 9))
    ]
    Prefiller(step, RowMetadata(SLOTS))(pieces)
    assert seen == [(1, CPU_BLOCK)] * 4  # what is left of the last comes with the next piece
