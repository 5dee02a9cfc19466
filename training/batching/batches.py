"""Batches for the talker, laid out on the device as engine.worker.state.prompts does one prompt.

A batch is a few integer tensors over the rows of each sequence: a text id, a special code, a frame
of the code tape, or the speaker embedding. Embedding and losses are elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random

import torch
from torch import Tensor

from training import model_config
from training.batching.encoding_batches import TRAILING_SILENCE
from training.batching.talker_dataset import (
    CODE,
    FRAMES,
    SPEAKER,
    STYLE,
    TEXT,
    TEXT_LENGTH,
    TalkerDataset,
    Tokenize,
)
from training.data.speakers import FIRST_OTHER, NAMED, STYLES, TRAINED, all_speakers
from training.data.speech_format import PHONES_A_FRAME
from training.data.voice_descriptions import describe

NONE = -1
WORDINGS = 48  # instructions per speaker
REFERENCE_CANDIDATES = 16  # of which the one at the most similar speed is used
DESIGN_SHARE = 0.25  # of the sequences without an instruction have a description, no voice
TARGET_SHARE = 0.4  # of the vectors are the speaker's target instead of an utterance's vector
# Of the vectors in context some are up to so far on the way to another voice's: the reference tells
# how the voice sounds, also where the encoder is mistaken.
MISTAKEN_SHARE, MISTAKEN_WAY = 0.3, 0.7


@dataclass(frozen=True)
class Size:
    """A bucket of utterances of similar length, so that few rows of a batch are empty."""

    most: int  # text ids and frames together
    alone: int  # rows of a sequence, tags and an instruction included
    in_context: int  # the same with a reference before it


SIZES = (Size(58, 96, 192), Size(106, 144, 256), Size(100_000, 224, 352))


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
    fed: Tensor  # [B, T, 16] the frame that a row feeds back, or NONE
    speaker: Tensor  # [B, T] whether the row carries the vector
    vector: Tensor  # [B, width]
    target: Tensor  # [B, T, 16] the frame to be predicted, or NONE
    ends: Tensor  # [B, T] whether the end of speech is to be predicted
    phones: Tensor  # [B, T, 4] phones of the frame to be predicted; undefined elsewhere
    spoken_row: Tensor  # [B, T] the row of the text spoken in that frame, NONE if it comes later

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


def blank(batch: int, length: int, device: torch.device) -> Batch:
    """A batch of these sizes in which nothing is said."""
    none = torch.full((batch, length), NONE, device=device)
    frames = torch.full((batch, length, model_config.CODEBOOKS), NONE, device=device)
    false = torch.zeros(batch, length, dtype=torch.bool, device=device)
    vector = torch.zeros(batch, model_config.WIDTH, device=device)
    phones = torch.zeros(batch, length, PHONES_A_FRAME, dtype=torch.uint8, device=device)
    return Batch(none, none, frames, false, vector, frames, false, phones, none)


class Instructions:
    """Descriptions of all trained speakers and wordings of all styles, as ids on a tape."""

    def __init__(
        self,
        ids: Tokenize,
        special: TextIds,
        device: torch.device,
        seed: int = 0,
        wordings: int = WORDINGS,
    ) -> None:
        random, texts = Random(seed), []
        for speaker in all_speakers()[:TRAINED]:
            texts += [describe(speaker, random) for _ in range(wordings)]
        for style in STYLES[1:]:
            texts += [random.choice(style.instructions) for _ in range(wordings)]
        wrapped = [special.user + wording.ids + special.close for wording in ids(texts)]
        lengths = torch.tensor([len(wording) for wording in wrapped], device=device)
        self.length = lengths.view(-1, wordings)  # speakers, then styles from 1 on
        self.start = (lengths.cumsum(0) - lengths).view(-1, wordings)
        self.tape = torch.tensor([token for wording in wrapped for token in wording], device=device)

    def draw(self, row: Tensor) -> tuple[Tensor, Tensor]:
        """Start and length of a random wording for each row [B]."""
        pick = torch.randint(self.length.shape[1], row.shape, device=row.device)
        return self.start[row, pick], self.length[row, pick]


class Batcher:
    def __init__(
        self, dataset: TalkerDataset, instructions: Instructions, special: TextIds
    ) -> None:
        self.dataset, self.instructions, self.special = dataset, instructions, special
        self.role = torch.tensor(special.role, device=dataset.device)
        self.by_speaker = torch.zeros(TRAINED + 1, dtype=torch.long, device=dataset.device)
        self.order = torch.zeros(0, dtype=torch.long, device=dataset.device)
        # For each size: rows of what is said by a vector alone, and of what is said in context.
        self.sizes: list[tuple[Tensor, Tensor]] = []

    def refresh(self) -> None:
        """Index utterances by speaker and by length; called after the dataset has grown."""
        table = self.dataset.table
        plain = (table[:, STYLE] == 0).nonzero()[:, 0]
        who = table[plain, SPEAKER]
        counts = torch.bincount(who, minlength=TRAINED)
        self.order = plain[who.argsort(stable=True)]
        self.by_speaker[1:] = counts.cumsum(0)
        need = table[:, TEXT_LENGTH] + table[:, FRAMES]
        number = torch.bucketize(need, torch.tensor([s.most for s in SIZES], device=need.device))
        by_size = [number == index for index in range(len(SIZES))]
        # Vectors tell mixtures of the first styles apart; any other voice needs its recording.
        # A named voice is requested by its name, and needs no description.
        alone = table[:, SPEAKER] < FIRST_OTHER
        in_context = (table[:, STYLE] == 0) & (table[:, SPEAKER] >= len(NAMED))
        self.sizes = [
            ((size & alone).nonzero()[:, 0], (size & in_context).nonzero()[:, 0])
            for size in by_size
        ]

    def draw_size(self, rows: int, in_context: bool) -> Batch:
        """A batch of one size with about `rows` rows; all utterances are equally likely."""
        lengths = [size.in_context if in_context else size.alone for size in SIZES]
        among = [pair[in_context] for pair in self.sizes]
        share = [len(part) * length for part, length in zip(among, lengths, strict=True)]
        index = int(torch.multinomial(torch.tensor(share, dtype=torch.float), 1))
        return self.draw(rows // lengths[index], in_context, lengths[index], among[index])

    def draw(self, batch: int, in_context: bool, length: int, among: Tensor) -> Batch:
        """Random utterances of `among`, cut or padded to `length` rows.

        Styles need instructions, so `among` holds utterances without a style if `in_context`.
        """
        dataset = self.dataset
        rows = among[torch.randint(len(among), (batch,), device=dataset.device)]
        table = dataset.table[rows]
        reference = self._reference(rows, table[:, SPEAKER]) if in_context else rows
        vector = self._vectors(rows, reference, table[:, SPEAKER], in_context)
        # A description says nothing of a manner of speaking.
        design = self._chance((batch,), DESIGN_SHARE) & (table[:, STYLE] == 0) & (not in_context)
        return self._lay_out(table, dataset.table[reference], vector, design, in_context, length)

    def _chance(self, size: tuple[int, ...], share: float) -> Tensor:
        return torch.rand(size, device=self.dataset.device) < share

    def _reference(self, rows: Tensor, speaker: Tensor) -> Tensor:
        """Another utterance of each speaker [B] at similar speed, since speed changes the voice."""
        some = self._other(speaker[:, None].expand(-1, REFERENCE_CANDIDATES))
        apart = (self.dataset.speeds[some] - self.dataset.speeds[rows, None]).abs()
        nearest = (apart + (some == rows[:, None])).argmin(1, keepdim=True)
        return some.gather(1, nearest)[:, 0]

    def _other(self, speaker: Tensor) -> Tensor:
        """A random utterance without a style of each speaker [...]; may be the same one."""
        first, after = self.by_speaker[speaker], self.by_speaker[speaker + 1]
        chance = torch.rand(speaker.shape, device=speaker.device)
        return self.order[first + (chance * (after - first)).long()]

    def _vectors(
        self, rows: Tensor, reference: Tensor, speaker: Tensor, in_context: bool
    ) -> Tensor:
        """The reference's vector, sometimes mistaken, or the speaker's target, with or without
        another utterance's error."""
        dataset = self.dataset
        if in_context:
            vectors = dataset.vectors[reference]
            other = vectors[torch.randperm(len(vectors), device=vectors.device)]
            way = MISTAKEN_WAY * torch.rand(len(vectors), 1, device=vectors.device)
            return vectors.lerp(other, way * self._chance((len(vectors), 1), MISTAKEN_SHARE))
        other, target_vector = self._other(speaker), dataset.targets[rows]
        misread = dataset.vectors[other] - dataset.targets[other]
        vector = target_vector + misread * ~self._chance((len(rows), 1), TARGET_SHARE)
        return vector + 0.03 * torch.randn_like(vector)

    def _lay_out(
        self,
        table: Tensor,
        ref: Tensor,
        vector: Tensor,
        design: Tensor,
        in_context: bool,
        length: int,
    ) -> Batch:
        """Columns [B, 1] of lengths and starts against the row numbers [1, length]."""
        table, ref, design = table[..., None], ref[..., None], design[:, None]
        size, device = design.shape, table.device
        p = torch.arange(length, device=device)[None]
        instruct_start, instruct = self._instruction_codes(table, design)
        english = (~self._chance(size, 0.15)).long()
        whole = self._chance(size, 0.5)
        column = 4 + english + (~design)  # tags, speaker, pad
        ref_text = ref[:, TEXT_LENGTH] * in_context
        texts = ref_text + table[:, TEXT_LENGTH] + 1  # with tts_eos
        silence = TRAILING_SILENCE * self._chance(size, 0.5)
        ref_frames = (ref[:, FRAMES] + silence) * in_context
        c = p - instruct - len(self.role)  # into the column
        j = c - column  # into the body
        u = j - whole * texts  # 0: bos, then frames
        k = torch.where(whole, torch.where(u < 0, j, texts), u)  # number of the text beside
        body = self._text(k, ref_text, texts, ref[:, TEXT], table[:, TEXT], silent=whole & (u >= 0))
        text = torch.where(j < 0, self._before(c, column), body)
        text = torch.where(c < 0, self._role(p - instruct), text)
        text = torch.where(p < instruct, self._instruction(instruct_start + p), text)
        speaker = ~design & (c == column - 2)
        code = torch.where(speaker, NONE, self._column(c, english, column))
        code = torch.where((j >= 0) & (u < 0), model_config.IDS["codec_pad_id"], code)
        code = torch.where(u == 0, model_config.IDS["codec_bos_id"], code)
        f, n, frames = u - 1, u - ref_frames, table[:, FRAMES]
        place = torch.where(f < ref_frames, ref[:, CODE] + f, table[:, CODE] + f - ref_frames)
        fed = self._codes(place, (f >= 0) & (f < ref_frames + frames))
        target = self._codes(table[:, CODE] + n, (n >= 0) & (n < frames))
        now = (table[:, CODE] + n).clamp(0, len(self.dataset.phones) - 1)
        number = torch.where(n == frames, texts - 1, ref_text + self.dataset.places[now])
        spoken_row = instruct + len(self.role) + column + number
        spoken_row = torch.where((n >= 0) & (n <= frames) & (spoken_row <= p), spoken_row, NONE)
        text = torch.where(n > frames, NONE, text)
        phones = self.dataset.phones[now]
        return Batch(text, code, fed, speaker, vector, target, n == frames, phones, spoken_row)

    def _instruction_codes(self, table: Tensor, design: Tensor) -> tuple[Tensor, Tensor]:
        """Start and length of each instruction: a design's description or a preset's style."""
        styled = table[:, STYLE] > 0
        row = torch.where(styled & ~design, TRAINED + table[:, STYLE] - 1, table[:, SPEAKER])
        start, length = self.instructions.draw(row)
        return start, length * (design | styled)

    def _before(self, c: Tensor, column: Tensor) -> Tensor:
        return torch.where(c == column - 1, self.special.bos, self.special.pad)

    def _role(self, row: Tensor) -> Tensor:
        return self.role[row.clamp(0, len(self.role) - 1)]

    def _instruction(self, row: Tensor) -> Tensor:
        tape = self.instructions.tape
        return tape[row.clamp(max=len(tape) - 1)]

    def _codes(self, place: Tensor, there: Tensor) -> Tensor:
        tape = self.dataset.codes
        codes = tape[place.clamp(0, len(tape) - 1)].long()  # [B, T, 16]
        return torch.where(there[..., None], codes, NONE)

    def _text(
        self,
        k: Tensor,
        ref: Tensor,
        texts: Tensor,
        ref_start: Tensor,
        start: Tensor,
        silent: Tensor,
    ) -> Tensor:
        """Text id k of reference and target together: ids, then tts_eos, then tts_pad."""
        tape = self.dataset.text
        place = torch.where(k < ref, ref_start + k, start + k - ref).clamp(0, len(tape) - 1)
        ids = torch.where(k < texts - 1, tape[place], self.special.pad)
        ids = torch.where(k == texts - 1, self.special.eos, ids)
        return torch.where(silent, self.special.pad, ids)

    def _column(self, c: Tensor, english: Tensor, column: Tensor) -> Tensor:
        ids = model_config.IDS
        first = torch.where(english > 0, ids["codec_think_id"], ids["codec_nothink_id"])
        code = torch.full_like(c, NONE)
        code = torch.where(c == 0, first, code)
        code = torch.where(c == 1, ids["codec_think_bos_id"], code)
        code = torch.where((c == 2) & (english > 0), model_config.ENGLISH, code)
        code = torch.where(c == 2 + english, ids["codec_think_eos_id"], code)
        return torch.where(c == column - 1, ids["codec_pad_id"], code)
