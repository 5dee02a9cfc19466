"""A prompt as ids, row by row, exactly as the reference lays them out; embedded where it runs.

Each row is a text embedding plus what stands beside it: a codec embedding, a row that is given
as a tensor (a speaker's vector, a frame of a recording), or nothing. With a streamed layout
the body's text, and what trails after it, is the slot's text track, which may still be
growing. Knows no slots.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.checkpoints.checkpoint import SpecialIds
from engine.model.talker import Talker
from engine.plan import Prompt
from engine.types import Codes, Vector
from engine.worker.staging import Numbers

NOTHING, GIVEN = -1, -2  # in place of a codec id
KEPT = 32  # runs of given rows: a vector has some 4 KiB, ten seconds of a recording 500


def to_device(values: object, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A copy of host numbers on the device, without waiting for the device."""
    tensor = torch.tensor(values, dtype=dtype)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def embedded(talker: Talker, texts: Tensor, codes: Tensor, given: Tensor) -> Tensor:
    """Rows [..., width] of text ids and of codes [...], beside them given rows [..., width]."""
    return talker.embed_text(texts) + _beside(talker, codes, given)


def _beside(talker: Talker, codes: Tensor, given: Tensor) -> Tensor:
    rows, codes = talker.embed_first(codes.clamp(min=0)), codes[..., None]
    return torch.where(codes == GIVEN, given, rows).masked_fill(codes == NOTHING, 0)


@dataclass(frozen=True, eq=False)
class PromptRows:
    talker: Talker  # that embeds them
    ids: Numbers  # [2, rows] text, and the code beside it
    given: tuple[tuple[int, Tensor], ...]  # runs [n, width] of given rows, and where they begin
    body: int  # from here on the text is the track's; the number of rows where none is
    spoken: tuple[int, ...]  # the track's ids so far

    def __len__(self) -> int:
        return int(self.ids.shape[1])

    def hear(self, texts: int, more: Sequence[int]) -> None:
        """Text that comes behind `texts` of the track: the body's rows take what they can."""
        first = self.body + texts
        if first < len(self):
            self.ids[0, first : first + len(more)] = more[: len(self) - first]

    def give(self, start: int, stop: int, into: Tensor) -> None:
        """Copy what is given of rows [start, stop) to where they stand: into [T, width]."""
        for first, rows in self.given:
            low, high = max(first, start), min(first + len(rows), stop)
            if low < high:
                into[low - start : high - start] = rows[low - first : high - first]

    def cut(self, start: int, stop: int) -> Tensor:
        """Rows [start, stop) as tensors: [T, width]."""
        return embedded(self.talker, *self._parts(start, stop))

    @property
    def rows(self) -> Tensor:
        """[rows, width], the body without its text."""
        _, codes, given = self._parts(self.body, len(self))
        return torch.cat((self.cut(0, self.body), _beside(self.talker, codes, given)))

    @property
    def track(self) -> Tensor:
        """[texts, width] so far."""
        device = self.talker.codec_head.weight.device
        return self.talker.embed_text(to_device(self.spoken, device, torch.long))

    def _parts(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor]:
        """What `embedded` takes of rows [start, stop)."""
        like = self.talker.codec_head.weight
        given = like.new_zeros(stop - start, like.shape[1])
        self.give(start, stop, given)
        texts, codes = to_device(self.ids[:, start:stop], like.device)
        return texts, codes, given


class Embedder:
    """Lays out the prompts of one talker."""

    def __init__(self, talker: Talker, ids: SpecialIds) -> None:
        self._talker, self._ids = talker, ids
        self._like = talker.codec_head.weight  # [codes, width]
        pad = to_device((ids.tts_pad,), self._like.device)
        self.pad = talker.embed_text(pad)[0]  # [width]
        self._kept: OrderedDict[Hashable, Tensor] = OrderedDict()

    def layout(self, prompts: Sequence[Prompt]) -> list[PromptRows]:
        return [self._laid(prompt) for prompt in prompts]

    def ended(self, ids: Sequence[int], closed: bool) -> tuple[int, ...]:
        """Text that is spoken, with the end of the text after it when it is closed."""
        return (*ids, self._ids.tts_eos) if closed else tuple(ids)

    def _laid(self, prompt: Prompt) -> PromptRows:
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
        given = self._given(prompt, len(head) + len(tags) - 1, table.shape[1] - frames)
        laid = PromptRows(self._talker, table, given, body, spoken if streamed else ())
        laid.hear(0, laid.spoken)
        return laid

    def _tags(self, prompt: Prompt) -> list[int]:
        """Language and speaker."""
        ids = self._ids
        tags = [ids.nothink, ids.think_bos, ids.think_eos]
        if prompt.language_id is not None:
            tags = [ids.think, ids.think_bos, prompt.language_id, ids.think_eos]
        if prompt.speaker_id is not None:
            tags.append(prompt.speaker_id)
        if prompt.vector is not None:
            tags.append(GIVEN)
        return tags

    def _spoken(self, prompt: Prompt) -> tuple[int, ...]:
        """Ids: with a reference, first what was said in it."""
        before = prompt.reference.text_ids if prompt.reference else ()
        return self.ended((*before, *prompt.text_ids), closed=not prompt.open_text)

    def _given(self, prompt: Prompt, speaker: int, frames: int) -> tuple[tuple[int, Tensor], ...]:
        """A vector at row `speaker`, a recording's frames from row `frames` on."""
        given, vector, reference = [], prompt.vector, prompt.reference
        if vector is not None:
            given.append((speaker, self._keep(vector.tobytes(), lambda: self._row(vector))))
        if reference is not None:
            rows = self._keep(reference.key, lambda: self._heard(reference.codes))
            given.append((frames, rows))
        return tuple(given)

    def _keep(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """Voices come again: those used of late are kept."""
        if key not in self._kept:
            self._kept[key] = make()
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _row(self, vector: Vector) -> Tensor:
        return to_device(vector, self._like.device).to(self._like.dtype)[None]

    def _heard(self, codes: Codes) -> Tensor:
        """Frames [frames, 16] -> [frames, width]."""
        return self._talker.embed_codes(to_device(codes, self._like.device))
