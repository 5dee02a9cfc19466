"""Training that was stopped continues exactly."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import torch

from tests.training.batching.test_batches import UTTERANCES, make_batcher, make_dataset
from tests.training.small import small_talker_config
from training import model_config, optimizers, state, train_codec, train_loop, train_talker

CPU = torch.device("cpu")


@pytest.fixture
def small_talker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_config, "talker_config", small_talker_config)


def same(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


@pytest.mark.usefixtures("small_talker")
def test_the_talker_goes_on_exactly(tmp_path: Path) -> None:
    torch.manual_seed(0)
    batcher = make_batcher(make_dataset())

    def step(trainer: train_talker.Trainer) -> None:
        trainer.set_learning_rate(0.5)
        trainer.advance(
            *batcher.draw(UTTERANCES // 8, False, 48, batcher.order).tensors(), frames=8
        )
        trainer.step += 1

    first = train_talker.Trainer(CPU)
    step(first)
    state.save(first.state(), tmp_path / "talker.pt")
    step(first)
    second = train_talker.Trainer(CPU)
    second.resume(tmp_path / "talker.pt", restart=False)
    step(second)
    assert second.step == first.step
    assert same(first.talker, second.talker)


def test_weights_alone_begin_a_schedule_of_their_own(tmp_path: Path) -> None:
    torch.manual_seed(0)
    first, second = train_talker.Trainer(CPU), train_talker.Trainer(CPU)
    first.step, first.seconds = 7, 70.0
    state.save(first.state(), tmp_path / "whole.pt")
    state.save_weights(tmp_path / "whole.pt", tmp_path / "small.pt")
    sizes = [(tmp_path / name).stat().st_size for name in ("small.pt", "whole.pt")]
    assert sizes[0] < 0.6 * sizes[1]
    pieces = state.split(tmp_path / "small.pt", tmp_path / "pieces")
    assert len(pieces) > 1
    state.join(tmp_path / "pieces", "small.pt", tmp_path / "again.pt")
    second.resume(tmp_path / "again.pt", restart=False)
    assert (second.step, second.seconds) == (0, 0.0)
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_the_codec_goes_on_exactly(tmp_path: Path) -> None:
    torch.manual_seed(0)
    real, phones = 0.1 * torch.randn(1, 5 * 1920), torch.randint(40, (1, 5, 4))

    def step(trainer: train_codec.Trainer) -> None:
        trainer.set_learning_rate(0.5)
        trainer.advance(real, phones, adversarial=trainer.step > 0)
        trainer.step += 1

    first = train_codec.Trainer(CPU)
    step(first)
    state.save(first.state(), tmp_path / "codec.pt")
    step(first)
    second = train_codec.Trainer(CPU)
    second.resume(tmp_path / "codec.pt", restart=False)
    step(second)
    assert same(first.codec, second.codec)
    assert same(first.losses.discriminators, second.losses.discriminators)
    assert same(first.losses.recognizer, second.losses.recognizer)


@pytest.mark.parametrize(("exists", "restart"), [(False, False), (True, False), (True, True)])
def test_steps_are_captured_ahead_unless_an_optimizer_is_restored(
    tmp_path: Path, exists: bool, restart: bool
) -> None:
    """A captured step goes on with the moments that it was captured with."""
    path = tmp_path / "state.pt"
    if exists:
        path.touch()
    args = argparse.Namespace(state=path, restart=restart)
    assert train_loop.is_fresh(args) == (restart or not exists)


@pytest.mark.parametrize("end", [0.0, 0.02, 0.2])
def test_the_rate_warms_up_and_falls_to_its_end(end: float) -> None:
    rates = [optimizers.rate_factor(step, 100, step / 1000, end) for step in range(1500)]
    assert rates[0] < 0.02
    assert max(rates) == max(rates[90:120]) <= 1
    assert rates[120:] == sorted(rates[120:], reverse=True)
    assert rates[1000:] == pytest.approx([end] * 500)


def test_clock_leaves_out_the_time_a_process_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(state.time, "monotonic", lambda: now)
    clock = state.Clock(7.0)
    now += 2.0
    assert clock.tick() == 9.0
    now += 3600.0
    assert clock.tick() == 9.0 + state.PAUSE


def test_the_mean_of_states_has_what_all_of_them_have(tmp_path: Path) -> None:
    here = {"talker": {"a": torch.ones(2), "b": torch.ones(3)}, "phones": {}, "step": 3}
    there = {"talker": {"a": 5 * torch.ones(2).half(), "b": torch.ones(4)}, "step": 9}
    for name, each in (("here", here), ("there", there)):
        state.save(each, tmp_path / f"{name}.pt")
    state.save_mean([(tmp_path / "here.pt", 3), (tmp_path / "there.pt", 1)], tmp_path / "mean.pt")
    found = state.load(tmp_path / "mean.pt")
    assert found.keys() == {"talker"}
    assert found["talker"].keys() == {"a"}
    assert found["talker"]["a"].tolist() == [2.0, 2.0]
