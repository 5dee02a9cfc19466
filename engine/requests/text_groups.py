"""Groups a text's sentences into pieces that are spoken in one run each.

The pieces, joined, are exactly the text; the space at their ends is not spoken. This module knows
no checkpoints and no ids.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.text.sentences import cut_text, letters, split_sentences, spoken_size


def text_groups(text: str, longest: int, language: str = "auto") -> list[str]:
    """Groups of whole sentences of about equal length, at most `longest` letters each."""
    if spoken_size(text) <= longest:
        return [text]
    sentences = split_sentences(text, language)
    pieces = [piece for sentence in sentences for piece in cut_text(sentence, longest)]
    return list(_join_pieces(pieces, longest))


def _join_pieces(pieces: list[str], longest: int) -> Iterator[str]:
    """Groups of pieces; one without letters joins the group before it, or after it."""
    group: list[str] = []
    spoken = size = 0  # of the group, without and with the space at its end
    voiced = False  # whether it has letters
    for piece in pieces:
        fits = spoken + spoken_size(piece) <= longest
        if voiced and letters(piece) and not fits:
            yield "".join(group)
            group, spoken, size, voiced = [], 0, 0, False
        group.append(piece)
        if kept := piece.rstrip():
            spoken = size + spoken_size(kept)
        size += spoken_size(piece)
        voiced = voiced or letters(piece) > 0
    yield "".join(group)
