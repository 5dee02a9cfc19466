"""Batches for the talker, laid out on the device exactly as engine.worker.prompts lays out one.

A batch is a handful of integer tensors, a row of the sequence each: a text id, a special
code, a frame of the code tape, or the speaker's vector. What becomes of them is the
trainer's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from training import recipe
from training.library import CODE, FRAMES, HUSH, SPEAKER, STYLE, TEXT, TEXT_LENGTH, Ids, Library
from training.speakers import STYLES, TRAINED, describe, everyone

NONE = -1
WORDINGS = 16  # instructions a speaker


@dataclass(frozen=True)
class TextIds:
    """The checkpoint's special text ids and the role rows."""

    pad: int
    bos: int
    eos: int
    role: list[int]
    user: list[int]  # before an instruction
    close: list[int]  # after it


@dataclass(frozen=True, eq=False)
class Batch:
    text: Tensor  # [B, T] text ids, NONE where a row has none
    code: Tensor  # [B, T] special codes of codebook 0, or NONE
    frame: Tensor  # [B, T] rows of the code tape that a row feeds back, or NONE
    speaker: Tensor  # [B, T] whether the row carries the vector
    vector: Tensor  # [B, width]
    target: Tensor  # [B, T] rows of the code tape to be predicted; NONE: nothing
    ends: Tensor  # [B, T] whether the end of speech is to be predicted


class Instructions:
    """Descriptions of every trained speaker and wordings of every style, as ids on a tape."""

    def __init__(self, ids: Ids, special: TextIds, device: torch.device, seed: int = 0) -> None:
        random, texts = Random(seed), []
        for speaker in everyone()[:TRAINED]:
            texts += [describe(speaker, random) for _ in range(WORDINGS)]
        for style in STYLES[1:]:
            texts += [random.choice(style.instructions) for _ in range(WORDINGS)]
        wrapped = [special.user + told + special.close for told in ids(texts)]
        lengths = torch.tensor([len(told) for told in wrapped], device=device)
        self.length = lengths.view(-1, WORDINGS)  # speakers, then styles from 1 on
        self.start = (lengths.cumsum(0) - lengths).view(-1, WORDINGS)
        self.tape = torch.tensor([token for told in wrapped for token in told], device=device)

    def draw(self, row: Tensor) -> tuple[Tensor, Tensor]:
        """Start and length of one wording of each row [B]."""
        pick = torch.randint(WORDINGS, row.shape, device=row.device)
        return self.start[row, pick], self.length[row, pick]


class Batcher:
    def __init__(self, library: Library, instructions: Instructions, special: TextIds) -> None:
        self.library, self.instructions, self.special = library, instructions, special
        self.role = torch.tensor(special.role, device=library.device)
        self.means = torch.zeros(TRAINED, library.vectors.shape[1], device=library.device)
        self.by_speaker = torch.zeros(TRAINED + 1, dtype=torch.long, device=library.device)
        self.order = torch.zeros(0, dtype=torch.long, device=library.device)

    def refresh(self) -> None:
        """After the library has grown: mean vectors, and plain utterances by speaker."""
        table = self.library.table
        plain = (table[:, STYLE] == 0).nonzero()[:, 0]
        who = table[plain, SPEAKER]
        counts = torch.bincount(who, minlength=TRAINED)
        sums = torch.zeros_like(self.means).index_add_(0, who, self.library.vectors[plain])
        self.means = sums / counts.clamp(min=1)[:, None]
        self.order = plain[who.argsort(stable=True)]
        self.by_speaker[1:] = counts.cumsum(0)

    def draw(self, batch: int, in_context: bool) -> Batch:
        library = self.library
        rows = self._alike(batch, in_context)
        table = library.table[rows]
        reference = self._other(table[:, SPEAKER]) if in_context else rows
        vector = self._vectors(rows, reference, table[:, SPEAKER], in_context)
        design = self._chance(batch, 0.25) & (not in_context)
        return self._lay_out(table, library.table[reference], vector, design, in_context)

    def _chance(self, batch: int, share: float) -> Tensor:
        return torch.rand(batch, device=self.library.device) < share

    def _alike(self, batch: int, in_context: bool) -> Tensor:
        """Utterances of about one length; styles need instructions, so not in context."""
        device, table = self.library.device, self.library.table
        rows = torch.randint(len(table), (8 * batch,), device=device)
        if in_context:
            rows = self.order[torch.randint(len(self.order), (8 * batch,), device=device)]
        rows = rows[table[rows, FRAMES].argsort()]
        start = int(torch.randint(7 * batch, ()))
        return rows[start : start + batch]

    def _other(self, speaker: Tensor) -> Tensor:
        """Another plain utterance of each speaker [B] (by chance the same one)."""
        first, after = self.by_speaker[speaker], self.by_speaker[speaker + 1]
        chance = torch.rand(speaker.shape, device=speaker.device)
        return self.order[first + (chance * (after - first)).long()]

    def _vectors(
        self, rows: Tensor, reference: Tensor, speaker: Tensor, in_context: bool
    ) -> Tensor:
        """The speaker's mean, another utterance's or the reference's vector, a little moved."""
        vectors = self.library.vectors
        if in_context:
            return vectors[reference]
        chance = torch.rand(len(rows), 1, device=rows.device)
        vector = torch.where(chance < 0.45, self.means[speaker], vectors[self._other(speaker)])
        return vector + 0.03 * torch.randn_like(vector)

    def _lay_out(
        self, table: Tensor, ref: Tensor, vector: Tensor, design: Tensor, in_context: bool
    ) -> Batch:
        batch, device = len(table), table.device
        styled = table[:, STYLE] > 0
        told = torch.where(styled & ~design, TRAINED + table[:, STYLE] - 1, table[:, SPEAKER])
        told_start, told_length = self.instructions.draw(told)
        told_length = told_length * (design | styled)
        english = (~self._chance(batch, 0.15)).long()
        whole = self._chance(batch, 0.5).long()
        spoken = (~design).long()
        ref_text = ref[:, TEXT_LENGTH] * in_context
        hush = HUSH * self._chance(batch, 0.5).long()
        ref_frames = (ref[:, FRAMES] + hush) * in_context
        texts = ref_text + table[:, TEXT_LENGTH] + 1  # with tts_eos
        column = 3 + english + spoken + 1
        head = told_length + len(self.role) + column
        bos = head + whole * texts  # the row of bos; frames follow it
        total = bos + 1 + ref_frames + table[:, FRAMES]
        p = torch.arange(int(total.max()), device=device)[None]

        def at(x: Tensor) -> Tensor:
            return x[:, None]

        # text: instruction, role, column, then the text beside pads or beside the frames
        j = p - at(head)  # into the body
        u = p - at(bos)  # 0: bos, then frames
        k = torch.where(at(whole) > 0, torch.where(u < 0, j, texts.max() + 1), u)
        text = self._text(k, at(ref_text), at(texts), at(ref[:, TEXT]), at(table[:, TEXT]))
        c = p - at(told_length + len(self.role))  # into the column
        before = torch.where(c == at(column) - 1, self.special.bos, self.special.pad)
        text = torch.where(j < 0, before, text)
        role = self.role[(p - at(told_length)).clamp(0, len(self.role) - 1)]
        text = torch.where(c < 0, role, text)
        told_ids = self.instructions.tape[(at(told_start) + p).clamp(max=len(self.instructions.tape) - 1)]
        text = torch.where(p < at(told_length), told_ids, text)

        code = self._column(c, at(english), at(column))
        code = torch.where((j >= 0) & (u < 0), recipe.IDS["codec_pad_id"], code)
        code = torch.where(u == 0, recipe.IDS["codec_bos_id"], code)
        speaker = (at(spoken) > 0) & (c == at(column) - 2)
        code = torch.where(speaker, NONE, code)

        f = u - 1  # the frame a row feeds back
        frame = self._frame(f, at(ref_frames), at(ref[:, CODE]), at(table[:, CODE]), at(table[:, FRAMES]))
        n = u - at(ref_frames)  # the target frame that follows a row
        frames = at(table[:, FRAMES])
        target = torch.where((n >= 0) & (n < frames), at(table[:, CODE]) + n, NONE)
        past = p >= at(total)
        text = torch.where(past, NONE, text)
        return Batch(text, code, frame, speaker, vector, target, n == frames)

    def _text(self, k: Tensor, ref: Tensor, texts: Tensor, ref_start: Tensor, start: Tensor) -> Tensor:
        """Text number k of reference and target together: ids, then tts_eos, then tts_pad."""
        tape = self.library.text
        place = torch.where(k < ref, ref_start + k, start + k - ref).clamp(0, len(tape) - 1)
        ids = torch.where(k < texts - 1, tape[place], self.special.pad)
        return torch.where(k == texts - 1, self.special.eos, ids)

    def _column(self, c: Tensor, english: Tensor, column: Tensor) -> Tensor:
        ids = recipe.IDS
        first = torch.where(english > 0, ids["codec_think_id"], ids["codec_nothink_id"])
        code = torch.full_like(c, NONE)
        code = torch.where(c == 0, first, code)
        code = torch.where(c == 1, ids["codec_think_bos_id"], code)
        code = torch.where((c == 2) & (english > 0), recipe.ENGLISH, code)
        code = torch.where(c == 2 + english, ids["codec_think_eos_id"], code)
        return torch.where(c == column - 1, ids["codec_pad_id"], code)

    def _frame(self, f: Tensor, ref: Tensor, ref_start: Tensor, start: Tensor, frames: Tensor) -> Tensor:
        place = torch.where(f < ref, ref_start + f, start + f - ref)
        return torch.where((f >= 0) & (f < ref + frames), place, NONE)
