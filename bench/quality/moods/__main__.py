"""Learns the moods of Timbre Mini, measures them on 40 held-out voices, and keeps what holds.

    python -m bench.quality.moods speak FOLDER     # learn, speak, measure
    python -m bench.quality.moods judge FOLDER     # needs requirements-judges.txt
    python -m bench.quality.moods table FOLDER     # the table of docs/moods.md
    python -m bench.quality.moods keep FOLDER presets/moods    # write those that hold

Speaking and judging go on where they stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.quality.moods import measure

SENTENCES = Path("training/data/heldout.txt")
WORDS = 8  # of a sentence at least


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("speak", "judge", "table", "keep"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--moods", default=",".join(measure.MOVES), help="some of them")
    args = parser.parse_args()
    texts = [each for each in SENTENCES.read_text().splitlines() if len(each.split()) >= WORDS]
    moods = args.moods.split(",")
    if args.verb == "speak":
        speak(args.folder, texts, moods)
    elif args.verb == "judge":
        measure.judge(args.folder, texts, moods)
    elif args.verb == "table":
        print("\n".join(measure.table(args.folder, moods)))
    elif args.out is None:
        parser.error("keep FOLDER OUT")
    else:
        keep(args.folder, args.out, moods)


def keep(folder: Path, out: Path, moods: list[str]) -> None:
    """Write the moods that hold as built-in ones."""
    from bench.quality.moods import pairs
    from bench.quality.voice_card.speak import open_model
    from engine import MoodLibrary, speaker_space

    with open_model("presets/mini", "cpu", measure.AT_ONCE) as engine:
        (capabilities,) = engine.capabilities().values()
        learned = pairs.learn_all(engine)
    library = MoodLibrary(out)
    for mood, found in learned.items():
        if mood.name in moods and measure.verdict(folder, mood.name).kept:
            note = f"Learned from {found.pairs} pairs of the teacher's voices."
            space = speaker_space(capabilities)
            library.save(mood.name, found, space, capabilities.name, mood.words, note=note)


def speak(folder: Path, texts: list[str], moods: list[str]) -> None:
    from bench.quality.moods import pairs
    from bench.quality.voice_card.speak import open_model

    with open_model("presets/mini", "cpu", measure.AT_ONCE) as engine:
        learned = pairs.learn_all(engine)
        for mood, found in learned.items():
            print(f"{mood.name}: {found.pairs} pairs, spread {found.spread:.2f}, agreement "
                  f"{found.agreement:.2f}", flush=True)  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        voices = pairs.held_out_voices(measure.VOICES)
        chosen = [mood for mood in learned if mood.name in moods]
        measure.speak(engine, voices, chosen, texts, folder)


if __name__ == "__main__":
    main()
