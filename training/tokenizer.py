"""A small byte-level tokenizer in the published form: same rules, same special tokens.

Pieces are short enough to teach spelling and long enough that streamed text, one piece a
frame, stays ahead of the voice. Knows nothing of audio.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Qwen2TokenizerFast

from training.speakers import STYLES, describe, everyone
from training.text import Corpus

SIZE = 1_530  # before the special tokens
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>",
)  # fmt: skip
WORDS = Regex(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def lines(corpus: Corpus, seed: int = 0, count: int = 60_000) -> Iterator[str]:
    """What the pieces are learned from: text, instructions, and the two roles."""
    random = Random(seed)
    voices = everyone()
    for _ in range(count):
        yield corpus.draw(random)
    for _ in range(count // 12):
        yield describe(random.choice(voices), random)
    for style in STYLES:
        yield from style.instructions
    yield from ["assistant\n", "user\n"] * (count // 10)


def train(corpus: Corpus) -> Qwen2TokenizerFast:
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
    tokenizer.save_pretrained(folder)
    if not (folder / "vocab.json").exists():
        tokenizer.backend_tokenizer.model.save(str(folder))
    for wrapped, ids in (("<|im_start|>assistant\n", 3), ("<|im_end|>\n<|im_start|>assistant\n", 5)):
        assert len(tokenizer(wrapped)["input_ids"]) == ids
