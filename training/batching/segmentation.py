"""Text ids as the tokenizer has them, and of some texts in smaller pieces.

"archive" is "ar", "ch" and "ive" to the tokenizer, and no "ch" that was heard sounds like this one.
A word that now and then leaves out some of its merges is met letter by letter too (BPE dropout), so
that what letters say is learned from all words that have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Encoding, Tokenizer

DROPOUT = 0.1  # share of the merges that is left out
SHARE = 0.5  # of the texts


class SampledSegmentation:
    """Encodes texts, `share` of them with some merges left out."""

    def __init__(self, file: Path, share: float = SHARE) -> None:
        self._share = share
        self._exact, self._loose = (Tokenizer.from_file(str(file)) for _ in range(2))
        self._loose.model.dropout = DROPOUT

    def __call__(self, texts: list[str]) -> Sequence[Encoding]:
        exact, loose = self._exact.encode_batch(texts), self._loose.encode_batch(texts)
        pick = (torch.rand(len(texts)) < self._share).tolist()
        return [own if chosen else usual
                for own, usual, chosen in zip(loose, exact, pick, strict=True)]  # fmt: skip
