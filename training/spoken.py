"""Speech of a finished model in the voices it learned, for lessons on how it sounds.

Each sentence is a clone's, by vector and in context in turn, of a sentence that flite said in
one of the trained voices; it is labelled with the voice that was asked for. Shards are written
as training.speech writes them; of phones and places nothing is known.

    python -m training.spoken --model presets/mini --corpus corpus.json --out DIR --minutes 10

--voices says how many of the trained voices the model has learned, where that is not all.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path
from random import Random

import numpy as np

from engine import Engine, SpeechRequest, SpeechStream, Waveform, open_engine
from training import speech, text
from training.between import OtherPhones
from training.speakers import TRAINED, everyone
from training.speech import PHONE_STEP, Utterance

SEED = 7
AT_ONCE = 8
SHORTEST, LONGEST = 45, 100  # letters
A_SHARD = 80


def line(corpus: text.Corpus, random: Random) -> str:
    while not SHORTEST <= len(drawn := corpus.draw(random)) <= LONGEST:
        pass
    return drawn


def asked(
    engine: Engine, corpus: text.Corpus, voices: int
) -> Iterator[tuple[Utterance, SpeechStream]]:
    """Sentences being spoken, without end."""
    random, speakers = Random(SEED), everyone()
    for number in count():
        who, reference = random.randrange(voices), line(corpus, random)
        try:
            heard = speech.say(reference, speakers[who]).wave
        except OtherPhones:
            continue
        voice = engine.clone(heard, reference if number % 2 else "")
        words = line(corpus, random)
        request = SpeechRequest(words, voice, "english", seed=number, live=False)
        yield Utterance(words, who, 0), engine.submit(request)


def said(
    engine: Engine, corpus: text.Corpus, voices: int, until: float
) -> Iterator[tuple[Utterance, Waveform]]:
    """Whole sentences, some spoken at once; those that did not end by themselves are left out."""
    waiting: deque[tuple[Utterance, SpeechStream]] = deque()
    for each in asked(engine, corpus, voices):
        waiting.append(each)
        if len(waiting) < AT_ONCE:
            continue
        utterance, stream = waiting.popleft()
        with stream:
            pcm = np.concatenate([np.zeros(0, np.int16), *(chunk.pcm for chunk in stream)])
        if stream.end and stream.end.reason == "finished" and len(pcm):
            yield utterance, (pcm / 32768).astype(np.float32)
        if time.monotonic() > until:
            return


def write(folder: Path, number: int, made: list[tuple[Utterance, Waveform]]) -> None:
    waves = [speech.pad(wave) for _, wave in made]
    samples = np.concatenate(waves)
    unknown = np.zeros(len(samples) // PHONE_STEP, np.uint8)
    np.savez(
        folder / f"{number:05d}.npz",
        samples=np.round(samples * 32767).astype(np.int16),
        phones=unknown,
        places=unknown,
        offsets=np.cumsum([0, *map(len, waves)]),
        meta=np.array(json.dumps([asdict(utterance) for utterance, _ in made])),
    )
    print(f"shard {number}: {len(samples) / speech.RATE:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--voices", type=int, default=TRAINED)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    made: list[tuple[Utterance, Waveform]] = []
    with open_engine([given.model]) as engine:
        until = time.monotonic() + 60 * given.minutes
        spoken = said(engine, text.load(given.corpus), given.voices, until)
        for number, each in enumerate(spoken, 1):
            made.append(each)
            if number % A_SHARD == 0:
                write(given.out, number // A_SHARD, made)
                made = []


if __name__ == "__main__":
    main()
