"""The codec in training: what it learns is what the engine's own networks will do."""

from __future__ import annotations

import pytest
import torch

from training import train_codec
from training.codec import UNQUANTISED, Codec, SpectralLoss, grown, learn


def small_wave(frames: int = 6) -> torch.Tensor:
    torch.manual_seed(0)
    return 0.1 * torch.randn(2, frames * 1920)


def test_training_sounds_like_the_engines_encoder_and_decoder() -> None:
    torch.manual_seed(1)
    codec, wave = Codec().eval(), small_wave()
    codec.share_tables()
    with torch.no_grad():
        trained = codec(wave, torch.full((2,), 15)).wave
        codes = codec.encoder.encode(wave)
        torch.testing.assert_close(codec.decoder(codes.transpose(1, 2)), trained)


def test_a_window_is_a_part_of_the_whole() -> None:
    """After the convolutions' past, sound from a window equals the same sound made whole."""
    torch.manual_seed(2)
    codec, wave = Codec().eval(), small_wave(12)
    depth = torch.full((2,), 15)
    with torch.no_grad():
        whole = codec(wave, depth).wave
        part = codec(wave, depth, torch.arange(4, 12)).wave
    torch.testing.assert_close(part[:, 5 * 1920 :], whole[:, 9 * 1920 :], atol=1e-4, rtol=1e-3)


def test_rows_heard_apart_are_two_halves_that_were_heard_alone() -> None:
    torch.manual_seed(5)
    codec, wave = Codec().eval(), small_wave(8)
    codec.share_tables()
    with torch.no_grad():
        made = codec(wave, torch.full((2,), 15), apart=1).wave
        halves = [codec.encoder.encode(half) for half in wave[:1].chunk(2, 1)]
        parted, whole = torch.cat(halves, 1), codec.encoder.encode(wave[1:])
        wanted = codec.decoder(torch.cat((parted, whole)).transpose(1, 2))
    assert not torch.equal(parted, codec.encoder.encode(wave[:1]))
    torch.testing.assert_close(made, wanted)


@pytest.mark.parametrize("begins", [False, True])
def test_beginnings_are_looked_at_from_the_first_sample(begins: bool) -> None:
    trainer = train_codec.Trainer(torch.device("cpu"), decoder_only=True)
    windows = [trainer.window(64, begins) for _ in range(20)]
    assert all(window.diff().unique().tolist() == [1] for window in windows)
    lengths = {len(window) for window in windows}
    assert lengths == {train_codec.HEARD - begins * train_codec.WARM}
    starts = {int(window[0]) for window in windows}
    assert starts == {0} if begins else len(starts) > 5


def test_gradients_reach_the_encoder_and_words_stay_apart() -> None:
    codec, wave = Codec().train(), small_wave()
    codec(wave, torch.tensor([15, UNQUANTISED])).wave.square().sum().backward()
    said, sounds = codec._halves()
    assert codec.encoder.encoder.layers[0].conv.weight.grad.abs().sum() > 0
    assert sounds.input_proj.weight.grad.abs().sum() > 0
    assert said.input_proj.weight.grad is None  # codebook 0 hears only of phones


def test_a_codebook_finds_the_clusters() -> None:
    torch.manual_seed(3)
    book = Codec().books()[0]
    centres = 5 * torch.randn(8, book.embed_sum.shape[1])
    for _ in range(150):
        vectors = centres[torch.randint(8, (512,))] + 0.05 * torch.randn(512, centres.shape[1])
        codes, _ = book.nearest(vectors[None])
        learn(book, vectors, codes[0])
    nearest = torch.cdist(centres, book.table()).min(1).values
    assert float(nearest.max()) < 1.0


def test_the_spectral_loss_is_zero_on_itself_and_deaf_to_silence() -> None:
    loss, wave = SpectralLoss(torch.device("cpu")), small_wave()
    assert float(loss(wave, wave)) == 0
    hush = 1e-6 * torch.randn_like(wave)
    assert float(loss(hush, torch.zeros_like(wave))) < 0.05 < float(loss(wave, wave.flip(0)))


@pytest.mark.parametrize("begins", [False, True])
def test_a_decoder_alone_changes_how_codes_sound_and_not_which_they_are(
    monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    monkeypatch.setattr(train_codec, "HEARD", 4)
    monkeypatch.setattr(train_codec, "WARM", 1)
    torch.manual_seed(4)
    trainer, wave = train_codec.Trainer(torch.device("cpu"), decoder_only=True), small_wave(6)
    before = {name: value.clone() for name, value in trainer.codec.state_dict().items()}
    trainer.rate(0.5)
    trainer.advance(wave, torch.zeros(2, 6, 4, dtype=torch.long), True, begins)
    changed = {
        name.split(".")[0]
        for name, value in trainer.codec.state_dict().items()
        if not torch.equal(value, before[name])
    }
    assert changed == {"decoder"}


def test_a_wider_codec_goes_on_where_the_smaller_one_was() -> None:
    torch.manual_seed(3)
    small, wide = Codec().eval(), Codec(width=384).eval()
    wide.load_state_dict(grown(wide, small.state_dict()))
    wave, depth = small_wave(), torch.full((2,), 15)
    with torch.no_grad():
        torch.testing.assert_close(wide(wave, depth).wave, small(wave, depth).wave)
    more = Codec(codes=512)
    more.load_state_dict(grown(more, small.state_dict()))
    for old, new in zip(small.books(), more.books(), strict=True):
        torch.testing.assert_close(new.table()[:256], old.table())
        assert not torch.equal(new.table()[256:], old.table())
