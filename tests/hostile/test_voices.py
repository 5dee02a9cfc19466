"""Untrusted voice files: one InvalidVoice, quickly, and nothing is left on the disk."""

from __future__ import annotations

import json
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from engine import Clone, InvalidVoice, Library, NotSaved, TimbreError, UnknownVoice
from engine.voices.voice_format import unpack
from tests.hostile.bounds import Worst

NUMBERS = struct.pack("<ff", 1, 2)
CARD = {"name": "Ada", "kind": "clone", "width": 2, "consent": True}
ONES, CODES = np.ones(2, np.float32), np.zeros((3, 16), np.int32)
VECTOR = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
ANYTHING = settings(
    max_examples=80,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def packed(header: object, body: bytes = NUMBERS) -> bytes:
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(data)) + data + body


def with_card(card: object, **vector: object) -> bytes:
    text = card if isinstance(card, str) else json.dumps(card)
    return packed({"__metadata__": {"timbre_voice": text}, "vector": {**VECTOR, **vector}})


def changed(**fields: object) -> bytes:
    return with_card({**CARD, **fields})


def kept(tensors: dict[str, np.ndarray[Any, Any]], **fields: object) -> bytes:
    """A voice file as the library writes it."""
    return bytes(save(tensors, {"timbre_voice": json.dumps({**CARD, **fields})}))


@pytest.mark.parametrize("data", [with_card(CARD), kept({"vector": ONES})])
def test_the_file_that_all_of_these_are_made_of_is_good(tmp_path: Path, data: bytes) -> None:
    assert Library(tmp_path).import_file(data).name == "Ada"


DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
BIG = 2**62
FILES: dict[str, bytes] = {
    "nothing": b"", "eight bytes": bytes(8), "pickle": b"\x80\x04\x95", "zip": b"PK\x03\x04" * 99,
    "header of 2^63": struct.pack("<Q", 2**63) + b"{}",
    "header past the end": struct.pack("<Q", 100) + b"{}",
    "header no object": packed(b"[]"), "header of zeros": packed(bytes(100)),
    "header no text": packed(b"\xff" * 100), "header deep": packed(DEEP),
    "card deep": with_card("[" * 60_000), "card twice": with_card(json.dumps(CARD) * 2),
    "card no text": packed({"__metadata__": {"timbre_voice": 3}, "vector": VECTOR}),
    "card a list": packed({"__metadata__": [], "vector": VECTOR}),
    "no card": packed({"vector": VECTOR}), "no vector": packed({"__metadata__": {}}, b""),
    "kind of numbers": with_card(CARD, dtype="F64"), "booleans": with_card(CARD, dtype="BOOL"),
    "negative shape": with_card(CARD, shape=[-2]), "huge shape": with_card(CARD, shape=[BIG, BIG]),
    "shape of text": with_card(CARD, shape=["2"]),
    "offsets before": with_card(CARD, data_offsets=[-8, 0]),
    "offsets after": with_card(CARD, data_offsets=[0, 2**63]),
    "offsets turned": with_card(CARD, data_offsets=[8, 0]),
    "not a number": packed(with_card(CARD)[8:-8], struct.pack("<ff", float("nan"), 1)),
    "infinite": packed(with_card(CARD)[8:-8], struct.pack("<ff", float("inf"), 1)),
    "all zeros": packed(with_card(CARD)[8:-8], bytes(8)),
    "two megabytes": with_card(CARD) + bytes(2 << 20),
    "width 10^12": changed(width=10**12), "width of 4,000 digits": changed(width=int("9" * 4_000)),
    "width half": changed(width=2.5), "another width": changed(width=3),
    "unknown field": changed(id="../../x"), "10,000 tags": changed(tags=["x"] * 10_000),
    "name of controls": changed(name="a\x1b[2J"), "name backwards": changed(name="\u202egnp"),
    "created yesterday": changed(created="yesterday"), "created in -1": changed(created="-1"),
    "created in year 1": changed(created="0001-01-01T00:00:00+00:00"),
    "name nobody sees": changed(name="\u200b\u200d"), "no name": changed(name=" "),
    "name of a megabyte": changed(name="x" * (1 << 20)), "half a letter": changed(name="\ud800"),
    "another kind": changed(kind="evil"),
    "design of nothing": changed(kind="design", instruct=" ", width=None),
    "colour": changed(colour="red;background:url(//evil)"),
    "card a list of its own": with_card("[]"), "another kind that is known": changed(kind="preset"),
    "empty name": changed(name=""), "name of a thousand letters": changed(name="x" * 1000),
    "two axes": kept({"vector": ONES[None]}), "codes alone": kept({"codes": CODES}),
    "float64": kept({"vector": np.ones(2)}), "a third tensor": kept({"vector": ONES, "more": ONES}),
    "codes of floats": kept({"vector": ONES, "codes": CODES.astype(np.float32)}),
    "too few codebooks": kept({"vector": ONES, "codes": CODES[:, 1:]}),
    "no frames": kept({"vector": ONES, "codes": CODES[:0]}),
    "many frames": kept({"vector": ONES, "codes": np.zeros((9999, 16), np.int32)}),
    "negative codes": kept({"vector": ONES, "codes": CODES - 1}),
    "NaN in the card": with_card('{"name":"a","kind":"clone","width":NaN}'),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_each_is_refused_soon_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    library, worst = Library(tmp_path / "voices"), Worst(name)
    with worst.measured(), pytest.raises(InvalidVoice) as refused:
        library.import_file(FILES[name])
    worst.tell()
    assert len(str(refused.value)) < 400
    assert "\n" not in str(refused.value)
    assert library.list() == ()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@ANYTHING
@given(st.binary(max_size=300) | st.builds(packed, st.binary(), st.binary()))
def test_any_bytes_are_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InvalidVoice):
        Library(tmp_path / "voices").import_file(data)


@ANYTHING
@given(st.data())
def test_any_damage_is_one_clear_error(data: st.DataObject) -> None:
    whole = bytearray(kept({"vector": ONES, "codes": CODES}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidVoice):
        unpack(bytes(whole[: data.draw(st.integers(0, len(whole)))]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@ANYTHING
@given(st.dictionaries(st.sampled_from([*CARD, "tags", "note", "created"]), JSON, max_size=3))
def test_any_card_is_a_voice_or_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    library = Library(tmp_path / "voices")
    try:
        saved = library.import_file(changed(**fields))
    except InvalidVoice:
        return
    assert library.get(saved.id).card == saved.card
    assert (library.folder / saved.id).resolve().parent == library.folder.resolve()


PATHS = [
    "..", ".", "", "/", "/etc/passwd", "../x", "a/../..", "..\\x", "a\\b", "C:\\x", "a\0", "a\nb",
    "a ", ".trash", ".x.part", "%2e%2e", "..%2f", "\u2025", "\uff0e\uff0e", "\u2215etc", "a" * 65,
    "é", "Ada", "con",
]  # fmt: skip


@pytest.mark.parametrize("number", PATHS, ids=ascii)
def test_no_id_leads_anywhere(tmp_path: Path, number: str) -> None:
    (tmp_path / "secret").mkdir()
    library = Library(tmp_path / "voices")
    library.save("Bea", Clone(np.ones(2, np.float32)))
    for act in (library.get, library.delete, library.restore, library.export):
        with pytest.raises(UnknownVoice) as refused:
            act(number)
        assert len(str(refused.value)) < 200
    assert sorted(os.listdir(tmp_path)) == ["secret", "voices"]
    assert [each.name for each in library.list()] == ["Bea"]


@pytest.mark.parametrize("name", ["secret", "loop", "pipe"])
@pytest.mark.parametrize("where", ["voice.json", "voice.safetensors", "."])
def test_links_and_pipes_are_not_followed(tmp_path: Path, name: str, where: str) -> None:
    """A pipe without a writer would block its reader for ever."""
    library = Library(tmp_path / "voices")
    saved = library.save("Ada", Clone(np.ones(2, np.float32)))
    place = library.folder / saved.id
    target = place if where == "." else place / where
    place.rename(tmp_path / "secret") if where == "." else target.rename(tmp_path / "secret")
    if name == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to(tmp_path / "secret" if name == "secret" else target)
    library = Library(tmp_path / "voices")  # one that has not read it before
    assert library.list() == ()
    assert len(library.damaged()) == 1
    with pytest.raises((InvalidVoice, UnknownVoice)):
        library.get(saved.id)


def test_a_library_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "voices").write_text("no folder")
    library = Library(tmp_path / "voices")
    assert library.list() == ()
    with pytest.raises((NotSaved, TimbreError)):
        library.save("Ada", Clone(np.ones(2, np.float32)))
