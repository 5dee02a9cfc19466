"""The options of `say`, and checks of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import EarlyStart, InvalidSetting, InvalidText, check_target
from studio.cli.console import Words, read_words
from studio.voices.moods import split_mood
from studio.voices.voice_catalog import NO_INSTRUCTION

STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True)
class SayOptions:
    """`words`: text that is read while it is spoken; `text` is empty then."""

    text: str = ""
    words: Words | None = None
    voice: str = ""
    instruct: str = ""
    reference: Path | None = None
    transcript: str = ""
    consent: bool = False
    blend: str = ""
    spherical: bool = False
    mood: str = ""  # glad, or glad:0.5
    language: str = "auto"
    seed: int | None = None
    greedy: bool = False
    spell_out: bool = True
    max_frames: int | None = None
    early_start: EarlyStart | None = None  # None: as the settings say
    out: Path | None = None
    play: bool = False

    @property
    def live(self) -> bool:
        """Whether somebody may hear it while it is made."""
        return self.play or self.piped or self.out is None

    @property
    def piped(self) -> bool:
        """Whether audio goes to standard output."""
        return self.out == STANDARD_OUTPUT


def read_options(argument: str, option: str, **others: Any) -> SayOptions:
    """The options with the text, which is given in one of two ways. Raises InvalidSetting."""
    if argument and option:
        raise InvalidSetting("Give the text once, either as TEXT or as --text.")
    text = argument or option
    if not text.strip():
        raise InvalidText("There is nothing to say. Give a text, or - to read standard input.")
    if text == "-":
        return SayOptions(words=Words(read_words()), **others)
    return SayOptions(text=text, **others)


def check_options(options: SayOptions) -> None:
    """Raises InvalidSetting."""
    named = [name for name in ("voice", "reference", "blend") if getattr(options, name)]
    if len(named) > 1:
        raise InvalidSetting(f"Use one of --{' and --'.join(named)}.")
    if options.reference and not options.consent:
        raise InvalidSetting(
            "--reference copies a voice. Only use a recording whose owner has agreed, and say so "
            "with --consent."
        )
    if options.transcript and not options.reference:
        raise InvalidSetting("--transcript tells what is said in a --reference. Add one.")
    if options.consent and not options.reference:
        raise InvalidSetting("--consent is for a --reference. Add one, or leave it out.")
    if options.spherical and not options.blend:
        raise InvalidSetting("--spherical is a way to blend voices. Add --blend.")
    if options.instruct.strip() and (options.reference or options.blend):
        raise InvalidSetting(NO_INSTRUCTION)
    if options.mood:
        split_mood(options.mood)
    if options.out and not options.piped:
        check_target(options.out)
