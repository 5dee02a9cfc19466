"""The codec in a thread of its own beside the steps of a CPU: the same audio, in the same order."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
import torch
from torch import Tensor

from engine.model.codec import CodecDecoder
from engine.plan import ReferencePrompt
from engine.worker.codec.codec_graphs import CpuStep, EagerCodec
from engine.worker.codec.codec_runner import CodecRunner
from engine.worker.codec.cpu_decoder import CpuDecoder, PackedCodec
from engine.worker.lru_cache import LRUCache
from engine.worker.step_output import PendingStep, StepAudio, StepOutput, StepTimer
from tests.engine.worker.codec.test_cpu_decoder import SHAPE, random_codes
from tests.support.random_codec import random_codec
from tests.support.serving import wait_until

SLOTS = 3


@pytest.fixture(scope="module")
def codec() -> CodecDecoder:
    return random_codec(SHAPE, 0.05)


def make_runner(codec: CodecDecoder) -> CodecRunner:
    step = CpuStep(CpuDecoder(PackedCodec(codec, "float32"), 1))
    return CodecRunner(step, SLOTS, LRUCache(1), torch.float32)


@pytest.fixture
def runner(codec: CodecDecoder) -> Iterator[CodecRunner]:
    made = make_runner(codec)
    yield made
    made.close()


class Gate:
    """Holds a runner's decoder until it is opened."""

    def __init__(self, runner: CodecRunner, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        decode = EagerCodec.__call__

        def held(
            own: EagerCodec, rows: Sequence[int], codes: Tensor, counts: Sequence[int]
        ) -> object:
            self.entered.set()
            assert self.open.wait(60)
            return decode(own, rows, codes, counts)

        monkeypatch.setattr(EagerCodec, "__call__", held)


def codes_of(frames: int, seed: int = 0) -> Tensor:
    return random_codes(1, frames, seed).transpose(1, 2).short()


def sound(audio: StepAudio) -> dict[int, list[int]]:
    output = StepOutput([], audio, {})
    step = PendingStep(0, output, StepTimer(torch.device("cpu")))
    assert step.result().audio_follows == audio.follows
    made = step.audio()
    assert step.audio_ready()
    return {slot: samples.tolist() for slot, samples in made.items()}


@torch.inference_mode()
def test_a_thread_makes_the_same_audio(codec: CodecDecoder) -> None:
    found = []
    for free in (0, 1):
        runner = make_runner(codec)
        runner.open([(0, None), (2, None)])
        made = []
        for seed, frames in enumerate((1, 2, 5)):
            work = [([2], codes_of(frames, seed), [frames]), ([0], codes_of(1, 9 + seed), [1])]
            audio = runner.decode(work, free)
            assert audio.follows == (free == 1)
            made.append(audio)
        found.append([sound(each) for each in made])
        assert runner.decode([], free).follows == (free == 1)
        runner.close()
    assert found[0] == found[1]
    assert {len(each) for step in found[0] for each in step.values()} == {
        frames * SHAPE.hop for frames in (1, 2, 5)
    }


@torch.inference_mode()
def test_one_step_s_audio_is_due_at_a_time(
    runner: CodecRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(runner, monkeypatch)
    first = runner.decode([([0], codes_of(1), [1])], 1)
    assert first.done is not None
    assert gate.entered.wait(60)
    with ThreadPoolExecutor(1) as others:
        second = others.submit(runner.decode, [([1], codes_of(1), [1])], 1)
        assert not second.done()
        assert not first.done.query()
        gate.open.set()
        assert list(sound(second.result(60))) == [1]
    assert first.done.query()


@torch.inference_mode()
def test_a_step_without_free_cores_decodes_after_the_thread(
    runner: CodecRunner, codec: CodecDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large talker that is loaded meanwhile takes all cores."""
    pieces, plain = [codes_of(3, seed) for seed in (1, 2)], make_runner(codec)
    wanted = [sound(plain.decode([([0], piece, [3])])) for piece in pieces]
    plain.close()
    gate = Gate(runner, monkeypatch)
    first = runner.decode([([0], pieces[0], [3])], 1)
    assert gate.entered.wait(60)
    monkeypatch.undo()
    with ThreadPoolExecutor(1) as others:
        second = others.submit(torch.inference_mode()(runner.decode), [([0], pieces[1], [3])], 0)
        wait([second], 0.2)  # long enough for one that does not wait
        gate.open.set()
        assert [sound(first), sound(second.result(60))] == wanted


@torch.inference_mode()
def test_a_slot_that_is_given_away_keeps_nothing_of_before(
    runner: CodecRunner, codec: CodecDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = make_runner(codec)
    fresh.open([(0, None)])
    wanted = sound(fresh.decode([([0], codes_of(4, 1), [4])]))
    fresh.close()
    gate = Gate(runner, monkeypatch)
    runner.open([(0, None)])
    runner.decode([([0], codes_of(3), [3])], 1)  # whoever asked for it has left
    assert gate.entered.wait(60)
    runner.open([(1, None)])  # another slot does not wait
    with ThreadPoolExecutor(1) as others:
        opened = others.submit(runner.open, [(0, None)])
        gate.open.set()
        opened.result(60)
    assert sound(runner.decode([([0], codes_of(4, 1), [4])], 1)) == wanted


@torch.inference_mode()
def test_an_error_is_its_own_step_s(runner: CodecRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = EagerCodec.__call__

    def broken(
        own: EagerCodec, rows: Sequence[int], codes: Tensor, counts: Sequence[int]
    ) -> object:
        if 0 in rows:
            raise RuntimeError("a kernel broke")
        return decode(own, rows, codes, counts)

    monkeypatch.setattr(EagerCodec, "__call__", broken)
    first = runner.decode([([0], codes_of(1), [1])], 1)
    assert list(sound(runner.decode([([1], codes_of(1), [1])], 1))) == [1]
    with pytest.raises(Exception, match="a kernel broke"):
        sound(first)


@torch.inference_mode()
def test_its_thread_ends_with_it(codec: CodecDecoder) -> None:
    before = set(threading.enumerate())
    runner = make_runner(codec)
    sound(runner.decode([([0], codes_of(1), [1])], 1))
    assert len(set(threading.enumerate()) - before) == 1
    runner.close()
    wait_until(lambda: set(threading.enumerate()) <= before)


@torch.inference_mode()
def test_a_reference_is_not_mixed_with_chunks_that_are_timed_for_another_talker(
    codec: CodecDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both take the row that no stream has."""
    runners = [make_runner(codec) for _ in range(2)]
    reference, prime = ReferencePrompt("one", (), codes_of(8)[0].numpy()), EagerCodec.prime
    runners[0].open([(0, reference)])
    with ThreadPoolExecutor(1) as loading:

        def primed(own: EagerCodec, row: int, codes: Tensor) -> None:
            prime(own, row, codes)
            chunk = loading.submit(torch.inference_mode()(runners[1].run_chunk), 4, 1)
            wait([chunk], 0.2)  # long enough for one that does not wait

        monkeypatch.setattr(EagerCodec, "prime", primed)
        runners[1].open([(0, reference)])
    work = [([0], codes_of(3, 1), [3])]
    assert sound(runners[0].decode(work)) == sound(runners[1].decode(work))
    for runner in runners:
        runner.close()


@torch.inference_mode()
def test_a_reference_is_decoded_on_all_threads_after_a_chunk_on_few(
    codec: CodecDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step runs meanwhile."""
    decoder = CpuDecoder(PackedCodec(codec, "float32"), 2)
    runner = CodecRunner(CpuStep(decoder), SLOTS, LRUCache(1), torch.float32)
    prime, found = EagerCodec.prime, []

    def primed(own: EagerCodec, row: int, codes: Tensor) -> None:
        found.append((decoder.team.most, runner.threads_at_work))
        prime(own, row, codes)

    monkeypatch.setattr(EagerCodec, "prime", primed)
    audio = runner.decode([([1], codes_of(6), [6])], 1)
    runner.open([(0, ReferencePrompt("one", (), codes_of(8)[0].numpy()))])
    assert found == [(2, 0)]
    assert list(sound(audio)) == [1]
    runner.close()
