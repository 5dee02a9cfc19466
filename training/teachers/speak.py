"""Kokoro speaking for many speakers at once: jobs in, waves with their phones and places out.

Jobs are planned in groups of equal token counts, then spoken in batches of about equal length, and
finished on the device. Knows no files but the teacher's own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training import state as states
from training.data.speakers import STYLES, TIMBRES, Speaker, Style
from training.data.speech_format import PHONE_STEP, Wave, pad
from training.teachers import finishing, kokoro
from training.teachers.kokoro import Kokoro
from training.teachers.phonemes import PAUSE, PhonemizedText, phones_of

PLAN_ROWS = 64  # rows of one plan
MAX_BATCH_FRAMES = 8_000  # frames of one batch, 200 s: about 12 GB on a GPU
LONG_SPACE = 5  # frames: a space of so many is a pause
STRETCH, MORE = 1.06, 8  # of one batch: rows this much longer, and so many frames, at most
VOICED = 40.0  # Hz: below this nothing is voiced
RISE = (-2.0, 7.0)  # semitones beside the middle of what went before: of a question's last stress
RISEN = 0.6  # of what is voiced from there to the end: then it is as high as it gets
ASKING = {
    "who",
    "whom",
    "whose",
    "what",
    "when",
    "where",
    "why",
    "which",
    "how",
    "or",
}  # these fall
EARLY = 1_440  # samples: sounds are heard before their phonemes' frames (a listener's best match)


@dataclass(frozen=True)
class Job:
    said: PhonemizedText
    speaker: Speaker
    style: Style = STYLES[0]  # on top of the speaker's own manner


def duration_factor(job: Job) -> float:
    """The factor of the durations, before the vocal tract is scaled, which shortens them."""
    return job.speaker.pace * job.style.pace * job.speaker.tract


def pitch_factor(job: Job) -> float:
    """What the pitch is multiplied by, before the vocal tract is scaled, which raises it."""
    return job.speaker.pitch * job.style.pitch / job.speaker.tract


@dataclass(frozen=True, eq=False)
class PlannedJob:
    """One job with its phonemes laid out in time."""

    number: int
    frames: Tensor  # [T]
    prosody: Tensor  # [T, …]
    sounds: Tensor  # [T, …]
    style: Tensor  # [2 * STYLE]

    @property
    def length(self) -> int:
        return int(self.frames.sum())


@dataclass(frozen=True, eq=False)
class LabelledSpeech:
    """A wave, and every 20 ms a phone and a place in the text."""

    wave: Wave
    phones: NDArray[np.uint8]
    places: NDArray[np.uint16]


class Teacher:
    def __init__(self, path: Path, device: torch.device) -> None:
        state = states.load(path)
        self.device, self.tokens = device, state["tokens"]
        order = [state["names"].index(name) for name in TIMBRES]
        self._styles: Tensor = (
            state["styles"][order].float().to(device)
        )  # [timbres, lengths, 2 * STYLE]
        self.network = Kokoro()
        self.network.load_state_dict(state["network"])
        self.network.to(device).eval().requires_grad_(False)

    def ids(self, phonemes: str) -> list[int]:
        return [0, *(self.tokens[letter] for letter in phonemes), 0]

    def style(self, speaker: Speaker, length: int) -> Tensor:
        """The mixture for so many phonemes."""
        shares = torch.tensor(speaker.shares, device=self.device)
        return shares @ self._styles[:, min(length, self._styles.shape[1]) - 1]

    @torch.inference_mode()
    def speak(self, jobs: Sequence[Job]) -> Iterator[tuple[int, LabelledSpeech]]:
        """Each job's number and what was said, the shortest first."""
        planned = sorted(self._plan(jobs), key=lambda each: each.length)
        for batch in batches(planned):
            waves = self._waves(batch, [jobs[each.number] for each in batch])
            yield from self._finish(batch, jobs, waves)

    def _plan(self, jobs: Sequence[Job]) -> Iterator[PlannedJob]:
        groups: dict[int, list[int]] = defaultdict(list)
        for number, job in enumerate(jobs):
            groups[len(job.said.phonemes)].append(number)
        for length, numbers in groups.items():
            for start in range(0, len(numbers), PLAN_ROWS):
                yield from self._plan_even(jobs, numbers[start : start + PLAN_ROWS], length)

    def _plan_even(
        self, jobs: Sequence[Job], numbers: list[int], length: int
    ) -> Iterator[PlannedJob]:
        ids = torch.tensor([self.ids(jobs[n].said.phonemes) for n in numbers], device=self.device)
        style = torch.stack([self.style(jobs[n].speaker, length) for n in numbers])
        planned = self.network.plan(ids, style)
        paces = [duration_factor(jobs[n]) for n in numbers]
        frames = kokoro.frames_of(planned.durations, torch.tensor(paces, device=self.device)).cpu()
        for row, number in enumerate(numbers):
            yield PlannedJob(
                number, frames[row], planned.prosody[row], planned.sounds[row], style[row]
            )

    def _waves(self, batch: Sequence[PlannedJob], jobs: Sequence[Job]) -> Tensor:
        """[B, samples]: equally long, as the longest."""
        whole = batch[-1].length
        evened = [kokoro.even(each.frames, whole).to(self.device) for each in batch]
        style = torch.stack([each.style for each in batch])
        rows = zip(batch, evened, strict=True)
        prosody, sounds = (
            torch.stack(values)
            for values in zip(
                *(
                    (kokoro.lay_out(each.prosody, even), kokoro.lay_out(each.sounds, even))
                    for each, even in rows
                ),
                strict=True,
            )
        )
        pitch, energy = self.network.contours(prosody, style)
        factor, spread = (
            torch.tensor(values, device=self.device)
            for values in (
                [pitch_factor(job) for job in jobs],
                [job.speaker.spread * job.style.spread for job in jobs],
            )
        )
        pitch = kokoro.move_pitch(pitch, factor, spread)
        for row, job in enumerate(jobs):
            if asks_yes_or_no(job.said.text):
                raise_end(pitch[row], evened[row].cpu(), job.said.phonemes)
        return self.network.speak(sounds, pitch, energy, style)

    def _finish(
        self, batch: Sequence[PlannedJob], jobs: Sequence[Job], waves: Tensor
    ) -> Iterator[tuple[int, LabelledSpeech]]:
        speakers = [jobs[each.number].speaker for each in batch]
        tract, tilt = (
            torch.tensor([getattr(speaker, name) for speaker in speakers], device=self.device)
            for name in ("tract", "tilt")
        )
        if bool((tract != 1).any()):
            waves = finishing.scale_tract(waves, tract)
        waves = finishing.tilt_rows(waves, tilt)
        samples = torch.tensor([each.length * kokoro.FRAME for each in batch], device=self.device)
        waves = finishing.silence_after(waves, (samples / tract).long())
        spans = finishing.speech_spans(waves)
        waves, lengths = finishing.crop_rows(waves, spans)
        finished = finishing.level_rows(waves, lengths).cpu().numpy()
        ends = zip(spans[:, 0].tolist(), lengths.tolist(), strict=True)
        for wave, each, (start, length) in zip(finished, batch, ends, strict=True):
            labels = pad(wave[:length]), start, each.frames, jobs[each.number]
            yield each.number, label_speech(*labels)


def asks_yes_or_no(text: str) -> bool:
    """Whether the last sentence is a question that begins with a verb, or has no word that asks."""
    if not text.rstrip("\"'”’) ").endswith("?"):
        return False
    words = re.findall(r"[a-z']+", re.split(r"[.!?:;]", text.rstrip("?\"'”’) "))[-1].lower())
    return bool(words) and not ASKING & set(words[:3])


def raise_end(pitch: Tensor, frames: Tensor, phonemes: str) -> None:
    """Let the pitch [2 T] of a question rise, in place, from its last stressed sound to its end."""
    stressed = max(phonemes.rfind("ˈ"), phonemes.rfind("ˌ"))
    step = len(pitch) / int(frames.sum())
    ends = frames.cumsum(0) * step
    spoken = [n for n, letter in enumerate(phonemes, 1) if letter.isalpha() and letter not in "ˈˌ"]
    if stressed < 0 or not spoken:
        return
    # Sounds are heard early, and pitch is not: it has to be there when they are.
    early = round(EARLY / kokoro.FRAME * step)
    first, last = max(0, int(ends[stressed]) - early), int(ends[spoken[-1]])
    place = first + (pitch[first:last] > VOICED).nonzero()[:, 0]
    before = pitch[:first][pitch[:first] > VOICED]
    heard = int((place < last - early).sum())
    if heard < 2:
        return
    middle = (before if len(before) else pitch[place]).log2().median()
    way = (torch.arange(len(place), device=pitch.device) / (RISEN * heard)).clamp(max=1)
    pitch[place] = 2 ** (middle + (RISE[0] + (RISE[1] - RISE[0]) * way) / 12)


def batches(planned: Sequence[PlannedJob]) -> Iterator[Sequence[PlannedJob]]:
    """Neighbours about equally long, as many as there is room for."""
    cuts = [0]
    for index in range(1, len(planned)):
        rows, longest = index - cuts[-1] + 1, planned[index].length
        if rows * longest > MAX_BATCH_FRAMES or longest > planned[cuts[-1]].length * STRETCH + MORE:
            cuts.append(index)
    yield from (planned[a:b] for a, b in pairwise([*cuts, len(planned)]) if b > a)


def label_speech(wave: Wave, start: int, frames: Tensor, job: Job) -> LabelledSpeech:
    """What is said every 20 ms of a wave that began `start` samples into its speech."""
    phonemes, phones = job.said.phonemes, [PAUSE, *phones_of(job.said.phonemes), PAUSE]
    lengths = frames.tolist()
    for index, letter in enumerate(phonemes, 1):
        if letter == " " and lengths[index] >= LONG_SPACE:
            phones[index] = PAUSE
    ends = (np.cumsum(lengths) * kokoro.FRAME - EARLY) / job.speaker.tract  # samples
    places = [0, *job.said.places, job.said.places[-1]]
    at = (np.arange(len(wave) // PHONE_STEP) + 0.5) * PHONE_STEP + start
    token = np.searchsorted(ends, at).clip(max=len(phones) - 1)
    reached = np.interp(at, ends, places)
    return LabelledSpeech(wave, np.array(phones, np.uint8)[token], reached.astype(np.uint16))
