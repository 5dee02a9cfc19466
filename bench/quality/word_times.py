"""How exactly words' times are found (`studio.word_times`) in a model's own speech.

    pip install pocketsphinx                      # the judge, with its model; nothing else needs it
    python -m bench.quality.word_times --model presets/mini --voices clara,robert --texts 20

Two kinds of speech. `joined`: words are spoken alone, the silence around them is cut off, and they
are laid one after the other with short pauses, so where each begins is known. `sentences`: whole
sentences, held against PocketSphinx's forced alignment, which knows pronunciations; on `joined` its
own error is told as well. The first word of a text is left out, since it begins where silence ends.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import soxr

from engine import SAMPLE_RATE, Pcm, Preset, SpeechEngine, SpeechRequest, open_engine
from studio.word_times import part_times

TEXTS: Final = Path(__file__).parent / "voice_card" / "texts" / "sentences.txt"
HEARD_RATE: Final = 16_000
JUDGE_FRAMES: Final = 100  # a second
SILENT: Final = 10 ** (-35 / 20)  # relative to the peak
PAUSES: Final = (0.0, 0.04, 0.0, 0.08)  # seconds between joined words, in turn
_WORD: Final = re.compile(r"[a-z']+")


class Judge:
    """PocketSphinx's forced alignment."""

    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder: Any = Decoder(samprate=HEARD_RATE, lm=None, loglevel="FATAL")

    def knows(self, words: Iterable[str]) -> bool:
        return all(self._decoder.lookup_word(word) for word in words)

    def starts(self, words: Sequence[str], pcm: Pcm) -> list[float] | None:
        """Seconds at which each word begins; None where it does not find them."""
        decoder = self._decoder
        decoder.set_align_text(" ".join(words))
        decoder.start_utt()
        sound = soxr.resample(pcm.astype(np.float32), SAMPLE_RATE, HEARD_RATE)
        heard = np.rint(sound).clip(-32768, 32767).astype("<i2")
        decoder.process_raw(heard.tobytes(), full_utt=True)
        decoder.end_utt()
        segments = list(decoder.seg() or ())
        found = [(re.sub(r"\(\d+\)$", "", each.word), each.start_frame) for each in segments]
        timed = [(word, start) for word, start in found if not word.startswith(("<", "["))]
        if [word for word, _ in timed] != list(words):
            return None
        return [start / JUDGE_FRAMES for _, start in timed]


class Speaker:
    def __init__(self, engine: SpeechEngine, voice: str) -> None:
        self._engine, self._voice = engine, voice
        self._words: dict[str, Pcm] = {}

    def say(self, text: str, seed: int) -> Pcm:
        request = SpeechRequest(text, Preset(self._voice), seed=seed, live=False)
        return self._engine.submit(request).collect()

    def join(self, words: Sequence[str], seed: int) -> tuple[Pcm, list[float]]:
        """The words one after the other, and the seconds at which each begins."""
        parts, starts, at = [np.zeros(SAMPLE_RATE // 10, np.int16)], [], SAMPLE_RATE // 10
        for number, word in enumerate(words):
            pause = round(PAUSES[number % len(PAUSES)] * SAMPLE_RATE) if number else 0
            sound = self._alone(word, seed)
            parts += [np.zeros(pause, np.int16), sound]
            starts.append((at + pause) / SAMPLE_RATE)
            at += pause + len(sound)
        return np.concatenate([*parts, parts[0]]), starts

    def _alone(self, word: str, seed: int) -> Pcm:
        if word not in self._words:
            self._words[word] = trimmed(self.say(f"{word.capitalize()}.", seed))
        return self._words[word]


def trimmed(pcm: Pcm) -> Pcm:
    """Without the silence around it."""
    loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) > SILENT * np.abs(pcm.astype(int)).max())
    return pcm[loud[0] : loud[-1] + 1] if len(loud) else pcm


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def sentences(judge: Judge, count: int) -> Iterator[str]:
    """Texts of words alone that the judge can pronounce."""
    for line in TEXTS.read_text("utf-8").splitlines():
        text = line.partition("\t")[2]
        plain = re.fullmatch(r"[A-Za-z' ,.;:!?-]+", text) and "-" not in text
        if plain and len(words_of(text)) > 4 and judge.knows(words_of(text)):
            yield text
            count -= 1
        if not count:
            return


def found(words: Sequence[str], pcm: Pcm) -> list[float]:
    return [start for start, _ in part_times(words, pcm)]


def error_line(name: str, errors: list[float]) -> str:
    if not errors:
        return f"{name:28} nothing to compare"
    far = np.abs(errors)
    median, most = np.median(far), np.percentile(far, 90)
    return (
        f"{name:28} {len(far):5} words  median {1000 * median:5.0f} ms  90 % {1000 * most:5.0f} ms"
        f"  mean {1000 * np.mean(errors):+5.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="presets/mini")
    parser.add_argument("--voices", default="clara,robert")
    parser.add_argument("--texts", type=int, default=20)
    options = parser.parse_args()
    judge = Judge()
    errors: dict[str, list[float]] = {"joined: studio": [], "joined: judge": [], "sentences": []}
    unheard = 0
    with open_engine([options.model]) as engine:
        for voice in options.voices.split(","):
            speaker = Speaker(engine, voice)
            for seed, text in enumerate(sentences(judge, options.texts), 1):
                words = words_of(text)
                pcm, truth = speaker.join(words, seed)
                judged = judge.starts(words, pcm)
                errors["joined: studio"] += _differences(found(words, pcm), truth)
                errors["joined: judge"] += _differences(judged or [], truth)
                pcm = speaker.say(text, seed)
                judged = judge.starts(words, pcm)
                unheard += judged is None
                errors["sentences"] += _differences(found(text.split(), pcm), judged or [])
    for name, each in errors.items():
        print(error_line(name, each))
    print(f"{unheard} sentences in which the judge did not find the words are left out")


def _differences(found: Sequence[float], truth: Sequence[float]) -> list[float]:
    """Differences of all words but the first."""
    if len(found) != len(truth):
        return []
    return [a - b for a, b in list(zip(found, truth, strict=True))[1:]]


if __name__ == "__main__":
    main()
