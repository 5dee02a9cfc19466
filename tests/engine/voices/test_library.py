"""Saved voices: nothing lost, nothing half-written shown, nothing outside the folder touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from engine.atomic import exclusive
from engine.errors import InvalidVoice, NameTaken, NotSaved, UnknownVoice
from engine.types import Clone, Design
from engine.voices import voice_folder, voice_store
from engine.voices.library import Library
from engine.voices.voice_folder import slug
from engine.voices.voice_format import MAX_BYTES, pack, write_card
from engine.voices.voice_store import CARD, NUMBERS, SavedVoice

ROOT = Path(__file__).parents[3]
VECTOR = np.linspace(-1, 1, 12, dtype=np.float32)
CLONE = Clone(VECTOR, "what was said", np.arange(48, dtype=np.int64).reshape(3, 16))
ROWS = np.linspace(-2, 2, 36, dtype=np.float32).reshape(3, 12)
TRAINED = Clone(VECTOR, model="mini", rows=ROWS, digest="ab" * 32)
ANYTHING = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "voices")


def same(one: SavedVoice, other: SavedVoice) -> bool:
    if isinstance(one.voice, Design):
        return one.card == other.card and one.voice == other.voice
    assert isinstance(other.voice, Clone)
    return (
        one.card == other.card
        and one.voice.transcript == other.voice.transcript
        and np.array_equal(one.voice.vector, other.voice.vector)
        and np.array_equal(one.voice.codes, other.voice.codes)  # type: ignore[arg-type]
        and np.array_equal(one.voice.rows, other.voice.rows)  # type: ignore[arg-type]
        and one.voice.digest == other.voice.digest
    )


@pytest.mark.parametrize("voice", [CLONE, Clone(VECTOR), TRAINED, Design("calm and low")])
def test_what_is_saved_is_what_is_got_by_anybody(library: Library, voice: Any) -> None:
    saved = library.save("Café Noir", voice, note="n", colour="#aabbcc", tags=("a",), consent=True)
    again = Library(library.folder).get(saved.id)
    assert saved.id == "cafe-noir"
    assert same(saved, again)
    assert again.card.consent
    received = Library(library.folder / "another").import_file(library.export(saved.id))
    assert same(received, saved)


def test_a_name_belongs_to_one_voice(library: Library) -> None:
    library.save("Anna", Clone(VECTOR), consent=True)
    library.save("Berta", Clone(VECTOR))
    for taken in (
        lambda: library.save("ANNA", Clone(VECTOR)),
        lambda: library.rename("berta", "anna"),
    ):
        with pytest.raises(InvalidVoice, match="already"):
            taken()
    assert library.rename("anna", "ANNA").name == "ANNA"
    names = [library.import_file(library.export("anna")).name for _ in range(2)]
    assert names == ["ANNA 2", "ANNA 3"]
    found = library.find("anna")
    assert found is not None
    assert found.id == "anna"
    assert library.find("nobody") is None


def test_a_name_is_found_before_an_id(library: Library) -> None:
    first = library.save("Zoë", Clone(VECTOR))
    second = library.save("Zoe", Clone(VECTOR))
    third = library.save("#zoe", Clone(VECTOR))
    assert first.id == "zoe"
    for name, saved in (("Zoë", first), ("Zoe", second), ("zoe ", second), ("#zoe", first)):
        assert library.find(name) == saved
    for saved in (first, second, third):
        assert library.find(f"#{saved.id}") == saved


def test_of_many_that_save_one_name_at_once_one_succeeds(library: Library) -> None:
    def save(_: int) -> bool:
        try:
            library.save("Anna", Clone(VECTOR))
        except InvalidVoice:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(save, range(16))) == 1
    assert len(library.list()) == 1


def test_a_copied_voice_without_consent_is_not_imported(library: Library) -> None:
    other = Library(library.folder / "other")
    copied = library.export(library.save("Anna", CLONE).id)
    with pytest.raises(InvalidVoice, match="consent"):
        other.import_file(copied)
    assert other.list() == ()
    other.import_file(library.export(library.save("Dora", Design("calm")).id))


def test_an_imported_name_that_looks_like_another_gets_a_number(library: Library) -> None:
    library.save("Anna", CLONE, consent=True)
    card = library.get("anna").card
    for name, kept in ((" Anna ", "Anna 2"), ("An\u00a0 na", "An na"), ("Anna\u2003", "Anna 3")):
        saved = library.import_file(pack(card.model_copy(update={"name": name}), CLONE))
        assert saved.name == kept
        assert library.find(kept) == saved


def test_a_new_name_keeps_the_id_and_the_numbers(library: Library) -> None:
    library.save("Anna", CLONE, note="mine")
    renamed = library.rename("anna", "  Berta\n the  Great ")
    assert (renamed.id, renamed.name, renamed.card.note) == ("anna", "Berta the Great", "mine")
    assert same(library.get("anna"), renamed)


def test_what_others_change_is_seen(library: Library) -> None:
    """Another process has its own Library over the same folder."""
    other = Library(library.folder)
    other.save("Anna", CLONE)
    assert [saved.name for saved in library.list()] == ["Anna"]
    other.rename("anna", "Bert")
    assert [saved.name for saved in library.list()] == ["Bert"]
    other.delete("anna")
    other.save("Anna", Clone(-VECTOR))
    [found] = library.list()
    assert isinstance(found.voice, Clone)
    np.testing.assert_array_equal(found.voice.vector, -VECTOR)


def test_what_is_deleted_comes_back(library: Library) -> None:
    saved = library.save("Anna", CLONE)
    ticket = library.delete("anna")
    assert library.list() == ()
    other = library.save("Anna", Clone(VECTOR))
    back = library.restore(ticket)
    assert (other.id, back.id, back.name) == ("anna", "anna-2", "Anna 2")
    assert np.array_equal(back.voice.codes, saved.voice.codes)
    with pytest.raises(UnknownVoice):
        library.get("gone")


def test_built_in_voices_are_read_and_never_changed(tmp_path: Path) -> None:
    Library(tmp_path / "built").save("Anna", CLONE)
    library = Library(tmp_path / "own", tmp_path / "built")
    assert library.get("anna").built_in
    assert library.save("Anna B", CLONE).id == "anna-b"
    with pytest.raises(InvalidVoice, match="already"):
        library.save("anna", CLONE)
    assert len(library.list()) == 2
    for change in (library.delete, lambda voice: library.rename(voice, "Berta")):
        with pytest.raises(InvalidVoice, match="comes with the program"):
            change("anna")


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
@pytest.mark.parametrize("name", ["Zoë", "한나"])
def test_letters_may_be_written_in_one_piece_or_two(
    library: Library, name: str, forms: tuple[str, str]
) -> None:
    """As macOS writes file names: the same letters, other characters."""
    here, there = (unicodedata.normalize(form, name) for form in forms)
    saved = library.save(here, CLONE)
    for written in (here, there, there.upper()):
        found = library.find(written)
        assert found is not None
        assert found.id == saved.id
    with pytest.raises(NameTaken):
        library.save(there, CLONE)
    library.delete(saved.id)
    assert library.find(there) is None
    assert library.save(there, CLONE).name == there


@ANYTHING
@given(st.text(max_size=80))
def test_any_name_gives_a_safe_id(tmp_path: Path, name: str) -> None:
    library = Library(tmp_path / "voices")
    try:
        saved = library.save(name, Clone(VECTOR))
    except NameTaken:  # but for its case, by an example before
        return
    except InvalidVoice:
        kinds = {unicodedata.category(mark) for mark in " ".join(name.split())}
        turning = any(
            mark in name for mark in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
        )
        assert kinds & {"Cc", "Cs"} or kinds <= {"Cf", "Mn", "Zs"} or turning
        return
    assert library.get(saved.id).name == " ".join(name.split())
    assert (library.folder / saved.id).resolve().parent == library.folder.resolve()
    assert sorted(os.listdir(tmp_path)) == ["voices"]


@ANYTHING
@given(st.text(max_size=40) | st.sampled_from(["..", "../x", "/etc/passwd", ".trash", "a/b", "A"]))
def test_no_id_leads_out_of_the_folder(tmp_path: Path, voice_id: str) -> None:
    library = Library(tmp_path / "voices")
    for act in (library.get, library.delete, library.restore, library.export):
        with pytest.raises(UnknownVoice):
            act(voice_id)


@pytest.mark.parametrize("name", ["con", "NUL", "com1", "LPT9", "", "...", "声音"])
def test_awkward_names(name: str) -> None:
    assert slug(name).startswith("voice")


DAMAGES: dict[str, Any] = {
    "no card": lambda place: (place / CARD).unlink(),
    "no numbers": lambda place: (place / NUMBERS).unlink(),
    "half a card": lambda place: (place / CARD).write_bytes((place / CARD).read_bytes()[:20]),
    "half of the numbers": lambda place: os.truncate(place / NUMBERS, 90),
    "a deep card": lambda place: (place / CARD).write_text("[" * 60_000),
    "a large card": lambda place: (place / CARD).write_text('"' + "x" * 100_000 + '"'),
    "foreign numbers": lambda place: (place / NUMBERS).write_bytes(b"\x80\x04pickle" * 9),
    "large numbers": lambda place: os.truncate(place / NUMBERS, MAX_BYTES + 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_told_skipped_and_kept(library: Library, damage: str) -> None:
    library.save("Anna", CLONE)
    library.save("Berta", CLONE)
    DAMAGES[damage](library.folder / "anna")
    files = sorted((library.folder / "anna").iterdir())
    library = Library(library.folder)
    assert [saved.id for saved in library.list()] == ["berta"]
    assert [found.path.name for found in library.damaged()] == ["anna"]
    with pytest.raises(InvalidVoice):
        library.get("anna")
    assert sorted((library.folder / "anna").iterdir()) == files


@pytest.mark.parametrize("step", range(4))
def test_a_crash_while_saving_shows_nothing(
    library: Library, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Every write and rename is a moment to die in; only the last makes the voice be there."""
    library.save("Anna", CLONE)
    count = 0

    def crash_at_step(call: Any) -> Any:
        def wrapped(*arguments: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                raise KeyboardInterrupt
            return call(*arguments)

        return wrapped

    monkeypatch.setattr(voice_store, "write_atomic", crash_at_step(voice_store.write_atomic))
    monkeypatch.setattr(Path, "rename", crash_at_step(Path.rename))
    if step:
        with pytest.raises(KeyboardInterrupt):
            library.save("Berta", CLONE)
    else:
        library.save("Berta", CLONE)
    assert [saved.id for saved in library.list()] == ["anna"] + ["berta"] * (step == 0)
    assert library.damaged() == ()


def test_a_voice_says_which_model_it_was_made_with(library: Library) -> None:
    saved = library.save("Mix", replace(CLONE, model="custom"), kind="blend")
    again = Library(library.folder).get(saved.id)
    received = library.import_file(library.export(saved.id))
    for each in (saved, again, received, library.rename(saved.id, "Other")):
        assert isinstance(each.voice, Clone)
        assert each.voice.model == each.card.model == "custom"


def test_a_voice_of_no_known_model_is_written_as_before(library: Library) -> None:
    saved = library.save("Old", CLONE)
    card = json.loads((library.folder / saved.id / "voice.json").read_text(encoding="utf-8"))
    assert "model" not in card
    assert isinstance(saved.voice, Clone)
    assert saved.voice.model == ""


def test_trash_is_emptied_after_a_while(library: Library) -> None:
    month = 30 * 86_400.0
    old = library.delete(library.save("Ada", Design("calm")).id)
    assert library.purge(month) == 0
    assert library.restore(old).name == "Ada"
    library.delete("ada")
    assert library.purge(month, now=time.time() + 2 * month) == 1
    with pytest.raises(UnknownVoice):
        library.restore(old)
    assert library.list() == ()


SAVE = """
import sys
from pathlib import Path
from engine import Design, InvalidVoice, Library
library = Library(Path(sys.argv[1]))
sys.stdin.readline()
for number in range(40):
    try:
        print(library.save(f"Voice {number}", Design("calm")).id)
    except InvalidVoice:
        pass
"""


def test_an_import_is_not_hidden_by_a_preset(library: Library) -> None:
    """A preset is spoken for its name, whatever a saved voice is called."""
    sent = library.export(library.save("Clara", Design("calm")).id)
    other = Library(library.folder / "another")
    names = [other.import_file(sent, ("clara", "Clara 3")).name for _ in range(2)]
    assert names == ["Clara 2", "Clara 4"]


def test_a_name_is_taken_once_by_many_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SAVE, str(tmp_path / "voices")]
    pipe = subprocess.PIPE
    savers = [
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(3)
    ]
    with ThreadPoolExecutor(3) as pool:
        names = pool.map(lambda saver: saver.communicate("\n", 60)[0].split(), savers)
        saved = [voice for ids in names for voice in ids]
    library = Library(tmp_path / "voices")
    assert sorted(saved) == sorted(f"voice-{number}" for number in range(40))
    assert sorted(voice.name for voice in library.list()) == sorted(
        f"Voice {number}" for number in range(40)
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
def test_a_folder_that_another_process_holds_is_given_up(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been stopped in the middle of a save: nobody waits for it without an end."""
    monkeypatch.setattr(voice_folder, "LOOKS", 3)
    library.save("Ada", CLONE)
    with exclusive(library.folder), pytest.raises(NotSaved, match="Another program holds"):
        library.save("Ben", CLONE)
    assert library.save("Ben", CLONE).name == "Ben"


def test_a_trained_voice_is_whole_or_refused(library: Library) -> None:
    saved = library.save("me", TRAINED, consent=True)
    assert saved.card.kind == "trained"
    packed = library.export(saved.id)
    assert same(library.import_file(packed), library.get("me-2"))
    card, vector = saved.card, {"vector": VECTOR}

    def refused(tensors: dict[str, Any], **changes: Any) -> str:
        changed = write_card(card.model_copy(update=changes)).decode()
        with pytest.raises(InvalidVoice) as error:
            library.import_file(save(tensors, {"timbre_voice": changed}))
        return error.value.message

    assert "no complete trained voice" in refused(vector)
    assert "no complete trained voice" in refused(vector | {"rows": ROWS}, kind="clone")
    assert "no complete trained voice" in refused(vector | {"rows": ROWS}, digest="")
    assert "1 to 64 rows of 12" in refused(vector | {"rows": ROWS[:, :5]})
    assert "1 to 64 rows of 12" in refused(vector | {"rows": np.zeros((65, 12), np.float32)})
    assert "1 to 64 rows of 12" in refused(vector | {"rows": np.full_like(ROWS, np.nan)})
    both = vector | {"rows": ROWS, "codes": np.zeros((3, 16), np.int32)}
    assert "'codes' or 'rows'" in refused(both)
    assert "consent" in refused(vector | {"rows": ROWS}, consent=False)
    assert len(library.list()) == 2
