"""An export and the saved parts are enough to continue training."""

from __future__ import annotations

from pathlib import Path

import torch

from studio.cli.app_context import MINI
from training import resume, state, train_codec, train_talker
from training.train_speaker import load_encoder

PARTS = Path(resume.__file__).with_name("parts.pt")
CPU = torch.device("cpu")
HEADS = ("who", "axes.weight", "axes.bias")  # of the speaker encoder: they begin anew


def test_the_embedded_model_can_be_trained_further(tmp_path: Path) -> None:
    resume.join(MINI, PARTS, tmp_path)
    codec = train_codec.Trainer(CPU)
    codec.resume(tmp_path / "codec.pt", restart=True)
    talker = train_talker.Trainer(CPU)
    talker.resume(tmp_path / "talker.pt", restart=False)
    load_encoder(tmp_path / "speaker.pt")
    assert (tmp_path / "tokenizer" / "tokenizer.json").exists()


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    resume.join(MINI, PARTS, first)
    resume.keep(first, tmp_path / "parts.pt")
    resume.join(MINI, tmp_path / "parts.pt", second)
    for name in ("codec.pt", "speaker.pt", "talker.pt"):
        before, after = state.load(first / name), state.load(second / name)
        assert before.keys() == after.keys()
        flat = [(before[part], after[part]) for part in before if isinstance(before[part], dict)]
        assert all(torch.equal(x[key], y[key]) for x, y in flat for key in x if key not in HEADS)
