"""Text ids as the tokenizer has them, and of some texts in smaller pieces.

"archive" is "ar", "ch" and "ive" to the tokenizer, and no "ch" that was heard sounds like this one.
A word that now and then leaves out some of its merges is met letter by letter too (BPE dropout), so
that what letters say is learned from all words that have them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tokenizers import Encoding, Tokenizer

DROPOUT = 0.1  # share of the merges that is left out
SHARE = 0.5  # of the texts


class SampledSegmentation:
    """Encodes texts, `share` of them with some merges left out."""

    def __init__(self, tokenizer: Tokenizer, share: float = SHARE) -> None:
        self._share = share
        self._exact, self._loose = tokenizer, Tokenizer.from_str(tokenizer.to_str())
        self._loose.model.dropout = DROPOUT

    def __call__(self, texts: list[str]) -> Sequence[Encoding]:
        loosely = (torch.rand(len(texts)) < self._share).tolist()
        return [
            (self._loose if chosen else self._exact).encode(text)
            for text, chosen in zip(texts, loosely, strict=True)
        ]
