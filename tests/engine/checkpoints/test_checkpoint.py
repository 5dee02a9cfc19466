"""What the host reads from a checkpoint folder, honest or hostile."""

from __future__ import annotations

import copy
import dataclasses
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.errors import (
    CheckpointError,
    InvalidVoice,
    NotCapable,
    UnknownLanguage,
    UnknownVoice,
)
from engine.types import Clone, Design, Preset, SamplingParams
from tests.conftest import golden_folders
from tests.support.golden_cases import Case, record, speech_cases, tensors

FOLDERS = golden_folders()
EMBEDDING = "talker.model.codec_embedding.weight"
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@cache
def checkpoint(folder: Path) -> LocalCheckpoint:
    return LocalCheckpoint(folder)


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """The folder's small files, to be spoiled."""
    for path in folder.glob("*.json"):
        shutil.copy(path, tmp_path)
    shutil.copy(folder / "merges.txt", tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", speech_cases(), ids=str)
def test_ids_are_the_references(case: Case) -> None:
    loaded = checkpoint(case.folder)
    prompt = case.prompt(loaded)
    newline = loaded.text_ids("\n")
    tail = (loaded.ids.im_end, *newline, *prompt.role_ids)
    assert [*prompt.role_ids, *prompt.text_ids, *tail] == case.tensor("input_ids")[0].tolist()
    assert len(prompt) == case.tensor("prefill").shape[1]


def test_capabilities_are_the_files(folder: Path) -> None:
    raw, read = json.loads((folder / "config.json").read_text()), checkpoint(folder).capabilities
    kind, talker = raw["tts_model_type"], raw["talker_config"]
    assert (read.preset, read.clone, read.design) == tuple(
        kind == name for name in ("custom_voice", "base", "voice_design")
    )
    assert read.speakers == tuple(talker["spk_id"])
    assert read.dialects == {name: d for name, d in talker["spk_is_dialect"].items() if d}
    assert set(read.languages) <= set(talker["codec_language_id"])
    assert not any("dialect" in language for language in read.languages)
    assert read.width == talker["hidden_size"]
    assert read.instruct == (read.preset and raw["tts_model_size"] != "0b6")


def test_several_capabilities_in_one_checkpoint(copied: Path) -> None:
    _change(copied / "config.json", tts_capabilities=["custom_voice", "base"])
    able = LocalCheckpoint(copied).capabilities
    assert (able.preset, able.clone, able.design) == (True, True, False)


def test_dialects_replace_chinese_and_auto(folder: Path) -> None:
    loaded = checkpoint(folder)
    languages = json.loads((folder / "config.json").read_text())["talker_config"][
        "codec_language_id"
    ]
    for speaker in (*loaded.capabilities.speakers, None):
        dialect = loaded.capabilities.dialects.get(speaker or "")
        for language in loaded.capabilities.languages:
            spoken = dialect if dialect and language == "chinese" else language
            assert loaded.language_id(language.upper(), speaker) == languages[spoken]
        assert loaded.language_id("Auto", speaker) == languages.get(dialect or "")
    with pytest.raises(UnknownLanguage, match="auto"):
        loaded.language_id("klingon", None)


def test_what_a_checkpoint_lacks_is_refused_by_name(folder: Path) -> None:
    loaded = checkpoint(folder)
    has, vector = loaded.capabilities, np.ones(loaded.capabilities.width, np.float32)
    codes = np.zeros((3, 16), np.int64)
    calls: list[tuple[Preset | Clone | Design, bool]] = [
        (Preset(has.speakers[0] if has.speakers else "ryan"), has.preset),
        (Preset(has.speakers[0] if has.speakers else "ryan", "softly"), has.instruct),
        (Clone(vector), has.clone or has.preset),
        (Clone(vector, "Hello.", codes), has.clone),
        (Design("a low voice"), has.design),
    ]
    for voice, able in calls:
        if able:
            assert loaded.prompt((1,), voice, "auto", "whole", False).text_ids == (1,)
            continue
        with pytest.raises(NotCapable, match=loaded.capabilities.name):
            loaded.prompt((1,), voice, "auto", "whole", False)


def test_bad_voices_are_refused(folder: Path) -> None:
    loaded = checkpoint(folder)
    if loaded.capabilities.preset:
        with pytest.raises(UnknownVoice, match=loaded.capabilities.speakers[0]):
            loaded.prompt((1,), Preset("nobody"), "auto", "whole", False)
    if not loaded.capabilities.clone:
        return
    good = np.ones(loaded.capabilities.width, np.float32)
    codes = np.zeros((3, 16), np.int64)
    for vector in (good[:-1], good * np.nan, good[None]):
        with pytest.raises(InvalidVoice):
            loaded.prompt((1,), Clone(vector), "auto", "whole", False)
    for bad in (codes - 1, codes + 2**40, codes[:, :3], codes[:0], codes + 0.5):
        with pytest.raises(InvalidVoice):
            loaded.prompt((1,), Clone(good, "Hello.", bad), "auto", "whole", False)


def test_references_share_state_exactly_when_their_codes_are_equal(folder: Path) -> None:
    loaded = checkpoint(folder)
    if not loaded.capabilities.clone:
        return
    made = tensors(folder)
    vector, codes = made["reference_embedding"].numpy(), made["reference_codes"].numpy()
    changed = codes.copy()
    changed[0, 0] ^= 1

    def key(codes: np.ndarray[Any, Any]) -> str:
        prompt = loaded.prompt((1,), Clone(vector, "Hello.", codes), "auto", "streamed", False)
        assert prompt.reference is not None
        return prompt.reference.key

    assert key(codes) == key(codes.astype(np.int32)) != key(changed)


def test_open_text_is_always_streamed(folder: Path) -> None:
    loaded = checkpoint(folder)
    voice = next(iter(speech for speech in speech_cases() if speech.folder == folder)).voice
    assert loaded.prompt((), voice, "auto", "whole", True).layout == "streamed"


def test_sampling_is_filled_from_the_file(folder: Path) -> None:
    raw = json.loads((folder / "generation_config.json").read_text())
    draw = checkpoint(folder).resolve_sampling(SamplingParams(top_k=7))
    assert (draw.temperature, draw.top_k, draw.top_p) == (raw["temperature"], 7, raw["top_p"])
    assert draw.predictor_top_k == raw["subtalker_top_k"]
    assert draw.repetition_penalty == raw["repetition_penalty"]
    assert (draw.greedy, draw.predictor_greedy) == (False, False)
    greedy = checkpoint(folder).resolve_sampling(SamplingParams(greedy=True))
    assert greedy.greedy
    assert greedy.predictor_greedy
    assert (
        not checkpoint(folder)
        .resolve_sampling(SamplingParams(greedy=True, predictor_greedy=False))
        .predictor_greedy
    )


def test_positions_are_the_smaller_of_both(folder: Path) -> None:
    loaded = checkpoint(folder).max_positions
    assert LocalCheckpoint(folder, positions=loaded // 2).max_positions == loaded // 2
    assert LocalCheckpoint(folder, positions=2 * loaded).max_positions == loaded


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_speaker_vectors_are_rows_of_the_weights(
    copied: Path, folder: Path, dtype: torch.dtype, sharded: bool, prefix: str
) -> None:
    table = load_file(folder / "model.safetensors")[EMBEDDING].to(dtype)
    shard = "model-00001-of-00001.safetensors" if sharded else "model.safetensors"
    save_file({"other": torch.ones(3), prefix + EMBEDDING: table}, copied / shard)
    if sharded:
        index = {"weight_map": {prefix + EMBEDDING: shard}}
        (copied / "model.safetensors.index.json").write_text(json.dumps(index))
    loaded = LocalCheckpoint(copied)
    ids = json.loads((copied / "config.json").read_text())["talker_config"]["spk_id"]
    for name in loaded.capabilities.speakers:
        np.testing.assert_array_equal(loaded.speaker_vector(name), table[ids[name]].float().numpy())


@pytest.mark.parametrize("spoil", ["cut", "empty", "foreign", "missing"])
def test_damaged_weights_are_named(copied: Path, folder: Path, spoil: str) -> None:
    loaded, path = LocalCheckpoint(copied), copied / "model.safetensors"
    if not loaded.capabilities.preset:
        return
    whole = (folder / "model.safetensors").read_bytes()
    if spoil != "missing":
        cut = int.from_bytes(whole[:8], "little") + 9
        path.write_bytes({"cut": whole[:cut], "empty": b"", "foreign": b"PK" * 99}[spoil])
    with pytest.raises(CheckpointError, match="safetensors"):
        loaded.speaker_vector(loaded.capabilities.speakers[0])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer, to be filled with configurations."""
    folder = tmp_path_factory.mktemp("hostile")
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(FOLDERS[0] / name, folder)
    return folder


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_hostile_configuration_is_a_checkpoint_error(place: Path, data: st.DataObject) -> None:
    """Whatever stands where a number should: the folder loads, or says what is wrong."""
    source = data.draw(st.sampled_from(FOLDERS))
    for name in ("config.json", "generation_config.json"):
        raw = copy.deepcopy(json.loads((source / name).read_text()))
        target = data.draw(st.sampled_from(_tables(raw)))
        if target:
            target[data.draw(st.sampled_from(sorted(target)))] = data.draw(JUNK)
        (place / name).write_text(json.dumps(raw))
    try:
        loaded = LocalCheckpoint(place)
        loaded.prompt((1,), Design("low"), "auto", "whole", False)
        loaded.resolve_sampling(SamplingParams())
    except (CheckpointError, NotCapable):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{", "7", "{}", "[" * 100_000])
def test_a_damaged_configuration_is_named(copied: Path, content: str) -> None:
    (copied / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        LocalCheckpoint(copied)


@pytest.mark.parametrize("keys", [(), ("code_predictor_config",)])
def test_codes_past_16_bits_are_refused(copied: Path, keys: tuple[str, ...]) -> None:
    """Slots keep them in 16 bits: a larger one would be negative, and no row of any table."""
    raw = json.loads((copied / "config.json").read_text())
    table = raw["talker_config"]
    for key in keys:
        table = table[key]
    table["vocab_size"] = 40_000
    (copied / "config.json").write_text(json.dumps(raw))
    with pytest.raises(CheckpointError, match="vocab_size"):
        LocalCheckpoint(copied)


def test_a_folder_without_a_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json"):
        LocalCheckpoint(tmp_path / "nowhere")


def test_every_recorded_case_was_found() -> None:
    assert len(speech_cases()) == sum(
        "text" in case for folder in FOLDERS for case in record(folder)["cases"].values()
    )
    assert speech_cases()


def _change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def _tables(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """The object and every object inside it."""
    inner = [table for value in raw.values() if isinstance(value, dict) for table in _tables(value)]
    return [raw, *inner]


def test_a_trained_voice_is_taken_by_its_weights_alone(folder: Path, tmp_path: Path) -> None:
    """A folder's digest stays with its weights, wherever they lie, and one changed tensor tells."""
    loaded = checkpoint(folder)
    width, digest = loaded.capabilities.width, loaded.capabilities.digest
    assert len(digest) == 64
    assert len({checkpoint(each).capabilities.digest for each in FOLDERS}) == len(FOLDERS)
    copy_ = tmp_path / "elsewhere"
    shutil.copytree(folder, copy_)
    assert LocalCheckpoint(copy_).capabilities.digest == digest
    weights = load_file(copy_ / "model.safetensors")
    weights["talker.model.layers.0.self_attn.q_proj.weight"][0, 0] += 1
    save_file(weights, copy_ / "model.safetensors")
    tuned = LocalCheckpoint(copy_)
    assert tuned.capabilities.digest != digest
    voice = Clone(np.ones(width, np.float32), model="its", digest=digest)
    voice = dataclasses.replace(voice, rows=np.ones((4, width), np.float32))
    if not (loaded.capabilities.clone or loaded.capabilities.preset):
        return
    prompt = loaded.prompt((5,), voice, "auto", "whole", False)
    assert prompt.rows is not None
    assert len(prompt) == 4 + len(loaded.prompt((5,), Clone(voice.vector), "auto", "whole", False))
    with pytest.raises(InvalidVoice, match="trained for its"):
        tuned.prompt((5,), voice, "auto", "whole", False)
    for rows in (np.ones((65, width)), np.ones((4, width + 1)), np.full((4, width), np.inf)):
        damaged = dataclasses.replace(voice, rows=rows)
        with pytest.raises(InvalidVoice, match="Train it again"):
            loaded.prompt((5,), damaged, "auto", "whole", False)
