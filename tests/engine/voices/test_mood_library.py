"""Moods on disk: kept, exported, imported; hostile files; recordings of one person by mood."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from engine.errors import InvalidVoice, TimbreError
from engine.types import Clone
from engine.voices.library import Library
from engine.voices.mood import learn_shift
from engine.voices.mood_library import MoodLibrary, mood_words

SHIFT = learn_shift([(np.ones(8, np.float32), np.arange(8, dtype=np.float32))])


@pytest.fixture
def moods(tmp_path: Path) -> MoodLibrary:
    return MoodLibrary(tmp_path / "moods")


def test_a_mood_is_kept_exported_and_imported(moods: MoodLibrary, tmp_path: Path) -> None:
    saved = moods.save("glad", SHIFT, "1b7-8", "base", ("gladly", "happy"), consent=True)
    assert [each.name for each in MoodLibrary(moods.folder).list()] == ["glad"]
    assert moods.find("Gladly") == saved or moods.find("Gladly").id == saved.id  # type: ignore[union-attr]
    other = MoodLibrary(tmp_path / "other")
    back = other.import_file(moods.export(saved.id))
    np.testing.assert_array_equal(back.mood.shift, SHIFT.shift)
    assert back.mood.space == "1b7-8"
    assert back.card.mood == saved.card.mood
    assert mood_words(other.list())["happy"].name == "glad"
    assert other.import_file(moods.export(saved.id)).name == "glad 2"
    assert other.fitting(["0b6-1024"]) == ()
    assert len(other.fitting(["1b7-8"])) == 2
    assert moods.restore(moods.delete(saved.id)).name == "glad"


def test_voices_and_moods_are_not_mistaken_for_each_other(
    moods: MoodLibrary, tmp_path: Path
) -> None:
    voices = Library(tmp_path / "voices")
    voice = voices.save("anna", Clone(np.ones(8, np.float32)), consent=True)
    with pytest.raises(InvalidVoice, match="not a mood"):
        moods.import_file(voices.export(voice.id))
    mood = moods.save("glad", SHIFT, "1b7-8")
    with pytest.raises(InvalidVoice, match="not a voice"):
        voices.import_file(moods.export(mood.id))


def packed(vector: np.ndarray, **changes: object) -> bytes:
    mood = {"space": "s", "words": [], "pairs": 1, "spread": 0.0, "agreement": 1.0}
    card = {"name": "glad", "kind": "mood", "width": 8, "mood": mood, **changes}
    return bytes(save({"vector": vector}, {"timbre_voice": json.dumps(card)}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04pickle",
        packed(np.full(8, np.nan, np.float32)),
        packed(np.zeros(8, np.float32)),
        packed(np.ones(9, np.float32)),
        packed(np.ones(8, np.float64)),
        packed(np.ones(8, np.float32), name="a:b"),
        packed(np.ones(8, np.float32), name="a[/]"),
        packed(np.ones(8, np.float32), name="x" * 41),
        packed(np.ones(8, np.float32), kind="clone", consent=True),
        packed(np.ones(8, np.float32), mood=None),
        packed(np.ones(8, np.float32), mood={"words": ["w"] * 41}),
        packed(np.ones(8, np.float32), mood={"pairs": -1}),
        packed(np.ones(8, np.float32), mood={"spread": 1e300}),
        packed(np.ones(8, np.float32), mood={"path": "../../x"}),
    ],
)
def test_hostile_files_are_refused_and_leave_nothing(moods: MoodLibrary, data: bytes) -> None:
    with pytest.raises(TimbreError):
        moods.import_file(data)
    assert moods.list() == ()
    assert not list(moods.folder.glob("[!.]*"))


def test_a_clone_holds_recordings_of_its_person_by_mood(tmp_path: Path) -> None:
    library = Library(tmp_path)
    codes = np.ones((4, 16), np.int64)
    anna = library.save("Anna", Clone(np.ones(8, np.float32), "plain", codes), consent=True)
    whispered = Clone(np.arange(1, 9, dtype=np.float32), "whispered", codes * 2)
    library.keep_reference(anna.id, "whisper", whispered)
    library.keep_reference(anna.id, "glad", Clone(np.full(8, 2, np.float32)))
    for kept in (Library(tmp_path).get(anna.id), library.import_file(library.export(anna.id))):
        assert isinstance(kept.voice, Clone)
        assert kept.voice.transcript == "plain"
        recordings = dict(kept.voice.references)
        assert recordings["whisper"].transcript == "whispered"
        assert recordings["glad"].codes is None
        np.testing.assert_array_equal(recordings["whisper"].codes, codes * 2)
    library.keep_reference(anna.id, "Whisper", None)
    left = Library(tmp_path).get(anna.id).voice
    assert isinstance(left, Clone)
    assert [mood for mood, _ in left.references] == ["glad"]
    with pytest.raises(InvalidVoice, match="float32 numbers"):
        library.keep_reference(anna.id, "sad", Clone(np.ones(9, np.float32)))
    assert isinstance(Library(tmp_path).get(anna.id).voice, Clone)


def test_a_crash_between_numbers_and_card_leaves_the_voice_as_it_was(tmp_path: Path) -> None:
    library = Library(tmp_path)
    anna = library.save("Anna", Clone(np.ones(8, np.float32)), consent=True)
    card = (tmp_path / anna.id / "voice.json").read_bytes()
    library.keep_reference(anna.id, "glad", Clone(np.full(8, 2, np.float32)))
    (tmp_path / anna.id / "voice.json").write_bytes(card)
    left = Library(tmp_path).get(anna.id).voice
    assert isinstance(left, Clone)
    assert left.references == ()
