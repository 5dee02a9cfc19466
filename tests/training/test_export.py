"""An exported checkpoint is one the engine reads, and it keeps its promised size."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine import read_capabilities
from engine.worker.loading.model_loader import load_codec, load_encoder, load_speaker, load_talker
from training import model_config, state, tokenizer
from training.batching.speaker_targets import speaker_targets
from training.codec import Codec
from training.data.speakers import NAMED
from training.data.text import Corpus
from training.export import set_preset_vectors, write
from training.train_speaker import SpeakerClassifier
from training.train_talker import Talker, init_weights, text_ids


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Codec, Talker]:
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("mini")
    sentences = ["The old man found a letter.", "Nobody saw the red lamp again."] * 40
    corpus = Corpus(sentences, sentences, ["lamp", "letter", "window"], [], [])
    tokenizer.save(tokenizer.train(corpus), root / "tokenizer")
    codec, talker = Codec().eval(), Talker(model_config.talker_config())
    init_weights(talker)
    set_preset_vectors(talker)
    write(root / "model", root / "tokenizer", codec, SpeakerClassifier().encoder, talker)
    return root / "model", codec, talker


def test_the_engine_reads_every_part(exported: tuple[Path, Codec, Talker]) -> None:
    folder, codec, talker = exported
    cpu = torch.device("cpu")
    loaded = load_talker(folder, cpu, torch.float32)
    rows = talker.model.codec_embedding.weight.detach()
    torch.testing.assert_close(
        loaded.model.codec_embedding.weight, rows, atol=1e-2, rtol=1e-2, check_stride=False
    )
    assert load_speaker(folder, cpu).config.embedding_dim == model_config.WIDTH
    wave = 0.1 * torch.randn(1, 5 * 1920)
    codes = load_encoder(folder, cpu).encode(wave)
    made = load_codec(folder, cpu, torch.float32)(codes.transpose(1, 2))
    assert made.shape == wave.shape
    with torch.no_grad():
        wanted = codec.decoder(codes.transpose(1, 2))
    torch.testing.assert_close(made, wanted, atol=2e-2, rtol=0)


def test_presets_have_their_target_vectors(exported: tuple[Path, Codec, Talker]) -> None:
    rows = exported[2].model.codec_embedding.weight.detach()
    for row, speaker in enumerate(NAMED):
        home = speaker_targets(torch.tensor(speaker.axes()))
        torch.testing.assert_close(rows[model_config.FIRST_SPEAKER + row], home)


def test_it_can_do_everything(exported: tuple[Path, Codec, Talker]) -> None:
    able = next(iter(read_capabilities([str(exported[0])]).values()))
    assert able.speakers == model_config.LISTED
    assert able.preset
    assert able.clone
    assert able.design
    assert able.instruct
    assert "english" in able.languages


def test_it_stays_below_64_megabytes(exported: tuple[Path, Codec, Talker]) -> None:
    size = sum(path.stat().st_size for path in exported[0].rglob("*") if path.is_file())
    assert size < 64e6


def test_the_roles_are_single_pieces(exported: tuple[Path, Codec, Talker]) -> None:
    from tokenizers import Tokenizer

    ids = text_ids(Tokenizer.from_file(str(exported[0] / "tokenizer.json")))
    assert len(ids.role) == 3
    assert len(ids.user) == 3
    assert len(ids.close) == 2


def test_a_state_survives_being_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "PIECE", 1000)
    state.save({"x": torch.arange(2000), "step": 7}, tmp_path / "all.pt")
    pieces = state.split(tmp_path / "all.pt", tmp_path / "pieces")
    assert len(pieces) > 3
    state.join(tmp_path / "pieces", "all.pt", tmp_path / "again.pt")
    again = state.load(tmp_path / "again.pt")
    assert again["step"] == 7
    assert torch.equal(again["x"], torch.arange(2000))
