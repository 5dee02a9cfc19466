"""Segments as what is learned from: codes, ids and vectors, made once and kept in the job's folder.

Also finds what a listener would: lines whose words are not theirs, since the model finds another
line's text as likely, and lines of another person, since their vectors lie apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save
from torch import Tensor

from engine import InvalidSetting, Waveform, write_atomic
from engine.checkpoints.checkpoint import LocalCheckpoint, SpecialIds
from engine.model.talker import Talker
from engine.types import FRAME_SAMPLES, Codes, Vector
from engine.worker.loading.model_loader import load_encoder, load_speaker
from training.voice.job import JobFolder, Spoken
from training.voice.losses import first_loss, forward
from training.voice.second_person import are_two, second_person
from training.voice.sequences import Line, LineRows, SequenceMaker, batch_of

HELD_OUT = 10  # one line in so many
OTHERS = 4  # texts that a line's own is compared with
LEAST_MARGIN = 0.3  # of the usual one, by which its own text fits better
MISMATCHED = 0.25  # share of lines with others' words at which the whole list is wrong


@dataclass(frozen=True, eq=False)
class Dataset:
    spoken: tuple[Spoken, ...]
    codes: tuple[Codes, ...]
    vectors: Vector  # [lines, width]

    @property
    def vector(self) -> Vector:
        """The speaker's: the mean of the lines'."""
        return np.asarray(self.vectors.mean(0), np.float32)

    def split(self) -> tuple[Dataset, Dataset]:
        """What is learned from, and the tenth that is held out."""
        held = range(0, len(self.spoken), HELD_OUT)
        rest = [number for number in range(len(self.spoken)) if number not in held]
        return self._only(rest), self._only(list(held))

    def without(self, gone: set[int]) -> Dataset:
        return self._only([n for n in range(len(self.spoken)) if n not in gone])

    def _only(self, numbers: Sequence[int]) -> Dataset:
        return Dataset(
            tuple(self.spoken[n] for n in numbers),
            tuple(self.codes[n] for n in numbers),
            self.vectors[list(numbers)],
        )

    def lines(self, checkpoint: LocalCheckpoint) -> list[Line]:
        pairs = zip(self.spoken, self.codes, strict=True)
        return [Line(checkpoint.text_ids(each.text), codes) for each, codes in pairs]


def read_segment(path: Path) -> Waveform:
    wave: Waveform = soundfile.read(path, dtype="float32")[0]
    return wave


@torch.inference_mode()
def encode(
    folder: JobFolder, model: Path, spoken: Sequence[Spoken], device: torch.device, digest: str
) -> Dataset:
    """Encode the lines that are used, or read what was encoded before. `digest`: the model's."""
    used = tuple(each for each in spoken if not each.doubtful)
    if folder.dataset.exists():
        return _read(folder, used)
    encoder, speaker = load_encoder(model, device), load_speaker(model, device)
    codes: list[Codes] = []
    vectors: list[Vector] = []
    for each in used:
        wave = read_segment(folder.segments / each.file)
        whole = np.pad(wave, (0, -len(wave) % FRAME_SAMPLES))
        found = encoder.encode(torch.from_numpy(whole)[None].to(device))[0]
        codes.append(found.cpu().numpy().astype(np.int64))
        vectors.append(
            speaker.embed(torch.from_numpy(wave)[None].to(device))[0].float().cpu().numpy()
        )
    tensors = {
        "codes": np.concatenate(codes).astype(np.int32),
        "frames": np.array([len(each) for each in codes], np.int32),
        "vectors": np.stack(vectors).astype(np.float32),
    }
    write_atomic(folder.dataset, bytes(save(tensors, {"digest": digest})))
    return _read(folder, used)


def is_of_another(dataset: Path, digest: str) -> bool:
    """Whether a model that was exchanged since has encoded it."""
    if not dataset.exists():
        return False
    with safe_open(dataset, "np") as file:
        return (file.metadata() or {}).get("digest", digest) != digest


def _read(folder: JobFolder, used: tuple[Spoken, ...]) -> Dataset:
    found = load_file(folder.dataset)
    ends = np.cumsum(found["frames"])[:-1]
    codes = np.split(found["codes"].astype(np.int64), ends)
    return Dataset(used, tuple(codes), found["vectors"])


def other_people(dataset: Dataset) -> set[int]:
    """Lines of somebody else that nobody vouches for. Raises InvalidSetting where two people speak
    about equally often."""
    found = second_person(dataset.vectors)
    second = [number for number in found if not dataset.spoken[number].trusted]
    if second and are_two(len(second), len(dataset.spoken)):
        raise InvalidSetting(
            "Two people speak in these recordings, in {first} and {second} lines. Leave out those "
            "of one, for example “{text}” in {source}.",
            first=len(dataset.spoken) - len(second),
            second=len(second),
            text=dataset.spoken[second[0]].text[:60],
            source=dataset.spoken[second[0]].source,
        )
    return set(second)


@torch.inference_mode()
def other_words(
    dataset: Dataset, checkpoint: LocalCheckpoint, talker: Talker, language: str
) -> set[int]:
    """Lines to whose codes other lines' texts of about the same length fit nearly as well as their
    own; of those that somebody heard and mended none.

    Raises InvalidSetting where many do: then the list of texts is shifted or of something else.
    """
    lines = dataset.lines(checkpoint)
    if len(lines) < 4:
        return set()
    voice = torch.from_numpy(dataset.vector)[None].to(talker.codec_head.weight.device)
    maker = SequenceMaker(checkpoint, talker, 0)
    margins = {
        number: _margin(
            [maker.make(each, language, "streamed") for each in texts],
            talker,
            voice,
            checkpoint.ids,
        )
        for number, texts in _with_others(lines).items()
        if not dataset.spoken[number].mended
    }
    if not margins:
        return set()
    usual = float(np.quantile(list(margins.values()), 0.75))
    wrong = {number for number, margin in margins.items() if margin <= LEAST_MARGIN * usual}
    if len(wrong) > max(2, MISMATCHED * len(lines)):
        raise InvalidSetting(
            "The words of {count} of {lines} lines fit no better than another line's. Check that "
            "each text belongs to its recording.",
            count=len(wrong),
            lines=len(lines),
        )
    return wrong


def _with_others(lines: Sequence[Line]) -> dict[int, list[Line]]:
    """Each line, and with its codes other texts about as long; a sentence may be said twice."""
    texts = sorted({line.text_ids for line in lines}, key=lambda ids: (len(ids), ids))
    count = min(OTHERS, len(texts) - 1)
    found = {}
    for number, line in enumerate(lines if count else ()):
        at = texts.index(line.text_ids)
        around = texts[max(0, min(at - count // 2, len(texts) - count - 1)) :][: count + 1]
        others = [text for text in around if text != line.text_ids]
        found[number] = [line, *(Line(text, line.codes) for text in others)]
    return found


def _margin(made: Sequence[LineRows], talker: Talker, voice: Tensor, ids: SpecialIds) -> float:
    """Nats a frame by which the first fits better than the others do in the mean."""
    batch = batch_of(made, ids.tts_pad, voice.device)
    logits = forward(talker, batch, voice).logits
    lost = first_loss(logits, batch, ids.codec_eos) * batch.first
    costs = (lost.sum(1) / batch.first.sum(1)).tolist()
    return float(np.mean(costs[1:])) - costs[0]
