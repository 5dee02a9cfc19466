"""Lists voices and capabilities as lines of text."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine import Capabilities, EarlyStart, Library, describe, kernel_folder
from studio.layout import ROOT
from studio.voices.voice_catalog import Choices


def list_voices(capabilities: Mapping[str, Capabilities], library: Library) -> Iterator[str]:
    """A line for each voice, and for each damaged file."""
    for choice in Choices(capabilities, library).list():
        yield "\t".join((choice.name, choice.kind, choice.note)).rstrip()
    for found in library.damaged():
        yield f"{found.path.name}\tdamaged\t{found.reason}"


def describe_speed(speed: float | None, early_start: EarlyStart) -> str:
    """The speed of a machine slower than real time as text; "" for all others."""
    if speed is None or speed >= 1:
        return ""
    waits = "starts late, so that it plays without a gap"
    effect = waits if early_start == "off" else "has gaps"
    return f"This machine makes about {speed:.1f} s of speech a second: live speech {effect}."


def list_abilities(capabilities: Mapping[str, Capabilities]) -> Iterator[str]:
    """What each checkpoint is and can do."""
    for name, item in capabilities.items():
        yield name
        yield f"  can        {describe(item)}"
        yield f"  size       {item.size}, speaker vectors of {item.width} numbers"
        yield f"  speakers   {', '.join(item.speakers) or 'none'}"
        yield f"  languages  {', '.join(('auto', *item.languages))}"
        if item.styles:
            yield f"  styles     {' '.join(item.styles)}"
        for speaker, dialect in item.dialects.items():
            yield f"  dialect    {speaker} speaks {dialect.replace('_', ' ')}"


def list_places(data: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The folders and files in use."""
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    hub = environment.get("HF_HOME") or cache / "huggingface"
    yield "places"
    yield f"  voices, takes, scripts  {data.resolve()}"
    yield f"  downloaded models       {hub}"
    if kernels := environment.get("NUMBA_CACHE_DIR") or kernel_folder():
        yield f"  compiled kernels        {kernels}"
    yield f"  Timbre itself           {ROOT}"
    yield f"  Python                  {sys.executable}"
