"""A prompt as rows of embeddings, exactly as the reference lays them out.

Each row is a text embedding plus a codec embedding; the first rows are text alone. With a
streamed layout the body's rows are codec alone: their text, and what trails after them, is
the slot's text track, which may still be growing. Knows no slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.checkpoint import SpecialIds
from engine.model.talker import Talker
from engine.plan import Prompt


@dataclass(frozen=True)
class PromptRows:
    rows: Tensor  # [rows, width]
    body: int  # from here on the track's text is added; the number of rows where none is
    track: Tensor  # [texts, width] so far

    def __len__(self) -> int:
        return len(self.rows)


def to_device(values: object, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A copy of host numbers on the device, without waiting for the device."""
    tensor = torch.tensor(values, dtype=dtype)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


class Embedder:
    """Lays out the prompts of one talker."""

    def __init__(self, talker: Talker, ids: SpecialIds) -> None:
        self._talker, self._ids = talker, ids
        self._device = talker.codec_head.weight.device
        self._dtype = talker.codec_head.weight.dtype
        self.pad, self.end = self.text((ids.tts_pad, ids.tts_eos)).unbind(0)  # [width] each

    def text(self, ids: Sequence[int]) -> Tensor:
        """[texts] -> [texts, width]."""
        return self._talker.embed_text(to_device(ids, self._device, torch.long))

    def track(self, ids: Sequence[int], closed: bool) -> Tensor:
        """Text that is spoken, with the end of the text after it when it is closed."""
        return self.text((*ids, self._ids.tts_eos) if closed else ids)

    def layout(self, prompt: Prompt) -> PromptRows:
        head = (*prompt.instruct_ids, *prompt.role_ids)
        column = self._column(prompt)  # [columns, width]
        spoken = self._spoken(prompt)
        codes = self._codes(prompt)  # [1 + reference frames, width]
        beside = self.text((*(self._ids.tts_pad,) * (len(column) - 1), self._ids.tts_bos))
        rows = [self.text(head), beside + column]
        if prompt.layout == "streamed":
            rows = torch.cat((*rows, codes))
            return PromptRows(rows, len(rows) - len(codes), spoken)
        rows += [spoken + self._codec((self._ids.codec_pad,)), self.pad + codes]
        whole = torch.cat(rows)
        return PromptRows(whole, len(whole), spoken[:0])

    def _column(self, prompt: Prompt) -> Tensor:
        """Language and speaker."""
        ids = self._ids
        tags = [ids.nothink, ids.think_bos, ids.think_eos]
        if prompt.language_id is not None:
            tags = [ids.think, ids.think_bos, prompt.language_id, ids.think_eos]
        if prompt.speaker_id is not None:
            tags.append(prompt.speaker_id)
        rows = [self._codec(tags), self._codec((ids.codec_pad,))]
        if prompt.vector is not None:
            rows.insert(1, to_device(prompt.vector, self._device).to(self._dtype)[None])
        return torch.cat(rows)

    def _spoken(self, prompt: Prompt) -> Tensor:
        before = prompt.reference.text_ids if prompt.reference else ()
        return self.track((*before, *prompt.text_ids), closed=not prompt.open_text)

    def _codes(self, prompt: Prompt) -> Tensor:
        start = self._codec((self._ids.codec_bos,))
        if prompt.reference is None:
            return start
        codes = to_device(prompt.reference.codes, self._device)
        return torch.cat((start, self._talker.embed_codes(codes)))

    def _codec(self, ids: Sequence[int]) -> Tensor:
        return self._talker.embed_first(to_device(ids, self._device, torch.long))
