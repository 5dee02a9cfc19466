"""Fitting weights are loaded exactly; others are refused, by name, before anything is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.errors import CheckpointError
from engine.model.configs import TransformerConfig
from engine.model.layers import Transformer
from engine.worker.loading.model_loader import load_codec, load_encoder, load_speaker, load_talker
from engine.worker.loading.weight_loader import INDEX, SINGLE, empty_network, export, load
from tests.conftest import golden_folders

CPU = torch.device("cpu")
SHAPE = TransformerConfig(
    hidden_size=8,
    intermediate_size=12,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=4,
    rope_theta=1e4,
    norm_eps=1e-6,
)
FOLDERS = pytest.mark.parametrize("folder", golden_folders(), ids=lambda folder: folder.name)
Tensors = dict[str, Tensor]


def network(dtype: torch.dtype = torch.float32) -> Transformer:
    return empty_network(lambda: Transformer(SHAPE), dtype)


@pytest.fixture
def tensors() -> Tensors:
    torch.manual_seed(0)
    return export({"net.": Transformer(SHAPE)})


@pytest.fixture
def folder(tmp_path: Path, tensors: Tensors) -> Path:
    save_file(tensors, tmp_path / SINGLE)
    return tmp_path


def split(tensors: Tensors, folder: Path, shards: int) -> None:
    """Save in shards, the way large checkpoints are published."""
    weight_map = {}
    for number in range(shards):
        name = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = dict(list(tensors.items())[number::shards])
        save_file(part, folder / name)
        weight_map |= dict.fromkeys(part, name)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def error_of(folder: Path, net: nn.Module | None = None) -> str:
    with pytest.raises(CheckpointError) as raised:
        load(folder, {"net.": net or network()}, "cpu")
    return str(raised.value)


# Weights that fit


def test_exported_weights_are_loaded_back(folder: Path, tensors: Tensors) -> None:
    net = network()
    load(folder, {"net.": net}, "cpu")
    back = export({"net.": net})
    assert back.keys() == tensors.keys()
    assert all(torch.equal(back[name], tensors[name]) for name in tensors)


def test_published_names_are_those_before_fusing(tensors: Tensors) -> None:
    names = {name.removeprefix("net.layers.0.") for name in tensors if ".layers.0." in name}
    assert {f"self_attn.{x}_proj.weight" for x in "qkvo"} <= names
    assert {"mlp.gate_proj.weight", "mlp.up_proj.weight"} <= names
    assert not any("qkv_proj" in name or "gate_up" in name for name in names)
    assert tensors["net.layers.0.self_attn.k_proj.weight"].shape == (8, 8)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 5))
def test_shards_load_as_one_file(tmp_path_factory: pytest.TempPathFactory, shards: int) -> None:
    folder, source = tmp_path_factory.mktemp("shards"), Transformer(SHAPE)
    split(export({"net.": source}), folder, shards)
    net = network()
    load(folder, {"net.": net}, "cpu")
    wanted, got = source.state_dict(), net.state_dict()
    assert all(torch.equal(got[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_take_the_dtype_of_the_network(
    folder: Path, tensors: Tensors, dtype: torch.dtype
) -> None:
    net = network(dtype)
    load(folder, {"net.": net}, "cpu")
    assert {weight.dtype for weight in net.parameters()} == {dtype}
    assert torch.equal(net.norm.weight, tensors["net.norm.weight"].to(dtype))


def test_a_network_with_memory_is_filled_in_place(folder: Path, tensors: Tensors) -> None:
    net = Transformer(SHAPE)
    before = {name: weight.data_ptr() for name, weight in net.named_parameters()}
    load(folder, {"net.": net}, "cpu")
    assert {name: weight.data_ptr() for name, weight in net.named_parameters()} == before
    assert all(weight.requires_grad for weight in net.parameters())
    back = export({"net.": net})
    assert all(torch.equal(back[name], tensors[name]) for name in tensors)


def test_several_parts_share_a_file(tmp_path: Path) -> None:
    parts: dict[str, nn.Module] = {"a.": Transformer(SHAPE), "b.": nn.Linear(3, 2)}
    save_file(export(parts), tmp_path / SINGLE)
    linear = empty_network(lambda: nn.Linear(3, 2), torch.float32)
    load(tmp_path, {"a.": network(), "b.": linear}, "cpu")
    assert torch.equal(linear.weight, parts["b."].weight)


@FOLDERS
def test_every_network_of_a_checkpoint_keeps_its_published_tensors(folder: Path) -> None:
    main, codec = load_file(folder / SINGLE), load_file(folder / "speech_tokenizer" / SINGLE)
    made = export({"talker.": load_talker(folder, CPU, torch.float32)})
    if any(name.startswith("speaker_encoder.") for name in main):
        made |= export({"speaker_encoder.": load_speaker(folder, CPU)})
    assert made.keys() == main.keys()
    made |= export({"decoder.": load_codec(folder, CPU, torch.float32)})
    made |= export({"encoder.": load_encoder(folder, CPU)})
    published = main | codec
    assert all(torch.equal(tensor, published[name]) for name, tensor in made.items())
    kinds = {name.rsplit(".", 1)[1] for name in published.keys() - made.keys()}
    assert kinds <= {"initialized", "cluster_usage", "embed_sum"}


# Weights that do not fit


def test_missing_tensors_are_named(folder: Path, tensors: Tensors) -> None:
    del tensors["net.layers.1.self_attn.k_proj.weight"], tensors["net.norm.weight"]
    save_file(tensors, folder / SINGLE)
    message = error_of(folder)
    assert "missing: net.layers.1.self_attn.k_proj.weight, net.norm.weight" in message


def test_many_missing_tensors_are_counted(folder: Path) -> None:
    save_file({"other": torch.zeros(1)}, folder / SINGLE)
    message = error_of(folder)
    assert "more" in message
    assert len(message) < 600


@pytest.mark.parametrize(
    "name", ["net.layers.2.mlp.up_proj.weight", "net.layers.11.input_layernorm.weight"]
)
def test_a_layer_more_than_the_config_has_is_refused(
    folder: Path, tensors: Tensors, name: str
) -> None:
    save_file(tensors | {name: torch.zeros(2)}, folder / SINGLE)
    assert f"unexpected: {name}" in error_of(folder)
    load(folder, {"net.": network()}, "cpu", unused=(name,))


@pytest.mark.parametrize("name", ["net.layers.2.norm.weight", "extra", "net.quantum"])
def test_other_tensors_are_left_unused_with_a_warning(
    folder: Path, tensors: Tensors, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    save_file(tensors | {name: torch.zeros(2)}, folder / SINGLE)
    net = network()
    load(folder, {"net.": net}, "cpu")
    assert f"not used: {name}." in caplog.text
    back = export({"net.": net})
    assert all(torch.equal(back[key], tensors[key]) for key in tensors)


def test_known_unused_tensors_are_no_warning(
    folder: Path, tensors: Tensors, caplog: pytest.LogCaptureFixture
) -> None:
    save_file(tensors | {"extra": torch.zeros(2)}, folder / SINGLE)
    load(folder, {"net.": network()}, "cpu", unused=("ex*",))
    assert not caplog.messages


def test_a_wrappers_prefix_is_left_out_with_a_warning(
    folder: Path, tensors: Tensors, caplog: pytest.LogCaptureFixture
) -> None:
    save_file({f"module.{name}": tensor for name, tensor in tensors.items()}, folder / SINGLE)
    net = network()
    load(folder, {"net.": net}, "cpu")
    (line,) = caplog.messages
    assert "'module.'" in line
    back = export({"net.": net})
    assert all(torch.equal(back[name], tensors[name]) for name in tensors)


def test_a_name_without_the_prefix_is_taken_first(folder: Path, tensors: Tensors) -> None:
    other = {f"module.{name}": torch.full_like(each, 7) for name, each in tensors.items()}
    save_file(tensors | other, folder / SINGLE)
    net = network()
    load(folder, {"net.": net}, "cpu")
    assert torch.equal(net.norm.weight, tensors["net.norm.weight"])


def test_another_shape_is_named(folder: Path, tensors: Tensors) -> None:
    tensors["net.layers.0.mlp.up_proj.weight"] = torch.zeros(8, 12)
    save_file(tensors, folder / SINGLE)
    assert "net.layers.0.mlp.up_proj.weight is [8, 12], not [12, 8]" in error_of(folder)


def test_integer_weights_are_refused(folder: Path, tensors: Tensors) -> None:
    save_file(tensors | {"net.norm.weight": torch.zeros(8, dtype=torch.long)}, folder / SINGLE)
    assert "not floating point: net.norm.weight" in error_of(folder)


def test_nothing_is_read_before_everything_fits(folder: Path, tensors: Tensors) -> None:
    save_file(tensors | {"net.norm.weight": torch.zeros(1)}, folder / SINGLE)
    net = network()
    error_of(folder, net)
    assert all(weight.is_meta for weight in net.parameters())


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 0.999))
def test_a_truncated_file_is_refused(tmp_path_factory: pytest.TempPathFactory, part: float) -> None:
    folder = tmp_path_factory.mktemp("cut")
    save_file(export({"net.": Transformer(SHAPE)}), folder / SINGLE)
    data = (folder / SINGLE).read_bytes()
    (folder / SINGLE).write_bytes(data[: int(part * len(data))])
    assert "no complete safetensors file" in error_of(folder)


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=200))
def test_a_file_of_another_format_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("foreign")
    (folder / SINGLE).write_bytes(data)
    assert "no complete safetensors file" in error_of(folder)


def test_a_pickle_is_not_even_opened(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"not read")
    assert "Only safetensors are read" in error_of(tmp_path)


def test_a_missing_shard_is_named(tmp_path: Path, tensors: Tensors) -> None:
    split(tensors, tmp_path, 3)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    assert "model-00002-of-00003.safetensors" in error_of(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.safetensors",
        "/etc/x.safetensors",
        "a/b.safetensors",
        "..\\x.safetensors",
        "c:x.safetensors",
        "x\0.safetensors",
        "model.bin",
        "..",
        7,
        None,
    ],
)
def test_an_index_cannot_lead_elsewhere(tmp_path: Path, name: object) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"net.norm.weight": name}}))
    assert "which is no file beside it" in error_of(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", "7", '{"weight_map": 3}', '{"weight_map": []}'])
def test_a_damaged_index_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / INDEX).write_text(text)
    error = error_of(tmp_path)
    assert str(tmp_path / INDEX) in error
    assert "no index of weights" in error or "is damaged" in error


Edit = Callable[[dict[str, object]], object]


@pytest.mark.parametrize(
    "edit",
    [
        lambda raw: raw.pop("decoder_config"),
        lambda raw: raw["decoder_config"].update(hidden_size="wide"),
        lambda raw: raw["decoder_config"].update(upsample_rates=3),
        lambda raw: raw["decoder_config"].update(codebook_dim=-2),
        lambda raw: raw.update(decoder_config=None),
        lambda raw: raw["decoder_config"].update(upsample_rates=[8, 5, 4, 2]),
        lambda raw: raw["decoder_config"].update(num_quantizers=8),
        lambda raw: raw["decoder_config"].update(sliding_window=100_000),
        lambda raw: raw["decoder_config"].update(rope_theta=float("nan")),
        lambda raw: raw["decoder_config"].update(rms_norm_eps=-1.0),
    ],
)
def test_a_config_of_no_network_is_refused(tmp_path: Path, edit: Edit) -> None:
    source = golden_folders()[0] / "speech_tokenizer"
    raw = json.loads((source / "config.json").read_text())
    edit(raw)
    (tmp_path / "speech_tokenizer").mkdir()
    (tmp_path / "speech_tokenizer" / "config.json").write_text(json.dumps(raw))
    with pytest.raises(CheckpointError, match="describes no network"):
        load_codec(tmp_path, CPU, torch.float32)


def table_of(folder: Path, dtype: torch.dtype = torch.bfloat16) -> nn.Embedding:
    net = nn.ModuleDict({"table": empty_network(lambda: nn.Embedding(50, 8), dtype)})
    load(folder, {"": net}, "cpu")
    return net["table"]  # type: ignore[return-value]


def test_a_large_table_stays_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.worker.loading.weight_loader.MAP_FROM", 1)
    weight = torch.randn(50, 8).bfloat16()
    save_file({"table.weight": weight}, tmp_path / SINGLE)
    table = table_of(tmp_path)
    assert torch.equal(table.weight, weight)
    assert not table.weight.requires_grad
    with (tmp_path / SINGLE).open("r+b") as file:  # a mapping shows what is written to its file
        file.seek(-2, 2)
        file.write(weight[:1, :1].view(torch.int16).numpy().tobytes())
    assert table.weight[-1, -1] == weight[0, 0]
    assert torch.equal(table_of(tmp_path, torch.float32).weight[0], weight[0].float())


def test_a_table_in_its_file_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.worker.loading.weight_loader.MAP_FROM", 1)
    weight = torch.randn(50, 8).bfloat16()
    weight[7, 3] = torch.nan
    save_file({"table.weight": weight}, tmp_path / SINGLE)
    with pytest.raises(CheckpointError, match="not finite"):
        table_of(tmp_path)
