"""The speaker loss distinguishes voices, is frozen, and has gradients for the decoder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from engine.model import mel
from training import state, train_codec
from training.losses.speaker_loss import Ear, mistaken, strange
from training.train_speaker import Trainee

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def ear(tmp_path_factory: pytest.TempPathFactory) -> Ear:
    torch.manual_seed(0)
    path: Path = tmp_path_factory.mktemp("ear") / "speaker.pt"
    state.save({"speaker": Trainee().state_dict()}, path)
    return Ear(path, CPU)


def test_voices_that_agree_cost_nothing() -> None:
    torch.manual_seed(1)
    voices = F.normalize(torch.randn(5, 64), dim=-1)
    assert float(strange(voices, voices)) == pytest.approx(0, abs=1e-5)
    assert float(mistaken(voices, voices)) < 0.05 < float(mistaken(voices.roll(1, 0), voices))
    assert float(strange(voices.roll(1, 0), voices)) > 0.5


def test_one_voice_twice_in_a_batch_is_no_mistake() -> None:
    torch.manual_seed(2)
    voices = F.normalize(torch.randn(4, 64), dim=-1)[[0, 0, 1, 2]]
    swapped = voices[[1, 0, 2, 3]]
    assert float(mistaken(swapped, voices)) == pytest.approx(float(mistaken(voices, voices)))


def test_a_decoder_hears_of_voices_and_the_ear_stays(
    ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_codec, "HEARD_OF_VOICES", 4)
    monkeypatch.setattr(train_codec, "WARM", 1)
    torch.manual_seed(3)
    before = [value.clone() for value in ear.state_dict().values()]
    trainer = train_codec.Trainer(CPU, True, ear, 1e-4)
    wave, phones = 0.1 * torch.randn(2, 6 * 1920), torch.zeros(2, 6, 4, dtype=torch.long)
    trainer.rate(0.5)
    told = trainer.advance(wave, phones, judged=False)
    assert told["strange"] > 0
    assert all(torch.equal(x, y) for x, y in zip(ear.state_dict().values(), before, strict=True))
    made = (0.1 * torch.randn(2, 3 * 1920)).requires_grad_()
    sum(ear(made, wave[:, : 3 * 1920])).backward()  # type: ignore[union-attr]
    assert made.grad is not None
    assert float(made.grad.abs().sum()) > 0


def test_the_ear_can_be_learned_through_after_somebody_only_listened(ear: Ear) -> None:
    """What a spectrum needs is made once, by whoever comes first."""
    mel._tensors.cache_clear()
    made = 0.1 * torch.randn(2, 3 * 1920)
    with torch.inference_mode():
        ear(made, made)
    made.requires_grad_()
    ear(made, made.detach().roll(1, 0))[0].backward()
    assert made.grad is not None
