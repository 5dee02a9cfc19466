"""The card of a model: what it is asked to do, spoken, judged, and set beside what is asked.

    python -m bench.quality.voice_card speak CARD --teacher kokoro.pt   # CARD/teacher, references
    python -m bench.quality.voice_card speak CARD --codec DIR           # the teacher's: CARD/codec
    python -m bench.quality.voice_card speak CARD --model DIR           # CARD/model
    python -m bench.quality.voice_card judge CARD                       # card.md, card.json

Speaking wants a GPU and nothing but the engine; judging wants requirements-judges.txt. Both go on
where they stopped.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from bench.quality.voice_card import plan, recordings


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    speak, judge = verbs.add_parser("speak"), verbs.add_parser("judge")
    for verb in (speak, judge):
        verb.add_argument("card", type=Path, help="a folder")
    speak.add_argument("--model", help="a checkpoint: folder or hub id")
    speak.add_argument("--teacher", type=Path, help="training.teachers.kokoro_weights' file")
    speak.add_argument("--codec", type=Path, help="a checkpoint, or a training's codec.pt")
    speak.add_argument("--said", type=Path, help="the teacher's phonemes, where hibari is not")
    speak.add_argument("--references", type=Path, help="recordings to clone; CARD/references")
    speak.add_argument("--quick", action="store_true", help="a fifth of it")
    speak.add_argument("--sentences", type=int, help="of a named voice")
    speak.add_argument(
        "--parts", default=",".join((*plan.PARTS, "references")), help="some of them alone"
    )
    speak.add_argument("--format", choices=recordings.formats(), default=recordings.formats()[0])
    speak.add_argument(
        "--at-once", type=int, default=8, help="requests in the engine; 128 on a GPU"
    )
    speak.add_argument("--until", type=float, help="begin nothing after this time, since 1970")
    speak.add_argument("--device", default="auto")
    speak.add_argument("--weights", default="auto", help="on CPUs: full, 8bit or 4bit")
    judge.add_argument("--beside", type=Path, help="another card.json, as a column of its own")
    judge.add_argument("--processes", type=int, default=1)
    judge.add_argument("--sentences", type=int, default=100, help="of a named voice")
    judge.add_argument("--clean", type=int, default=20, help="sentences of a voice for DNSMOS")
    args = parser.parse_args()
    if args.verb == "judge":
        from bench.quality.voice_card.judge import judge_card

        judge_card(args.card, args.beside, args.processes, args.sentences, args.clean)
        return
    if not (args.teacher or args.codec or args.model):
        speak.error("who speaks? Give --teacher, --codec or --model.")
    speak_for(args)


def speak_for(args: argparse.Namespace) -> None:
    sizes = plan.QUICK if args.quick else plan.Sizes()
    if args.sentences:
        sizes = replace(sizes, sentences=args.sentences)
    parts = args.parts.split(",")
    if args.teacher:
        from bench.quality.voice_card.teach import speak_teacher

        speak_teacher(
            args.teacher,
            args.said,
            args.card,
            sizes,
            parts,
            args.format,
            args.at_once,
            args.device,
        )
    if args.codec:
        from bench.quality.voice_card.teach import speak_codec

        speak_codec(args.codec, args.card, args.format, args.device)
    if args.model:
        from bench.quality.voice_card.speak import speak_model

        references = args.references or args.card / "references"
        speak_model(
            args.model,
            args.card / "model",
            references if references.exists() else None,
            sizes,
            parts,
            args.format,
            args.at_once,
            args.device,
            args.until,
            args.weights,
        )


if __name__ == "__main__":
    main()
