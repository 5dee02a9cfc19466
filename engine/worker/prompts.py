"""A prompt as rows of embeddings, exactly as the reference lays them out.

Each row is a text embedding plus a codec embedding; the first rows are text alone. With a
streamed layout the body's rows are codec alone: their text, and what trails after them, is
the slot's text track, which may still be growing. Knows no slots.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.checkpoint import SpecialIds
from engine.model.talker import Talker
from engine.plan import Prompt

KEPT_PREFIXES = 64  # voices, some 20 KiB each


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
        self._beside_text = self._codec((ids.codec_pad,))  # [1, width]
        self._bos = self._codec((ids.codec_bos,))
        self._padded_bos = self.pad + self._bos
        self._prefixes: OrderedDict[Hashable, Tensor] = OrderedDict()

    def text(self, ids: Sequence[int]) -> Tensor:
        """[texts] -> [texts, width]."""
        return self._talker.embed_text(to_device(ids, self._device, torch.long))

    def track(self, ids: Sequence[int], closed: bool) -> Tensor:
        """Text that is spoken, with the end of the text after it when it is closed."""
        return self.text(self._ended(ids, closed))

    def layout(self, prompts: Sequence[Prompt]) -> list[PromptRows]:
        """The texts of all of them are embedded together."""
        texts = [self._spoken(prompt) for prompt in prompts]
        together = self.text([number for text in texts for number in text])
        lengths = [len(text) for text in texts]
        spoken, rows = together.split(lengths), (together + self._beside_text).split(lengths)
        return [self._laid(*each) for each in zip(prompts, spoken, rows, strict=True)]

    def _laid(self, prompt: Prompt, spoken: Tensor, rows: Tensor) -> PromptRows:
        """`rows`: the text as it stands where nothing is spoken yet."""
        prefix, codes = self._prefix(prompt), self._codes(prompt)
        if prompt.layout == "streamed":
            return PromptRows(torch.cat((prefix, codes)), len(prefix), spoken)
        after = self.pad + codes if prompt.reference else self._padded_bos
        whole = torch.cat((prefix, rows, after))
        return PromptRows(whole, len(whole), spoken[:0])

    def _prefix(self, prompt: Prompt) -> Tensor:
        """The rows before the body, which are a voice's own: kept of those used of late."""
        vector = None if prompt.vector is None else prompt.vector.tobytes()
        key = prompt.instruct_ids, prompt.role_ids, prompt.language_id, prompt.speaker_id, vector
        if key not in self._prefixes:
            self._prefixes[key] = self._voice(prompt)
            if len(self._prefixes) > KEPT_PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(key)
        return self._prefixes[key]

    def _voice(self, prompt: Prompt) -> Tensor:
        """Instruction, role, language and speaker."""
        column = self._column(prompt)  # [columns, width]
        head = (*prompt.instruct_ids, *prompt.role_ids)
        beside = self.text((*(self._ids.tts_pad,) * (len(column) - 1), self._ids.tts_bos))
        return torch.cat((self.text(head), beside + column))

    def _column(self, prompt: Prompt) -> Tensor:
        """Language and speaker."""
        ids = self._ids
        tags = [ids.nothink, ids.think_bos, ids.think_eos]
        if prompt.language_id is not None:
            tags = [ids.think, ids.think_bos, prompt.language_id, ids.think_eos]
        if prompt.speaker_id is not None:
            tags.append(prompt.speaker_id)
        rows = [self._codec(tags), self._beside_text]
        if prompt.vector is not None:
            rows.insert(1, to_device(prompt.vector, self._device).to(self._dtype)[None])
        return torch.cat(rows)

    def _spoken(self, prompt: Prompt) -> Sequence[int]:
        """Ids: with a reference, first what was said in it."""
        before = prompt.reference.text_ids if prompt.reference else ()
        return self._ended((*before, *prompt.text_ids), closed=not prompt.open_text)

    def _ended(self, ids: Sequence[int], closed: bool) -> Sequence[int]:
        return (*ids, self._ids.tts_eos) if closed else ids

    def _codes(self, prompt: Prompt) -> Tensor:
        """[1 + reference frames, width]"""
        if prompt.reference is None:
            return self._bos
        codes = to_device(prompt.reference.codes, self._device)
        return torch.cat((self._bos, self._talker.embed_codes(codes)))

    def _codec(self, ids: Sequence[int]) -> Tensor:
        return self._talker.embed_first(to_device(ids, self._device, torch.long))
