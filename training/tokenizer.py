"""Trains a small byte-level tokenizer in the published form: same rules, same special tokens.

Pieces are short enough to learn spelling, and long enough that streamed text, one piece per frame,
stays ahead of the speech.

    python -m training.tokenizer --corpus corpus.json --out DIR
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from training.data.speakers import STYLES, all_speakers
from training.data.text import Corpus, load
from training.data.voice_descriptions import describe

if TYPE_CHECKING:
    from transformers import Qwen2TokenizerFast

SIZE = 1_530  # before the special tokens
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>",
)  # fmt: skip
FILES = (
    "added_tokens.json", "merges.txt", "special_tokens_map.json", "tokenizer.json",
    "tokenizer_config.json", "vocab.json",
)  # fmt: skip
WORDS = Regex(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


TEXTS = 60_000  # that it is trained on


def lines(corpus: Corpus) -> Iterator[str]:
    """The tokenizer's training text: sentences, instructions, and the two roles."""
    random = Random(0)
    voices = all_speakers()
    for _ in range(TEXTS):
        yield corpus.draw(random)
    for _ in range(TEXTS // 12):
        yield describe(random.choice(voices), random)
    for style in STYLES:
        yield from style.instructions
    yield from ["assistant\n", "user\n"] * (TEXTS // 10)


def train(corpus: Corpus) -> Qwen2TokenizerFast:
    from transformers import Qwen2TokenizerFast  # here alone: others need the names of tokens

    pieces = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(WORDS, "isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    pieces.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_])
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pieces.train_from_iterator(lines(corpus), trainer)
    pieces.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL])
    return Qwen2TokenizerFast(
        tokenizer_object=pieces,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token="<|endoftext|>",
    )


def save(tokenizer: Qwen2TokenizerFast, folder: Path) -> None:
    """Write the tokenizer files of the published layout."""
    folder.mkdir(parents=True, exist_ok=True)
    backend = tokenizer.backend_tokenizer
    backend.save(str(folder / "tokenizer.json"), pretty=False)
    backend.model.save(str(folder))  # vocab.json, merges.txt
    added = {name: backend.token_to_id(name) for name in SPECIAL}
    plain = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
    roles = {
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": "<|endoftext|>",
    }
    written = {
        "added_tokens.json": added,
        "special_tokens_map.json": {
            role: {"content": name, **plain} for role, name in roles.items()
        },
        "tokenizer_config.json": {
            "added_tokens_decoder": {
                str(row): {"content": name, **plain, "special": True} for name, row in added.items()
            },
            "bos_token": None,
            "clean_up_tokenization_spaces": False,
            "extra_special_tokens": {},
            "model_max_length": 2**40,
            "tokenizer_class": "Qwen2Tokenizer",
            **roles,
        },
    }
    for name, content in written.items():
        (folder / name).write_text(json.dumps(content, indent=1))


def token_id(tokenizer: Tokenizer, text: str) -> int:
    """The id of a token that every tokenizer here has."""
    number: int | None = tokenizer.token_to_id(text)
    assert number is not None, text
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    save(train(load(args.corpus)), args.out)


if __name__ == "__main__":
    main()
