"""The codec in training: what it learns is what the engine's own networks will do."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from training import model_config, state, train_codec
from training.codec import UNQUANTISED, Codec, SpectralLoss, synthesize, update_codebook
from training.graph_steps import Metrics
from training.growth import grown


def small_wave(frames: int = 6) -> torch.Tensor:
    torch.manual_seed(0)
    return 0.1 * torch.randn(2, frames * 1920)


def test_training_sounds_like_the_engines_encoder_and_decoder() -> None:
    torch.manual_seed(1)
    codec, wave = Codec().eval(), small_wave()
    codec.copy_codebooks()
    with torch.no_grad():
        trained = codec(wave, torch.full((2,), 15)).wave
        codes = codec.encoder.encode(wave)
        torch.testing.assert_close(codec.decoder(codes.transpose(1, 2)), trained)


def test_a_window_is_a_part_of_the_whole() -> None:
    """After the convolutions' past, sound from a window equals the same sound made whole."""
    torch.manual_seed(2)
    codec = Codec().eval()
    past = codec.decoder.receptive_frames
    latent = torch.randn(2, codec.decoder.config.codebook_dim, past + 6)
    with torch.no_grad():
        whole = synthesize(codec.decoder, latent)
        part = synthesize(codec.decoder, latent, torch.arange(4, past + 6))
    torch.testing.assert_close(
        part[:, past * 1920 :], whole[:, (past + 4) * 1920 :], atol=1e-6, rtol=1e-4
    )


def test_gradients_reach_the_encoder_and_words_stay_apart() -> None:
    codec, wave = Codec().train(), small_wave()
    codec(wave, torch.tensor([15, UNQUANTISED])).wave.square().sum().backward()
    spoken, sounds = codec._halves()
    assert codec.encoder.encoder.layers[0].conv.weight.grad.abs().sum() > 0
    assert sounds.input_proj.weight.grad.abs().sum() > 0
    assert spoken.input_proj.weight.grad is None  # codebook 0 hears only of phones


def test_a_codebook_finds_the_clusters() -> None:
    torch.manual_seed(3)
    book = Codec().codebooks()[0]
    centres = 5 * torch.randn(8, book.embed_sum.shape[1])
    for _ in range(150):
        vectors = centres[torch.randint(8, (512,))] + 0.05 * torch.randn(512, centres.shape[1])
        codes, _ = book.nearest(vectors[None])
        update_codebook(book, vectors, codes[0], torch.ones(()))
    nearest = torch.cdist(centres, book.table()).min(1).values
    assert float(nearest.max()) < 1.0


def test_the_spectral_loss_is_zero_on_itself_and_deaf_to_silence() -> None:
    loss, wave = SpectralLoss(torch.device("cpu")), small_wave()
    assert float(loss(wave, wave)) == 0
    hush = 1e-6 * torch.randn_like(wave)
    assert float(loss(hush, torch.zeros_like(wave))) < 0.05 < float(loss(wave, wave.flip(0)))


def test_warming_up_teaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_codec, "CROP", 2)
    trainer = train_codec.Trainer(torch.device("cpu"))
    before = [
        {name: value.clone() for name, value in network.state_dict().items()}
        for network in trainer.networks()
    ]
    seen: list[bool] = []

    def advance(real: torch.Tensor, phones: torch.Tensor, adversarial: bool) -> Metrics:
        seen.append(adversarial)
        return trainer.advance(real, phones, adversarial)

    trainer.warm_up(advance, 1)
    assert seen == [False, True]
    for network, old in zip(trainer.networks(), before, strict=True):
        assert all(torch.equal(value, old[name]) for name, value in network.state_dict().items())
    states = [each for part in trainer.optimizer.parts for each in part.state.values()]
    moments = [value for each in states for value in each.values()]
    assert moments
    moments += trainer.losses.lengths.values()
    assert all(float(value.abs().sum()) == 0 for value in moments)


def test_codes_settle_and_the_decoder_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(train_codec, "CROP", 2)
    torch.manual_seed(5)
    first = train_codec.Trainer(torch.device("cpu"))
    state.save(first.state(), tmp_path / "kept.pt")
    trainer = train_codec.Trainer(torch.device("cpu"), keep=tmp_path / "kept.pt", settle=0.5)
    trainer.resume(tmp_path / "kept.pt", restart=True)

    def moved(progress: float) -> dict[str, bool]:
        """Which weights a step changes."""
        before = {name: value.clone() for name, value in trainer.codec.state_dict().items()}
        trainer.set_learning_rate(progress)
        phones = torch.zeros(2, 2, 4, dtype=torch.long)
        trainer.advance(0.1 * torch.randn(2, 2 * 1920), phones, adversarial=False)
        after = trainer.codec.state_dict().items()
        return {name: not torch.equal(value, before[name]) for name, value in after}

    for progress in (0.0, 0.6):
        changed = moved(progress)
        books = [changed[name] for name in changed if "encoder" in name and "embed_sum" in name]
        assert not any(books[: train_codec.KEPT_BOOKS])
        assert all(books[train_codec.KEPT_BOOKS :]) == (progress < 0.5)
        assert changed["encoder.encoder.layers.0.conv.weight"] == (progress < 0.5)
        assert changed["decoder.pre_conv.conv.weight"]


def test_the_recipes_codec_goes_on_where_a_smaller_one_was() -> None:
    torch.manual_seed(4)
    sizes = model_config.codec()
    sizes["encoder_config"]["num_filters"] //= 2
    sizes["decoder_config"]["decoder_dim"] //= 2
    small, codec = Codec(sizes).eval(), train_codec.Trainer(torch.device("cpu")).codec.eval()
    codec.load_state_dict(grown(codec, small.state_dict()))
    wave, depth = small_wave(), torch.full((2,), 15)
    with torch.no_grad():
        wanted = small(wave, depth).wave
        assert 1e-2 < wanted.std() < wanted.abs().max() < 1
        torch.testing.assert_close(codec(wave, depth).wave, wanted, atol=1e-5, rtol=1e-4)
    assert any(
        a.shape != b.shape for a, b in zip(small.parameters(), codec.parameters(), strict=True)
    )


def test_nothing_shrinks() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        grown(nn.Linear(2, 2), nn.Linear(2, 3).state_dict())
