"""The decoder learns how codes sound, and leaves the codes as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from training import state, train_codec, train_decoder
from training.data.speech_format import FRAME, PHONE_STEP, PHONES_A_FRAME
from training.data.speech_pool import SpeechPool
from training.losses import wave_losses
from training.losses.discriminators import SpectrumDiscriminator
from training.losses.wave_losses import ADVERSARIAL_SAMPLES, SHARES, SPREAD, WaveLosses
from training.train_decoder import CodeTape, Trainer

CPU = torch.device("cpu")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in dict(WINDOW=6, CROP=5, DECODED=3, CONTEXT=1, ENCODED=2).items():
        monkeypatch.setattr(train_decoder, name, value)


def pool_of(folder: Path, frames: int) -> SpeechPool:
    random = np.random.default_rng(0)
    samples = (3000 * random.standard_normal(frames * FRAME)).astype(np.int16)
    labels = np.arange(frames * PHONES_A_FRAME)
    np.savez(
        folder / "00000.npz",
        samples=samples,
        phones=(labels % 40).astype(np.uint8),
        places=labels.astype(np.uint16),
        offsets=np.array([0, len(samples)]),
        meta=np.array('[{"text": "a", "speaker": 0, "style": 0}]'),
    )
    pool = SpeechPool(folder, 0.02, CPU)
    assert pool.refresh() == 1
    return pool


def test_drawn_waves_and_phones_belong_to_the_drawn_codes(tmp_path: Path, small: None) -> None:
    torch.manual_seed(0)
    trainer, pool = Trainer(CPU), pool_of(tmp_path, 20)
    trainer.codec.copy_codebooks()
    tape = CodeTape(trainer.codec, pool)
    tape.grow()
    assert len(tape.starts) == 3 * len(train_decoder.OFFSETS)
    whole = pool.samples.float() / 32767
    for from_start in (False, True):
        codes, real, phones = tape.draw(4, from_start)
        for row in range(4):
            place = (whole.unfold(0, 2 * FRAME, PHONE_STEP) - real[row]).abs().sum(1).argmin()
            first = 0 if from_start else train_decoder.CROP - 2
            begins = [
                (index, at)
                for index, start in enumerate(tape.starts.tolist())
                for at in range(2)
                if start + (at + first) * FRAME == place * PHONE_STEP
                and torch.equal(tape.codes[index, at : at + 5].T.long(), codes[row])
            ]
            assert begins
            assert torch.equal(phones[row], pool.phones[place : place + 8].long())


@pytest.mark.parametrize("from_start", [False, True])
def test_only_the_decoder_changes(tmp_path: Path, small: None, from_start: bool) -> None:
    torch.manual_seed(1)
    trainer, pool = Trainer(CPU), pool_of(tmp_path, 20)
    trainer.codec.copy_codebooks()
    tape = CodeTape(trainer.codec, pool)
    tape.grow()
    before = {name: value.clone() for name, value in trainer.codec.state_dict().items()}
    trainer.set_learning_rate(0.5)
    trainer.advance(*tape.draw(2, from_start), from_start=from_start)
    changed = {
        name.split(".")[0]
        for name, value in trainer.codec.state_dict().items()
        if not torch.equal(value, before[name])
    }
    assert changed == {"decoder"}
    tables = [name for name in before if name.endswith(("embedding_sum", "cluster_usage"))]
    assert all(torch.equal(trainer.codec.state_dict()[name], before[name]) for name in tables)


@pytest.mark.slow
def test_a_decoder_begins_with_a_codec_and_goes_on_exactly(tmp_path: Path, small: None) -> None:
    torch.manual_seed(2)
    state.save(train_codec.Trainer(CPU).state(), tmp_path / "codec.pt")
    first, pool = Trainer(CPU), pool_of(tmp_path, 20)
    first.start_from(tmp_path / "codec.pt")
    tape = CodeTape(first.codec, pool)
    tape.grow()
    drawn = tape.draw(2, False)

    def step(trainer: Trainer) -> None:
        trainer.set_learning_rate(0.5)
        trainer.advance(*drawn, from_start=False)
        trainer.step += 1

    step(first)
    state.save(first.state(), tmp_path / "decoder.pt")
    step(first)
    second = Trainer(CPU)
    second.resume(tmp_path / "decoder.pt", restart=False)
    step(second)
    pairs = zip(first.codec.parameters(), second.codec.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.slow
def test_every_loss_has_its_share_of_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    real, made = 0.1 * torch.randn(2, 2 * FRAME), 0.1 * torch.randn(2, 2 * FRAME)
    phones = torch.randint(40, (2, 8))
    losses = WaveLosses(CPU, torch.tensor(0.0), learn_phones=False)  # which nothing changes
    for name in SHARES:
        losses.reset()
        monkeypatch.setattr(
            wave_losses, "SHARES", {other: 0.7 * (other == name) for other in SHARES}
        )
        found, gradient = losses(made, real, phones, adversarial=True)
        assert found.keys() == SHARES.keys() | {"discriminators"}
        assert float(gradient.norm()) == pytest.approx(0.7 * wave_losses.LENGTH, rel=1e-4)
        if name == "spectral":
            after, _ = losses(made - 1e-3 * gradient.sign(), real, phones, adversarial=True)
            assert after[name] < found[name]  # it points the right way


def test_spectrograms_show_what_is_soft() -> None:
    """A tone 40 dB below another is not a hundredth of it, and its phase stays."""
    time = torch.arange(12_288)
    tones = torch.stack([level * torch.sin(0.3 * time) for level in (0.3, 0.003)])
    loud, soft = SpectrumDiscriminator(1024).image(tones).norm(dim=1).flatten(1).amax(1)
    assert 0.2 < float(soft / loud) < 0.3
    seen = SpectrumDiscriminator(1024).image(tones.requires_grad_())
    (gradient,) = torch.autograd.grad(seen.sum(), tones)
    assert gradient.isfinite().all()
    silent = SpectrumDiscriminator(1024).image(torch.zeros(1, 4096))
    assert float(silent.abs().max()) == 0


@pytest.mark.slow
def test_discriminators_learn_to_tell_noise_from_tones() -> None:
    torch.manual_seed(4)
    losses = WaveLosses(CPU, torch.tensor(1e-3), learn_phones=False)
    tone = 0.3 * torch.sin(torch.arange(2 * FRAME) * 0.05).repeat(2, 1)
    phones = torch.zeros(2, 8, dtype=torch.long)
    reports = []
    for _ in range(12):
        found, _ = losses(0.1 * torch.randn_like(tone), tone, phones, adversarial=True)
        reports.append(float(found["discriminators"]))
    assert reports[-1] < 0.5 * reports[0]


@pytest.mark.parametrize("seconds", [0.4, 0.8, 3.2])
def test_discriminators_see_the_same_pieces_of_both_waves(seconds: float) -> None:
    samples = int(seconds * 24_000)
    wave = torch.arange(2 * samples, dtype=torch.float64).view(2, samples)
    made, real = WaveLosses._random_pieces(wave, wave + 0.5)
    assert torch.equal(made + 0.5, real)
    assert torch.equal(made.diff(), torch.ones_like(made.diff()))  # each is one stretch of one wave
    assert len(made) == 2 * max(1, samples // SPREAD)
    assert made.shape[1] == min(ADVERSARIAL_SAMPLES, samples)
