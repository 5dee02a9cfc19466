"""Text to ids, as a whole or incrementally.

A published folder has tokenizer.json, or only vocab.json and merges.txt; both give the same ids.
Control tokens are not part of this tokenizer, so text that spells one is ordinary text; the control
ids are added where prompts are built. No torch.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from engine.errors import CheckpointError, InvalidText

PANIC = "PanicException"  # of Rust; its module cannot be imported
LARGEST_FILE = 64 << 20  # bytes; the published tokenizer.json has 11 MB
WHOLE, WORDS_FILE, MERGES_FILE = FILES = "tokenizer.json", "vocab.json", "merges.txt"
KEPT = 2  # tokenizers of a process

# Normalizers whose output is about as long as their input. `Replace` and `Prepend` can make
# gigabytes out of a letter.
NORMALIZERS = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents")
MOST_NORMALIZERS = 8

WORDLIKE = ("L", "N")
SIGNS = ("P", "S", "Z", "Cc")  # no combining marks, and none that an older Unicode version lacks

# Qwen2's pre-tokenizer: contractions, letters with one leading sign, single digits, signs, space
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class Tokens:
    """The tokenizer of one checkpoint folder.

    It is read when it is first asked for, once in a process: that takes half a second at the
    published size. Another process is told the folder, and reads it only if it has to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> tuple[type[Tokens], tuple[Path]]:
        return Tokens, (self._folder,)

    @cached_property
    def _loaded(self) -> tuple[Tokenizer, int]:
        return _load(self._folder, _version(self._folder))

    @property
    def size(self) -> int:
        """One more than the largest id. Raises CheckpointError where the files are damaged."""
        return self._loaded[1]

    def encode(self, text: str) -> tuple[int, ...]:
        tokenizer = self._loaded[0]
        try:
            encoding = tokenizer.encode(text, add_special_tokens=False)
        except (UnicodeError, TypeError) as error:  # half of a surrogate pair
            raise InvalidText("The text holds a broken character. Type it again.") from error
        except BaseException as error:
            # tokenizers raises bare exceptions, and some that are no Exception
            if isinstance(error, Exception) or type(error).__name__ == PANIC:
                raise _unreadable(self._folder, error) from error
            raise
        return tuple(encoding.ids)


class TextFeed:
    """Ids of a text that arrives in pieces; together exactly the ids of the whole text.

    A word is held back until its end is certain; `close` returns the rest.
    """

    def __init__(self, encode: Callable[[str], tuple[int, ...]]) -> None:
        self._encode = encode
        self._held = ""

    def append(self, text: str) -> tuple[int, ...]:
        searched = max(len(self._held), 1)  # earlier positions were already rejected
        self._held += text
        cut = last_cut(self._held, searched)
        ready, self._held = self._held[:cut], self._held[cut:]
        return self._encode(ready) if ready else ()

    @property
    def held(self) -> int:
        """Characters at the end whose ids are not certain."""
        return len(self._held)

    def drop(self, count: int) -> None:
        """Forget the last `count` characters, which are held back."""
        self._held = self._held[: len(self._held) - count]

    def close(self, stripped: bool = False) -> tuple[int, ...]:
        """`stripped`: without the space at the end, all of which is held back."""
        rest, self._held = self._held.rstrip() if stripped else self._held, ""
        return self._encode(rest) if rest else ()


def last_cut(text: str, start: int = 1) -> int:
    """The last position, from `start` on, where a cut changes no ids; 0 if there is none.

    A cut is safe between a letter or digit and a sign or space: no word of the tokenizer contains
    such a boundary, and under Unicode normalisation only marks and letters combine with the
    character before them.
    """
    for at in range(len(text) - 1, start - 1, -1):
        if _category(text[at - 1]) in WORDLIKE and _category(text[at]) in SIGNS:
            return at
    return 0


def _category(character: str) -> str:
    """The Unicode category: the first letter for L, N, P, S and Z, both letters otherwise."""
    name = unicodedata.category(character)
    return name if name[0] in "CM" else name[0]


def _version(folder: Path) -> tuple[tuple[int, int, int], ...]:
    """Other numbers for other files of the same names."""
    states = [path.stat() for path in (folder / name for name in FILES) if path.is_file()]
    return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in states)


@lru_cache(KEPT)
def _load(folder: Path, version: tuple[tuple[int, int, int], ...]) -> tuple[Tokenizer, int]:
    """The tokenizer and its size."""
    try:
        if (folder / WHOLE).is_file():
            return _from_json(folder / WHOLE)
        return _from_vocabulary(folder)
    except CheckpointError:
        raise
    except Exception as error:  # tokenizers raises bare exceptions
        raise _unreadable(folder, error) from error


def _unreadable(folder: Path, error: BaseException) -> CheckpointError:
    return CheckpointError(
        "The tokenizer in {folder} cannot be read ({error}). Download the checkpoint again.",
        folder=folder,
        error=str(error),
    )


def _from_json(path: Path) -> tuple[Tokenizer, int]:
    _check_size(path)
    raw: dict[str, Any] = json.loads(path.read_text("utf-8"))
    _check_normalizer(raw.get("normalizer"), path)
    raw.update(added_tokens=[], truncation=None, padding=None, post_processor=None)
    tokenizer = Tokenizer.from_str(json.dumps(raw, ensure_ascii=False))  # escapes take longer
    words = raw["model"]["vocab"]
    if not isinstance(words, dict):  # slower, but of every kind of model
        words = tokenizer.get_vocab(with_added_tokens=False)
    return tokenizer, _size(words)


def _size(words: dict[str, int]) -> int:
    return 1 + max(words.values(), default=-1)


def _check_normalizer(normalizer: Any, path: Path) -> None:
    """Raises CheckpointError for one that may multiply a text."""
    several = isinstance(normalizer, dict) and normalizer.get("type") == "Sequence"
    parts = normalizer["normalizers"] if several else [normalizer] if normalizer else []
    kinds = [part["type"] for part in parts]
    unknown = [kind for kind in kinds if kind not in NORMALIZERS]
    if unknown or len(kinds) > MOST_NORMALIZERS:
        raise CheckpointError(
            "{path} changes text in a way that is not supported ({kind}). Use the published "
            "tokenizer.",
            path=path,
            kind=str(unknown[0])[:40] if unknown else len(kinds),
        )


def _from_vocabulary(folder: Path) -> tuple[Tokenizer, int]:
    paths = folder / WORDS_FILE, folder / MERGES_FILE
    for path in paths:
        if not path.is_file():
            raise CheckpointError(
                "{folder} has no tokenizer: neither tokenizer.json nor {name} is there. "
                "Download the checkpoint again.",
                folder=folder,
                name=path.name,
            )
        _check_size(path)
    tokenizer = Tokenizer(models.BPE.from_file(*map(str, paths)))
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(WORDS), "isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_])
    return tokenizer, _size(json.loads(paths[0].read_text("utf-8")))


def _check_size(path: Path) -> None:
    if path.stat().st_size > LARGEST_FILE:
        raise CheckpointError(
            "{path} is larger than any tokenizer. Is it the right file?", path=path
        )
