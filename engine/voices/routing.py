"""Picks the checkpoint for a voice, and resolves a blend to one vector.

Blends are known here and above only. This module reads capabilities and speaker embeddings; it
knows no weights, slots or files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from engine.errors import InvalidSetting, InvalidVoice, NotCapable, UnknownLanguage, UnknownVoice
from engine.folding import folded
from engine.messages import Message
from engine.plan import Checkpoint
from engine.types import (
    Blend,
    Capabilities,
    Clone,
    Design,
    Mood,
    Mooded,
    Preset,
    SpeechRequest,
    Vector,
    Voice,
)
from engine.voices.blend import Method, check_weights, mix
from engine.voices.mood import check_moods, speaker_space, with_moods

Checkpoints: TypeAlias = Mapping[str, Checkpoint]
TRAINED_ELSEWHERE: Final = (
    "This voice was trained for {model} and speaks with its exact weights only. Here is: {there}. "
    "Load that model, or train the voice again with this one."
)
_NEEDS = {
    "preset": Message("has preset speakers (a CustomVoice model)"),
    "clone": Message("clones (a Base model)"),
    "design": Message("designs voices (a VoiceDesign model)"),
    "instruct": Message("follows instructions (a 1.7B CustomVoice model)"),
    "vectors": Message("clones or has preset speakers (a Base or CustomVoice model)"),
}


@dataclass(frozen=True)
class Routed:
    """A checkpoint's name and the voice for it."""

    checkpoint: str
    voice: Preset | Clone | Design


def route(request: SpeechRequest, checkpoints: Checkpoints) -> Routed:
    """Pick the checkpoint for a request. Raises RequestError that lists what there is."""
    return route_voice(request.voice, checkpoints, request.model)


def route_voice(voice: Voice, checkpoints: Checkpoints, model: str | None = None) -> Routed:
    """Pick the checkpoint by the voice, or use the one named by `model`."""
    able = restrict(checkpoints, model)
    if isinstance(voice, Preset):
        return _preset(voice, able)
    if isinstance(voice, Design):
        return _design(voice, able)
    if isinstance(voice, Clone):
        return _trained(voice, able) if voice.trained else _clone(voice, able)
    mixture = _mixture(voice)
    single = mixture.single
    if single and not mixture.moods:
        return route_voice(single, checkpoints, model)
    if isinstance(single, Clone):
        return _with_moods(route_voice(single, checkpoints, model), mixture.moods, checkpoints)
    return _with_moods(_mixed(mixture, able, checkpoints), mixture.moods, checkpoints)


def is_native(voice: Clone, capabilities: Mapping[str, Capabilities]) -> bool:
    """Whether the model that it was made with is here and can speak it, or is not known."""
    able = capabilities.get(voice.model)
    fits = able is not None and able.width == len(voice.vector)
    if voice.trained:
        return any(speaks(voice, each) for each in capabilities.values())
    return not voice.model or (fits and able is not None and speaks(voice, able))


def speaks(voice: Clone, able: Capabilities) -> bool:
    """In-context clones need a checkpoint that clones; a vector also works with presets; a trained
    voice needs the very weights that it was trained for."""
    if voice.trained:
        return voice.digest == able.digest
    return _ABILITIES["clone" if voice.in_context else "vectors"](able)


def cloner(checkpoints: Checkpoints, model: str | None = None) -> str:
    """The checkpoint that makes clones."""
    return next(iter(_able(restrict(checkpoints, model), "clone")))


def restrict(checkpoints: Checkpoints, model: str | None) -> Checkpoints:
    """The checkpoints a request may use: all, or the one it names."""
    if model is None:
        return checkpoints
    if model not in checkpoints:
        raise InvalidSetting(
            "No model is called '{model}'. There are: {there}.",
            model=model,
            there=", ".join(checkpoints),
        )
    return {model: checkpoints[model]}


def speaker(name: str, capabilities: Capabilities) -> str | None:
    """The checkpoint's own spelling of a speaker's name."""
    wanted = folded(name.strip())
    return next((each for each in capabilities.speakers if folded(each) == wanted), None)


def speaker_names(checkpoints: Checkpoints) -> list[str]:
    """Every preset speaker of these checkpoints, sorted."""
    return sorted(
        {speaker for each in checkpoints.values() for speaker in each.capabilities.speakers}
    )


def describe(capabilities: Capabilities) -> Message:
    """A short list of what a checkpoint can do."""
    count = len(capabilities.speakers)
    abilities = {
        Message("{count} preset speakers", count=count): capabilities.preset and count != 1,
        Message("1 preset speaker"): capabilities.preset and count == 1,
        Message("instructions"): capabilities.instruct,
        Message("cloning"): capabilities.clone,
        Message("voice design"): capabilities.design,
    }
    return Message.listed(name for name, has in abilities.items() if has) or Message("nothing")


def no_language(language: str, able: Capabilities) -> UnknownLanguage:
    """The error for a language that a checkpoint does not speak."""
    return UnknownLanguage(
        "{name} does not speak '{wanted}'. It speaks: {there}.",
        name=able.name,
        wanted=language[:80],
        there=", ".join(("auto", *able.languages)),
    )


def _preset(voice: Preset, checkpoints: Checkpoints) -> Routed:
    holders = _holders(voice.name, checkpoints)
    if voice.instruct.strip():
        holders = _able(holders, "instruct")
    name, checkpoint = next(iter(holders.items()))
    named = speaker(voice.name, checkpoint.capabilities) or voice.name
    return Routed(name, replace(voice, name=named))


def _design(voice: Design, checkpoints: Checkpoints) -> Routed:
    designers = _able(checkpoints, "design")
    if not voice.instruct.strip():
        raise InvalidVoice("Describe the voice in a few words, for example 'a calm low voice'.")
    return Routed(next(iter(designers)), voice)


def _clone(voice: Clone, checkpoints: Checkpoints) -> Routed:
    """The model that it was made with; else one that clones, if there is one."""
    _check_vector(voice.vector)
    able = _able(checkpoints, "clone" if voice.in_context else "vectors")
    fitting = _of_width(able, len(voice.vector))
    best = min(
        fitting, key=lambda name: (name != voice.model, not fitting[name].capabilities.clone)
    )
    return Routed(best, voice)


def _trained(voice: Clone, checkpoints: Checkpoints) -> Routed:
    """The checkpoint with the weights that it was trained for."""
    _check_vector(voice.vector)
    for name, each in checkpoints.items():
        if speaks(voice, each.capabilities):
            return Routed(name, voice)
    there = ", ".join(checkpoints)
    raise InvalidVoice(TRAINED_ELSEWHERE, model=voice.model or "?", there=there)


@dataclass(frozen=True)
class _Mixture:
    """A blend, a voice in moods, or both, in one form: voices by weight, moods by strength."""

    parts: tuple[tuple[Preset | Clone, float], ...]
    method: Method
    moods: tuple[tuple[Mood, float], ...]  # none at strength 0
    blended: bool  # a blend of one voice alone is a blend

    @property
    def single(self) -> Preset | Clone | None:
        """The only voice, where it is no blend."""
        return None if self.blended else self.parts[0][0]


def _mixture(voice: Blend | Mooded) -> _Mixture:
    """A blend's moods are those of its parts by their shares, so that a blend of voices in a mood
    is the blend in that mood."""
    if isinstance(voice, Mooded):
        check_moods(voice.moods)
        inner = voice.voice
        felt = tuple((mood, strength) for mood, strength in voice.moods if strength)
        if not isinstance(inner, Blend):
            return _Mixture(((inner, 1.0),), "linear", felt, blended=False)
        rest = _mixture(inner)
        return replace(rest, moods=(*rest.moods, *felt))
    parts: list[tuple[Preset | Clone, float]] = []
    moods: list[tuple[Mood, float]] = []
    total = sum(weight for _, weight in voice.parts)
    for part, weight in voice.parts:
        if not isinstance(part, Mooded):
            parts.append((part, weight))
            continue
        if isinstance(part.voice, Blend):
            raise InvalidSetting("A blend of blends is not possible: blend their voices.")
        check_moods(part.moods)
        check_weights([weight for _, weight in voice.parts])
        parts.append((part.voice, weight))
        moods += [(mood, strength * weight / total) for mood, strength in part.moods]
    return _Mixture(tuple(parts), voice.method, tuple(each for each in moods if each[1]), True)


def _mixed(mixture: _Mixture, able: Checkpoints, checkpoints: Checkpoints) -> Routed:
    """One of `able` speaks the mixture; its parts may be of any checkpoint."""
    vectors = [_vector(part, able, checkpoints) for part, _ in mixture.parts]
    weights = [weight for _, weight in mixture.parts]
    blended = mix(vectors, weights, mixture.method) if mixture.blended else vectors[0]
    fitting = _of_width(_able(able, "vectors"), len(blended))
    best = min(fitting, key=lambda name: _distance(mixture.parts, name, fitting[name].capabilities))
    return Routed(best, Clone(blended, model=best))


def _distance(
    parts: tuple[tuple[Preset | Clone, float], ...], name: str, capabilities: Capabilities
) -> tuple[bool, bool]:
    """A sort key: first checkpoints that have every part, then those that clone."""
    home = all(
        speaker(part.name, capabilities) if isinstance(part, Preset) else part.model == name
        for part, _ in parts
    )
    return not home, not capabilities.clone


def _with_moods(
    routed: Routed, moods: tuple[tuple[Mood, float], ...], checkpoints: Checkpoints
) -> Routed:
    """The voice in these moods. A recording in the prompt would bring its own mood along, so a
    clone is spoken by its vector alone; what was learned for its vector stays."""
    if not moods:
        return routed
    voice, space = routed.voice, speaker_space(checkpoints[routed.checkpoint].capabilities)
    assert isinstance(voice, Clone)  # mixtures are vectors
    for mood, _ in moods:
        if mood.space and mood.space != space:
            raise InvalidVoice(
                "The mood '{name}' was learned for other models ({theirs}) than {model} ({own}). "
                "Learn it again with this one: timbre mood learn.",
                name=mood.name,
                theirs=mood.space,
                model=routed.checkpoint,
                own=space,
            )
    moved = with_moods(voice.vector, moods)
    return replace(routed, voice=replace(voice, vector=moved, transcript="", codes=None))


def _vector(part: Preset | Clone, able: Checkpoints, checkpoints: Checkpoints) -> Vector:
    if isinstance(part, Clone):
        _check_vector(part.vector)
        return part.vector
    if part.instruct.strip():
        raise NotCapable(
            "Blends and moods can't follow style instructions. Clear them, or use one preset "
            "voice without a mood."
        )
    holders = _holders(part.name, checkpoints)
    widths = {each.capabilities.width for each in able.values()}
    best = min(
        holders,
        key=lambda name: (name not in able, holders[name].capabilities.width not in widths),
    )
    holder = holders[best]
    return holder.speaker_vector(speaker(part.name, holder.capabilities) or part.name)


def _holders(name: str, checkpoints: Checkpoints) -> Checkpoints:
    """The checkpoints that have this preset speaker."""
    presets = _able(checkpoints, "preset")
    holders = {key: each for key, each in presets.items() if speaker(name, each.capabilities)}
    if not holders:
        there = ", ".join(speaker_names(presets))
        raise UnknownVoice(
            "No voice is called '{name}'. There are: {there}.", name=name[:80], there=there
        )
    return holders


def _able(checkpoints: Checkpoints, ability: str) -> Checkpoints:
    has = _ABILITIES[ability]
    able = {key: each for key, each in checkpoints.items() if has(each.capabilities)}
    if not able:
        raise NotCapable(
            "This needs a model that {ability}. There is {there}. Add one under Engine, or with "
            "--model.",
            ability=_NEEDS[ability],
            there=_loaded(checkpoints),
        )
    return able


def _of_width(checkpoints: Checkpoints, width: int) -> Checkpoints:
    fitting = {key: each for key, each in checkpoints.items() if each.capabilities.width == width}
    if not fitting:
        there = ", ".join(f"{key} {each.capabilities.width}" for key, each in checkpoints.items())
        raise InvalidVoice(
            "This voice's vector has {width} numbers, and no checkpoint takes that many "
            "({there}). Make the voice again with one of these.",
            width=width,
            there=there,
        )
    return fitting


def _check_vector(vector: Vector) -> None:
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise InvalidVoice("This voice's vector is damaged. Make the voice again.")


def _loaded(checkpoints: Checkpoints) -> Message:
    parts = (
        Message("{name} ({able})", name=key, able=describe(each.capabilities))
        for key, each in checkpoints.items()
    )
    return Message.listed(parts, "; ") or Message("none at all")


_ABILITIES: dict[str, Callable[[Capabilities], bool]] = {
    "preset": lambda able: able.preset,
    "clone": lambda able: able.clone,
    "design": lambda able: able.design,
    "instruct": lambda able: able.instruct,
    "vectors": lambda able: able.clone or able.preset,
}
