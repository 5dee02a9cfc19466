"""How well a model reads aloud, judged by whisper tiny.en (requirements-judges.txt).

    python -m bench.quality.reading book --model presets/mini --voices clara,robert,vera --seeds 2
    python -m bench.quality.reading written --model presets/mini --voices clara,robert,vera
    python -m bench.quality.reading article --texts FILE --voices clara

`book` reads each paragraph of a novel as one text and counts words that were added, left out or
replaced; `written` reads sentences with figures, signs and abbreviations, each with the words that
a person would say for it; `article` reads a whole file in one request, and tells too how far pitch
and level of each minute are from the whole's. --out keeps what was heard, one JSON object a line;
--wrong prints it.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.quality.judges import Judges, Transcriber
from bench.quality.reading.article import wander
from bench.quality.reading.comparison import NONE, Differences, misheard
from engine import (
    SAMPLE_RATE,
    Busy,
    Preset,
    SpeechEngine,
    SpeechRequest,
    SpeechStream,
    Waveform,
    open_engine,
)

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Text:
    kind: str
    written: str
    spoken: str


@dataclass(frozen=True)
class Heard:
    kind: str
    voice: str
    seed: int
    written: str
    transcript: str
    found: Differences


def book() -> list[Text]:
    paragraphs = (HERE / "book.txt").read_text("utf-8").split("\n\n")
    return [Text("book", each.strip(), each) for each in paragraphs if each.strip()]


def written(path: Path) -> list[Text]:
    lines = path.read_text("utf-8").splitlines()
    return [Text(*line.split("\t")) for line in lines if line.strip()]


def article(path: Path) -> list[Text]:
    whole = path.read_text("utf-8").strip()
    return [Text("article", whole, whole)]


def takes(
    texts: list[Text], voices: list[str], seeds: int, each: bool
) -> Iterator[tuple[Text, str, int]]:
    """Every text by every voice, or each by one of them in turn."""
    for number, text in enumerate(texts):
        for voice in voices if each else [voices[number % len(voices)]]:
            for seed in range(1, seeds + 1):
                yield text, voice, seed


def spoken(
    engine: SpeechEngine, wanted: Iterable[tuple[Text, str, int]]
) -> Iterator[tuple[Text, str, int, Waveform]]:
    """What is wanted, in its order; some are spoken at once, as that takes less time."""
    waiting: deque[tuple[Text, str, int, SpeechStream]] = deque()
    for text, voice, seed in wanted:
        request = SpeechRequest(text.written, Preset(voice), seed=seed, live=True)
        while True:
            try:
                stream = engine.submit(request)
                break
            except Busy:
                if not waiting:
                    raise
                yield _collected(*waiting.popleft())
        waiting.append((text, voice, seed, stream))
    for each in waiting:
        yield _collected(*each)


def _collected(
    text: Text, voice: str, seed: int, stream: SpeechStream
) -> tuple[Text, str, int, Waveform]:
    pcm = stream.collect()
    return text, voice, seed, (pcm / np.float32(32768)).astype(np.float32)


def table(heard: list[Heard], by: str) -> None:
    sums: dict[str, Differences] = defaultdict(lambda: NONE)
    for each in heard:
        sums[str(getattr(each, by))] += each.found
        sums["all"] += each.found
    for name, found in sums.items():
        print(
            f"{name:14} {found.words:6} words  errors {100 * found.errors / found.words:5.1f} %  "
            f"added {found.added:4} ({100 * found.added / found.words:.2f} %)  "
            f"missing {found.missing:4}  replaced {found.wrong:4}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("book", "written", "article"))
    parser.add_argument("--model", default="presets/mini")
    parser.add_argument("--voices", default="clara,robert,vera")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--texts", type=Path, default=HERE / "written.tsv",
        help="of written: kind, written, spoken; of article: the article",
    )  # fmt: skip
    parser.add_argument("--in-turn", action="store_true", help="each text by one of the voices")
    parser.add_argument("--only", default="", help="a kind of sentences")
    parser.add_argument("--wrong", action="store_true", help="print what was heard otherwise")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.what == "article" and args.texts == parser.get_default("texts"):
        parser.error("article: name the file with --texts")
    read = {"book": lambda _: book(), "written": written, "article": article}
    texts = read[args.what](args.texts)
    texts = [text for text in texts if not args.only or text.kind in args.only.split(",")]
    whisper, heard = Transcriber(), []
    with open_engine([args.model]) as engine:
        wanted = takes(texts, args.voices.split(","), args.seeds, not args.in_turn)
        for text, voice, seed, wave in spoken(engine, wanted):
            transcript = whisper(Judges.prepared(wave))
            found = misheard(text.spoken, transcript)
            heard.append(Heard(text.kind, voice, seed, text.written, transcript.strip(), found))
            if args.what == "article":
                minutes = len(wave) / SAMPLE_RATE / 60
                print(f"{voice} {seed}: {minutes:.1f} minutes; {wander(wave)}", flush=True)
            if args.wrong and found.errors:
                print(
                    f"{found.errors:2} {voice:8} {text.written}\n   heard    {transcript.strip()}",
                    flush=True,
                )
    if args.out:
        lines = [json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in heard]
        args.out.write_text("".join(lines), "utf-8")
    for by in ("kind", "voice"):
        table(heard, by)


if __name__ == "__main__":
    main()
