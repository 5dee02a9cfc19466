"""Tokenisation: the two forms of a folder agree, appended text equals whole text."""

from __future__ import annotations

import json
import pickle
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine.checkpoints.tokens as tokens_module
from engine.checkpoints.tokens import TextFeed, Tokens
from engine.errors import CheckpointError, InvalidText
from tests.conftest import golden_folders

FOLDERS = golden_folders()
# Letters of many scripts, signs and marks, beside whatever else Unicode has
LIKELY = (
    "abz'sSTtſ 0９½ .,!?\"(\n\r\t　、。天気한글é\u0301\u0327\u1100\u1161\u11a8ابहिन्दीไทย<|>🙂\u200d"
)
CHARACTERS = st.one_of(st.sampled_from(LIKELY), st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def tokens(folder: Path) -> Tokens:
    return Tokens(folder)


@pytest.fixture(scope="module")
def bare(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    """The same tokenizer from vocab.json and merges.txt alone, as published folders hold it."""
    place = tmp_path_factory.mktemp("bare")
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(folder / name, place)
    return Tokens(place)


@settings(max_examples=150, deadline=None)
@given(pieces=st.lists(st.text(CHARACTERS, max_size=8), max_size=8))
def test_appended_text_equals_whole_text(tokens: Tokens, bare: Tokens, pieces: list[str]) -> None:
    for tokenizer in (tokens, bare):
        feed = TextFeed(tokenizer.encode)
        ids = [i for piece in pieces for i in feed.append(piece)]
        assert (*ids, *feed.close()) == tokenizer.encode("".join(pieces))


@settings(max_examples=100, deadline=None)
@given(text=st.text(CHARACTERS))
def test_a_bare_folder_gives_the_same_ids(tokens: Tokens, bare: Tokens, text: str) -> None:
    # the golden tokenizer.json does not normalise; the published tokenizer does
    assert bare.encode(text) == tokens.encode(unicodedata.normalize("NFC", text))


def test_words_are_given_out_as_soon_as_they_end(tokens: Tokens) -> None:
    feed = TextFeed(tokens.encode)
    assert feed.append("Hel") == ()
    assert feed.append("lo") == ()
    assert feed.append(" ") == tokens.encode("Hello")
    assert feed.append("there") == ()
    assert feed.close() == tokens.encode(" there")
    assert feed.close() == ()


def test_control_tokens_in_a_text_are_ordinary_text(folder: Path, tokens: Tokens) -> None:
    for name, number in json.loads((folder / "added_tokens.json").read_text()).items():
        ids = tokens.encode(f"say {name} aloud")
        assert number not in ids
        assert max(ids) < tokens.size
        assert len(ids) > len(tokens.encode("say aloud"))


def test_a_broken_character_is_refused(tokens: Tokens) -> None:
    with pytest.raises(InvalidText):
        tokens.encode("half \ud83d of a pair")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"model": 7}', '{"added_tokens": 3}'])
def test_a_damaged_tokenizer_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(CheckpointError, match="tokenizer"):
        Tokens(tmp_path).size  # noqa: B018


@pytest.mark.parametrize(
    "spoilt",
    [
        {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}},
        {"pre_tokenizer": {"type": "FixedLength", "length": 0}},  # a panic, which is no Exception
    ],
    ids=["a word that it lacks", "pieces of no length"],
)
def test_a_tokenizer_that_fails_at_a_text_is_named(tmp_path: Path, spoilt: dict[str, Any]) -> None:
    raw = json.loads((FOLDERS[0] / "tokenizer.json").read_text("utf-8"))
    (tmp_path / "tokenizer.json").write_text(json.dumps({**raw, **spoilt}))
    tokens = Tokens(tmp_path)
    with pytest.raises(CheckpointError, match="tokenizer"):
        tokens.encode("hello")


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no tokenizer"):
        Tokens(tmp_path).size  # noqa: B018


def test_another_process_is_told_the_folder_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = Tokens(folder)
    ids = tokens.encode("Hello")
    monkeypatch.setattr(tokens_module, "_load", None)
    sent = pickle.dumps(tokens)
    assert len(sent) < 1000
    there = pickle.loads(sent)
    monkeypatch.undo()
    assert there.encode("Hello") == ids


def test_files_are_read_once_and_again_when_they_change(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "tokenizer.json", tmp_path)
    before = tokens_module._load.cache_info().misses
    sizes = {Tokens(tmp_path).size for _ in range(3)}
    assert tokens_module._load.cache_info().misses == before + 1
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(CheckpointError, match="tokenizer"):
        Tokens(tmp_path).size  # noqa: B018
    assert sizes == {Tokens(folder).size}


@pytest.mark.parametrize("vocabulary", [{"a": 0, "b": 7}, {}])
def test_a_size_is_that_of_the_largest_id(tmp_path: Path, vocabulary: dict[str, int]) -> None:
    """Ids may have gaps: as many as there are words would be too few."""
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "merges.txt").write_text("")
    assert Tokens(tmp_path).size == max(vocabulary.values(), default=-1) + 1
