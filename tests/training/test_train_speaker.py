"""The speaker encoder's lessons: speech as it is and as a codec passes it on."""

from __future__ import annotations

from pathlib import Path

import torch

from training import state as states
from training.codec import Codec
from training.data.synthesize_corpus import FRAME
from training.train_speaker import copied, copier


def test_every_other_wave_is_a_copy() -> None:
    torch.manual_seed(3)
    wave, codec = 0.1 * torch.randn(4, 3 * FRAME), Codec().eval()
    heard = copied(wave, codec)
    assert heard.shape == wave.shape
    assert torch.equal(heard[1::2], wave[1::2])
    assert not torch.allclose(heard[::2], wave[::2], atol=1e-2)


def test_without_a_codec_speech_stays_what_it_is(tmp_path: Path) -> None:
    wave = torch.randn(2, FRAME)
    assert torch.equal(copier(None, wave.device)(wave), wave)
    states.save({"codec": Codec().state_dict()}, tmp_path / "codec.pt")
    assert not torch.equal(copier(tmp_path / "codec.pt", wave.device)(wave), wave)
