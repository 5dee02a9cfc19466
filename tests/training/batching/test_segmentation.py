"""Texts in smaller pieces than usual say the same."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer

from studio.cli.app_context import MINI
from training.batching.segmentation import SampledSegmentation

FILE = MINI / "tokenizer.json"
TEXTS = ["Some of the oldest maps in the archive were drawn on goat skin."] * 400


def test_pieces_are_smaller_and_the_text_is_the_same() -> None:
    torch.manual_seed(0)
    usual = Tokenizer.from_file(str(FILE))
    ids = usual.encode(TEXTS[0]).ids
    made = SampledSegmentation(usual, share=1.0)(TEXTS)
    # 86 % are expected; what draws them takes no seed.
    assert sum(len(each.ids) > len(ids) for each in made) > 300
    assert len({tuple(each.ids) for each in made}) > 100
    for each in made:
        assert usual.decode(each.ids) == TEXTS[0]
        assert each.offsets[-1][1] == len(TEXTS[0])


def test_a_share_of_the_texts_is_encoded_as_when_spoken() -> None:
    torch.manual_seed(0)
    usual = Tokenizer.from_file(str(FILE))
    ids = usual.encode(TEXTS[0]).ids
    as_usual = [each.ids == ids for each in SampledSegmentation(usual, share=0.5)(TEXTS)]
    assert 150 < sum(as_usual) < 300
    assert all(each.ids == ids for each in SampledSegmentation(usual, share=0.0)(TEXTS))
