"""Several recordings of one person, under Clone: compared, left out, and joined to one voice.

Knows the engine's public face and no layout but its own fields.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

import gradio as gr

from engine import (
    Clone,
    InvalidAudio,
    Message,
    Recording,
    TimbreError,
    Vector,
)
from studio.context import Studio
from studio.ui.i18n import both, warning, word
from studio.ui.recordings.loaded import recording_at
from studio.ui.tabs.voice_form import Update
from studio.voices.sample_vectors import MOST, mean_vector, outliers, similarities

AGREE: Final = "Tick the box of consent: then the recordings are compared."
APART: Final = "Unlike the others: another voice, or recorded quite differently. Leave it out."
FITS: Final = "Like the others"


class Samples(NamedTuple):
    """The components."""

    files: gr.File
    compared: gr.HTML
    used: gr.CheckboxGroup


def samples_form() -> Samples:
    with gr.Accordion(word("More recordings of the same person (optional)"), open=False):
        gr.Markdown(
            word(
                "Several recordings make one voice that is closer to the person: what they share. "
                "One that does not fit is found and left out."
            ),
            elem_classes="timbre-hint",
        )
        files = gr.File(
            label=word("More recordings"),
            file_count="multiple",
            type="filepath",
            elem_id="clone-more",
        )
        compared = gr.HTML(elem_id="clone-compared", elem_classes="timbre-plain", padding=False)
        used = gr.CheckboxGroup([], label=word("Recordings used"), visible=False)
    return Samples(files, compared, used)


def compare(
    studio: Studio, path: str | None, more: Sequence[str] | None, agreed: bool, model: str = ""
) -> tuple[str, Update]:
    """What is told of each recording, and which are used: all but those that do not fit."""
    hidden = gr.update(choices=[], value=[], visible=False)
    try:
        paths = paths_of(path, more)
    except InvalidAudio as error:
        return f"<p>{escape(warning(error))}</p>", hidden
    if len(paths) < 2:
        return "", hidden
    if not agreed:
        return f"<p>{both(AGREE)}</p>", hidden
    try:
        found = similarities([_vector(studio, each, model) for each in paths])
    except TimbreError as error:
        return f"<p>{escape(warning(error))}</p>", hidden
    far = outliers(found)
    rows = "".join(
        _row(Path(each).name, alike, place in far)
        for place, (each, alike) in enumerate(zip(paths, found, strict=True))
    )
    choices = [(Path(each).name, key) for each, key in zip(paths, _keys(paths), strict=True)]
    kept = [key for place, (_, key) in enumerate(choices) if place not in far]
    return f'<dl class="timbre-checks">{rows}</dl>', gr.update(
        choices=choices, value=kept, visible=True
    )


def joined(
    studio: Studio,
    voice: Clone,
    path: str | None,
    more: Sequence[str] | None,
    used: Sequence[str] | None,
    model: str = "",
) -> Clone:
    """One voice of the used recordings, else of all that fit, also where other recordings were
    compared than there are now; `voice`: that of the first one, made with its words. Raises
    InvalidAudio."""
    paths = paths_of(path, more)
    ticked = set(used or ())
    chosen = [each for each, key in zip(paths, _keys(paths), strict=True) if key in ticked]
    chosen = chosen or _fitting(studio, paths, model)
    if chosen == paths[:1]:
        return voice
    if paths[0] not in chosen:  # its words belong to a recording that is left out
        voice = _clone(studio, chosen[0], model)
    others = [_vector(studio, each, model) for each in chosen[1:]]
    return replace(voice, vector=mean_vector([voice.vector, *others]))


def _fitting(studio: Studio, paths: Sequence[str], model: str) -> list[str]:
    far = outliers(similarities([_vector(studio, each, model) for each in paths]))
    return [each for place, each in enumerate(paths) if place not in far]


def _keys(paths: Sequence[str]) -> list[str]:
    """A key for each recording in this selection: ticks made in another selection do not count."""
    among = hashlib.sha256("\0".join(paths).encode(errors="surrogateescape")).hexdigest()[:16]
    return [f"{among}-{place}" for place in range(len(paths))]


def paths_of(path: str | None, more: Sequence[str] | None) -> list[str]:
    """All recordings, that of step 1 first. Raises InvalidAudio."""
    paths = [*([path] if path else []), *(more or [])]
    if len(paths) > MOST:
        raise InvalidAudio(Message("At most {most} recordings make a voice.", most=MOST))
    return paths


def _clone(studio: Studio, path: str, model: str) -> Clone:
    try:
        recording: Recording = recording_at(path)
    except InvalidAudio as error:
        raise InvalidAudio("{name}: {why}", name=Path(path).name, why=error.message) from error
    return studio.engine.clone(recording.waveform, "", model or None)


def _vector(studio: Studio, path: str, model: str) -> Vector:
    return _clone(studio, path, model).vector


def _row(name: str, alike: float, far: bool) -> str:
    mark, verdict = ("⚠️", APART) if far else ("✓", FITS)
    meter = f'<i aria-hidden="true" style="--share: {min(1.0, max(0.05, alike)):.2f}"></i>'
    return (
        f'<div class="{"bad" if far else "good"}"><dt>{mark} {alike:.0%}</dt>'
        f"<dd>{meter}<span>{escape(name)}</span><p>{both(verdict)}</p></dd></div>"
    )
