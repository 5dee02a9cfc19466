"""An adapter of zeros is none, a merged one is the same as an attached one, and what is exported is
a checkpoint in the published layout that speaks with the voice as a preset."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from engine import open_engine
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.errors import CheckpointError, InvalidVoice, NotSaved
from engine.model.layers import Causal
from engine.model.talker import Talker
from engine.types import Clone, Preset, Vector
from engine.worker.loading.model_loader import check_weights, load_talker
from studio.cli.app_context import MINI
from studio.cli.reference import own_codes
from tests.conftest import golden_folders
from tests.engine.worker.driver import GREEDY, running, speak
from training.voice.adapter import Adapter, adapted
from training.voice.export import add_preset, export_merged, stored_tensors

BASE = next(each for each in golden_folders() if each.name == "base-0b6")
ADAPTED = Path(__file__).parents[2] / "mini" / "adapted.json"
CPU = torch.device("cpu")
WIDTH = LocalCheckpoint(BASE).capabilities.width
VECTOR = np.random.default_rng(0).standard_normal(WIDTH).astype(np.float32)


def loaded(dtype: torch.dtype = torch.float32, model: Path = BASE) -> Talker:
    return load_talker(model, CPU, dtype)


def drawn(talker: Talker, size: float = 0.02, vector: Vector = VECTOR) -> Adapter:
    adapter, random = Adapter(talker, vector, rank=4), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for each in adapter.changes.values():
            each.b.copy_(size * torch.randn(each.b.shape, generator=random))
    return adapter


@torch.no_grad()
def outputs(talker: Talker) -> tuple[Tensor, Tensor]:
    """Codebook 0's logits of a few codes, and the predictor's."""
    codes = torch.from_numpy(np.random.default_rng(2).integers(0, 30, (1, 9, 16)))
    x = talker.embed_codes(codes)
    hidden = talker(x, torch.arange(9)[None], Causal())
    return talker.logits(hidden), talker.predict(hidden[0], codes[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("model", [BASE, MINI], ids=["random", "trained"])
def test_an_adapter_of_zeros_changes_no_bit(model: Path, dtype: torch.dtype) -> None:
    talker = loaded(dtype, model)
    before = outputs(talker)
    with Adapter(talker, VECTOR).attached(talker):
        within = outputs(talker)
    for one, other in zip(before, within, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("model", [BASE, MINI], ids=["random", "trained"])
def test_merged_is_attached_and_leaves_no_trace(model: Path) -> None:
    talker = loaded(model=model)
    before, adapter = outputs(talker), drawn(talker)
    with adapter.attached(talker):
        attached = outputs(talker)
    assert all(torch.equal(*pair) for pair in zip(before, outputs(talker), strict=True))
    assert all(not torch.equal(*pair) for pair in zip(before, attached, strict=True))
    assert len(list(adapted(talker))) == len(adapter.changes)
    adapter.merge(talker)
    for one, other in zip(outputs(talker), attached, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_every_change_is_learned() -> None:
    """Gradients reach every matrix of talker and predictor."""
    talker = loaded()
    adapter = drawn(talker)
    codes = torch.from_numpy(np.random.default_rng(2).integers(0, 30, (1, 9, 16)))
    with adapter.attached(talker):
        hidden = talker(talker.embed_codes(codes), torch.arange(9)[None], Causal())
        loss = talker.logits(hidden).square().mean()
        (loss + talker.predict(hidden[0], codes[0]).square().mean()).backward()
    for name, value in adapter.named_parameters():
        assert value.grad is not None, name
        assert float(value.grad.abs().max()) > 0, name


def test_a_file_belongs_to_its_weights(tmp_path: Path) -> None:
    talker = loaded()
    adapter, again = drawn(talker), Adapter(talker, VECTOR, rank=4)
    adapter.save(tmp_path / "adapter.safetensors", "mine")
    again.load(tmp_path / "adapter.safetensors", "mine")
    for name, value in adapter.state_dict().items():
        assert torch.equal(again.state_dict()[name], value)
    with pytest.raises(CheckpointError, match="other weights"):
        again.load(tmp_path / "adapter.safetensors", "another")


def test_an_export_is_a_checkpoint_that_speaks_the_voice(tmp_path: Path) -> None:
    talker, out = loaded(), tmp_path / "exported"
    adapter = drawn(talker)
    export_merged(BASE, adapter, "Ann", out)
    check_weights(out)
    exported = LocalCheckpoint(out)
    assert exported.capabilities.speakers == ("ann",)
    assert exported.capabilities.clone
    assert exported.capabilities.preset
    assert exported.capabilities.digest != LocalCheckpoint(BASE).capabilities.digest
    before, after = stored_tensors(BASE), stored_tensors(out)
    assert before.keys() == after.keys()  # the speaker encoder too
    stays = [name for name in before if name.startswith("speaker_encoder.")]
    assert stays
    assert all(torch.equal(before[name], after[name]) for name in stays)
    assert all(before[name].dtype == after[name].dtype for name in before)
    rounded = torch.from_numpy(VECTOR).to(before["talker.model.codec_embedding.weight"].dtype)
    np.testing.assert_array_equal(exported.speaker_vector("ann"), rounded.float().numpy())
    ids = exported.text_ids("Hello there.")
    with running(out) as worker:
        spoken = [
            speak(worker, exported.prompt(ids, voice, "english", "whole", False), draw=GREEDY,
                  max_frames=8)
            for voice in (Preset("ann"), Clone(rounded.float().numpy()))
        ]  # fmt: skip
    np.testing.assert_array_equal(spoken[0].codes, spoken[1].codes)
    with pytest.raises(CheckpointError, match="there already"):
        export_merged(BASE, adapter, "Ann", out)


def test_the_reference_package_says_the_same_of_an_export(tmp_path: Path) -> None:
    """`adapted.json` holds what qwen-tts 0.1.1 found likeliest, greedily in float32, of this export
    (`studio.cli.reference.reference_codes(PYTHON, OUT, Preset("own"))`)."""
    vector = LocalCheckpoint(MINI).speaker_vector("clara")
    adapter = drawn(loaded(model=MINI), 0.01, vector)
    export_merged(MINI, adapter, "own", tmp_path / "out")
    said = {}
    for model, name in ((tmp_path / "out", "own"), (MINI, "clara")):
        with open_engine(
            [model], device="cpu", dtype="float32", weights="full", max_num_seqs=1
        ) as engine:
            said[name] = own_codes(engine, Preset(name))
    np.testing.assert_array_equal(said["own"], json.loads(ADAPTED.read_text()))
    assert (said["own"] != said["clara"]).any(1).mean() > 0.5  # though it is her vector


def test_an_export_begins_only_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = (BASE / "model.safetensors").stat().st_size
    usage = SimpleNamespace(free=weights)  # the codec has no room beside it
    monkeypatch.setattr("training.voice.export.shutil.disk_usage", lambda _: usage)
    with pytest.raises(NotSaved, match="disk is full"):
        export_merged(BASE, drawn(loaded()), "Ann", tmp_path / "exported")
    assert list(tmp_path.iterdir()) == []


def test_a_preset_takes_a_row_that_nobody_has() -> None:
    config = {
        "tts_model_type": "base",
        "talker_config": {"vocab_size": 3072, "spk_id": {"ryan": 3071}, "codec_bos_id": 3070},
    }
    assert add_preset(config, "Ann") == 3069
    assert config["talker_config"]["spk_id"] == {"ryan": 3071, "ann": 3069}  # type: ignore[index]
    assert config["tts_capabilities"] == ["custom_voice", "base"]
    for name in ("Ryan", " ", "ANN"):
        with pytest.raises(InvalidVoice):
            add_preset(config, name)
