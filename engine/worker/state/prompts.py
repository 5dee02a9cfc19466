"""Lays a prompt out row by row as the reference package does, and embeds the rows.

Each row is a text embedding plus a codec embedding, a given tensor (a speaker embedding, a learned
row, a frame of a reference), or nothing. In the streamed layout the body's text, and the text after
it, is the slot's text track, which may still grow. Knows no slots.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.checkpoints.checkpoint import SpecialIds
from engine.model.talker import Talker
from engine.plan import Prompt
from engine.types import Codes, Rows
from engine.worker.lru_cache import LRUCache
from engine.worker.staging import Numbers

NOTHING, GIVEN = -1, -2  # in place of a codec id
MAX_CACHED = 32  # runs of given rows: a vector has 4 KiB, ten seconds of reference 500 KiB


def to_device(values: object, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A copy of host numbers on the device, without waiting for the device."""
    tensor = torch.tensor(values, dtype=dtype)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def embed_rows(talker: Talker, texts: Tensor, codes: Tensor, given: Tensor) -> Tensor:
    """Text ids and codes [...], and given rows [..., width], to prompt rows [..., width]."""
    return talker.embed_text(texts) + _embed_codes(talker, codes, given)


def _embed_codes(talker: Talker, codes: Tensor, given: Tensor) -> Tensor:
    rows, codes = talker.embed_first(codes.clamp(min=0)), codes[..., None]
    return torch.where(codes == GIVEN, given, rows).masked_fill(codes == NOTHING, 0)


@dataclass(frozen=True, eq=False)
class PromptRows:
    talker: Talker  # embeds the rows
    ids: Numbers  # [2, rows] text ids, and codes (or NOTHING, GIVEN)
    given: tuple[tuple[int, Tensor], ...]  # (first row, given rows [n, width])
    body: int  # first row whose text is the track's; len(self) without a track
    track_ids: tuple[int, ...]  # the track's ids so far

    def __len__(self) -> int:
        return int(self.ids.shape[1])

    def add_text(self, texts: int, more: Sequence[int]) -> None:
        """Text that follows `texts` ids of the track: fill the text of the body's rows."""
        first = self.body + texts
        if first < len(self):
            self.ids[0, first : first + len(more)] = more[: len(self) - first]

    def copy_given(self, start: int, stop: int, into: Tensor) -> None:
        """Copy given rows among rows [start, stop) to their places in `into` [T, width]."""
        for first, rows in self.given:
            low, high = max(first, start), min(first + len(rows), stop)
            if low < high:
                into[low - start : high - start] = rows[low - first : high - first]

    def embed(self, start: int, stop: int) -> Tensor:
        """Embed rows [start, stop): [T, width]."""
        return embed_rows(self.talker, *self._parts(start, stop))

    def _parts(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs of `embed_rows` for rows [start, stop)."""
        like = self.talker.codec_head.weight
        given = like.new_zeros(stop - start, like.shape[1])
        self.copy_given(start, stop, given)
        texts, codes = to_device(self.ids[:, start:stop], like.device)
        return texts, codes, given


class Embedder:
    """Lays out the prompts of one talker."""

    def __init__(self, talker: Talker, ids: SpecialIds) -> None:
        self._talker, self._ids = talker, ids
        self._like = talker.codec_head.weight  # [codes, width]
        pad = to_device((ids.tts_pad,), self._like.device)
        self.pad = talker.embed_text(pad)[0]  # [width]
        self._cache: LRUCache[Hashable, Tensor] = LRUCache(MAX_CACHED)

    def layout(self, prompts: Sequence[Prompt]) -> list[PromptRows]:
        return [self._layout(prompt) for prompt in prompts]

    def ended(self, ids: Sequence[int], closed: bool) -> tuple[int, ...]:
        """Text ids, with the end of text after them if the text is closed."""
        return (*ids, self._ids.tts_eos) if closed else tuple(ids)

    def _layout(self, prompt: Prompt) -> PromptRows:
        """Instruction, role, language and speaker; then the text, or the codes alone."""
        ids, spoken = self._ids, self._spoken(prompt)
        head, tags = (*prompt.instruct_ids, *prompt.role_ids), self._tags(prompt)
        frames = len(prompt.reference.codes) if prompt.reference else 0
        codes = [ids.codec_bos, *[GIVEN] * frames]
        texts = [*head, *[ids.tts_pad] * len(tags), ids.tts_bos]
        beside = [*[NOTHING] * len(head), *tags, ids.codec_pad]
        if streamed := prompt.layout == "streamed":
            body = len(texts)
        else:
            texts += spoken
            beside += [ids.codec_pad] * len(spoken)
            body = len(texts) + len(codes)
        table = np.array((texts + [ids.tts_pad] * len(codes), beside + codes), np.int64)
        speaker = len(head) + len(tags) - len(_speaker_rows(prompt))
        given = self._given(prompt, speaker, table.shape[1] - frames)
        laid = PromptRows(self._talker, table, given, body, spoken if streamed else ())
        laid.add_text(0, laid.track_ids)
        return laid

    def _tags(self, prompt: Prompt) -> list[int]:
        """Codec ids for language and speaker."""
        ids = self._ids
        tags = [ids.nothink, ids.think_bos, ids.think_eos]
        if prompt.language_id is not None:
            tags = [ids.think, ids.think_bos, prompt.language_id, ids.think_eos]
        if prompt.speaker_id is not None:
            tags.append(prompt.speaker_id)
        return tags + [GIVEN] * len(_speaker_rows(prompt))

    def _spoken(self, prompt: Prompt) -> tuple[int, ...]:
        """Ids of the spoken text, after those of the reference's transcript."""
        before = prompt.reference.text_ids if prompt.reference else ()
        return self.ended((*before, *prompt.text_ids), closed=not prompt.open_text)

    def _given(self, prompt: Prompt, speaker: int, frames: int) -> tuple[tuple[int, Tensor], ...]:
        """The voice from row `speaker` on, and the reference's frames from row `frames` on."""
        given, reference, voice = [], prompt.reference, _speaker_rows(prompt)
        if len(voice):
            given.append((speaker, self._cached(voice.tobytes(), lambda: self._rows(voice))))
        if reference is not None:
            rows = self._cached(reference.key, lambda: self._embed_frames(reference.codes))
            given.append((frames, rows))
        return tuple(given)

    def _cached(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        return self._cache.get(key, make, lambda rows: 1)

    def _rows(self, voice: Rows) -> Tensor:
        return to_device(voice, self._like.device).to(self._like.dtype)

    def _embed_frames(self, codes: Codes) -> Tensor:
        """Frames [frames, 16] -> [frames, width]."""
        return self._talker.embed_codes(to_device(codes, self._like.device))


def _speaker_rows(prompt: Prompt) -> Rows:
    """The vector and the learned rows after it: [rows, width]."""
    if prompt.vector is None:
        return np.zeros((0, 0), np.float32)
    vector = prompt.vector[None]
    return vector if prompt.rows is None else np.concatenate((vector, prompt.rows))
