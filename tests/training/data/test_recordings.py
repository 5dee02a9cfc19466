"""Recorded people become shards of the teacher's form, whose phones no loss counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from training.data.recordings import SEGMENT, person, shard, trimmed, unpack
from training.data.speech_format import FRAME, IGNORED, RATE
from training.data.speech_pool import SpeechPool
from training.train_codec import kept_rows, mixed


def speech(seconds: float) -> np.ndarray:
    return (0.1 * np.random.default_rng(1).standard_normal(int(seconds * RATE))).astype(np.float32)


def test_a_person_is_the_reader_of_a_language() -> None:
    path = Path("tuxpaint-stamps-default/usr/share/tuxpaint/stamps/animals/frog_desc_el.ogg")
    assert person("tuxpaint", path) == "tuxpaint-el"
    path = Path("ktuberling-data/usr/share/ktuberling/sounds/sr@latin/hat.wav")
    assert person("ktuberling", path) == "ktuberling-sr"


def test_silence_at_the_ends_goes() -> None:
    middle = speech(1)
    assert len(trimmed(np.concatenate([0 * middle, middle, 0 * middle]))) < 1.4 * len(middle)
    assert not len(trimmed(0 * middle))


def test_people_are_in_a_batch_and_their_phones_are_not(tmp_path: Path) -> None:
    pools = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = shard(speech(20), number)
        assert len(data["samples"]) % FRAME == 0  # type: ignore[arg-type]
        assert np.diff(data["offsets"]).max() <= 2 * SEGMENT  # type: ignore[call-overload]
        if not number:
            data["phones"] = np.zeros_like(data["phones"])  # type: ignore[call-overload]
        np.savez(folder / "00000.npz", **data)  # type: ignore[arg-type]
        pools.append(SpeechPool(folder, 0.1, torch.device("cpu")))
        pools[-1].refresh()
    wave, phones = mixed(*pools, batch=6)
    kept = kept_rows(6)
    assert wave.shape[0] == 6
    assert torch.isfinite(wave).all()
    assert wave.abs().max() <= 1.0
    assert (phones[:kept] == 0).all()
    assert (phones[kept:] == IGNORED).all()


def test_what_is_packed_becomes_shards_and_an_empty_folder_is_told(tmp_path: Path) -> None:
    packed, folder = tmp_path / "packed", tmp_path / "shards"
    with pytest.raises(SystemExit, match="has no recordings"):
        unpack(packed, folder)
    (packed / "people").mkdir(parents=True)
    soundfile.write(packed / "people/anna.opus", speech(20), RATE, format="OGG", subtype="OPUS")
    unpack(packed, folder)
    assert (folder / "done").exists()
    pool = SpeechPool(folder, 0.1, torch.device("cpu"))
    assert pool.refresh() == 1
    assert 19 < pool.hours * 3600 < 21
