"""A model of one's own that is kept is loaded beside the one it was made of, and speaks as it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from engine import Preset, SpeechRequest, open_engine
from studio.cli.app_context import MINI, AppContext
from studio.cli.console import Console
from studio.settings import StudioSettings
from studio.voices.kept_models import keep_model, kept_model
from tests.support.programs import CACHE
from training.voice.job import Job, JobFolder

JOB = Job(name="Ann", model=str(MINI), consent="Ann Lee, my own voice", way="adapter")


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """A training whose model has Robert's voice as its own."""
    folder = JobFolder(tmp_path / "training" / "0123456789ab")
    folder.write(JOB)
    shutil.copytree(MINI, folder.merged)
    config = json.loads((folder.merged / "config.json").read_text())
    talker = config["talker_config"]
    talker["spk_id"] |= {"own": talker["spk_id"]["robert"]}
    talker["spk_is_dialect"] = {**(talker.get("spk_is_dialect") or {}), "own": False}
    (folder.merged / "config.json").write_text(json.dumps(config))
    return folder


def context(data: Path, guests: bool = False) -> AppContext:
    return AppContext(StudioSettings(data=data, guests=guests), Console())


def test_what_is_kept_speaks_beside_the_model_that_it_was_made_of(
    folder: JobFolder, tmp_path: Path
) -> None:
    here = context(tmp_path)
    assert here.all_models() == (str(MINI),)
    kept = keep_model(folder, [MINI.name], here.capabilities()[MINI.name].speakers)
    assert here.all_models() == (str(MINI), str(kept.folder))
    assert context(tmp_path, guests=True).all_models() == (str(MINI),)
    assert here.capabilities()["Ann"].speakers[-1] == "ann"
    with open_engine(here.all_models(), "cpu", cache=CACHE) as engine:
        requests = [
            SpeechRequest("Good morning.", Preset(name), seed=3, live=False, max_frames=12)
            for name in ("robert", "ann")
        ]
        assert [engine.resolve(each.voice).checkpoint for each in requests] == [MINI.name, "Ann"]
        one, two = (engine.submit(each).collect() for each in requests)
        np.testing.assert_array_equal(one, two)
        engine.remove("Ann")
        assert [*engine.capabilities()] == [MINI.name]


def test_a_copy_of_a_training_that_somebody_made_is_no_second_voice(
    folder: JobFolder, tmp_path: Path
) -> None:
    """Deleted with its training, a voice would go on to speak from there."""
    kept = keep_model(folder, [], [])
    shutil.copytree(folder.path, tmp_path / "training" / f"{folder.path.name} (copy)")
    assert context(tmp_path).all_models() == (str(MINI), str(kept.folder))


def test_one_that_is_damaged_or_has_another_codec_keeps_no_studio_from_starting(
    folder: JobFolder, tmp_path: Path
) -> None:
    kept, here = keep_model(folder, [], []), context(tmp_path)
    weights = next((kept.folder / "speech_tokenizer").glob("*.safetensors"))
    with weights.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    assert here.all_models() == (str(MINI),)
    shutil.copy(MINI / weights.relative_to(kept.folder), weights)
    assert here.all_models() == (str(MINI), str(kept.folder))
    tokenizer = (kept.folder / "tokenizer.json").read_text()
    (kept.folder / "tokenizer.json").write_text(tokenizer[: len(tokenizer) // 2])
    assert here.all_models() == (str(MINI),)
    (kept.folder / "tokenizer.json").write_text(tokenizer)
    assert here.all_models() == (str(MINI), str(kept.folder))
    (kept.folder / "config.json").write_text("{")
    assert here.all_models() == (str(MINI),)
    assert kept_model(folder) == kept
    kept.delete()
    assert kept_model(folder) is None


def test_a_name_that_somebody_has_gets_a_number_however_it_is_written(folder: JobFolder) -> None:
    folder.write(JOB.model_copy(update={"name": "Groß Zoë"}))
    assert keep_model(folder, [], ["groß Zoe\u0308"]).speaker == "groß zoë 2"
