"""Samples of voices are spoken once, count for nobody, and let live listeners go first."""

from __future__ import annotations

import asyncio
import contextvars
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from engine import Preset, SpeechRequest, UnknownVoice, Voice
from engine.testing import FakeEngine
from studio.takes.voice_samples import MOST_WAITING, TEXT, VoiceSamples

visitor = contextvars.ContextVar("visitor", default="nobody")


def named(name: str) -> Voice:
    if name == "stranger":
        raise UnknownVoice("No voice is called so.")
    return Preset(name)


def samples_of(engine: FakeEngine, folder: Path) -> VoiceSamples:
    return VoiceSamples(engine, folder / "samples", named)


def counted(engine: FakeEngine) -> list[str]:
    """For whom each request came, as they come."""
    requested: list[str] = []

    def hook() -> Callable[[Any], object]:
        requested.append(visitor.get())
        return lambda stream: None

    engine.admission_hook = hook
    return requested


def test_a_sample_is_spoken_once_and_counts_for_nobody(engine: FakeEngine, tmp_path: Path) -> None:
    expected = engine.submit(SpeechRequest(TEXT, Preset("ryan"), seed=0)).collect()
    texts = counted(engine)

    async def ask(samples: VoiceSamples) -> list[bytes | None]:
        visitor.set("somebody")
        return list(await asyncio.gather(*(samples.sound("ryan") for _ in range(5))))

    heard = asyncio.run(ask(samples_of(engine, tmp_path)))
    again = asyncio.run(ask(samples_of(engine, tmp_path)))  # as after a restart
    assert texts == ["nobody"]
    assert len({*heard, *again}) == 1
    assert heard[0] is not None
    pcm, _ = soundfile.read(io.BytesIO(heard[0]), dtype="int16")
    np.testing.assert_array_equal(pcm, expected)


def test_what_cannot_be_spoken_has_no_sample(engine: FakeEngine, tmp_path: Path) -> None:
    assert asyncio.run(samples_of(engine, tmp_path).sound("stranger")) is None


def test_a_live_listener_goes_first(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = counted(engine)
    hurried = iter([True, True, False, True, False])  # before it; then in the midst of it, once
    looks: list[int] = []

    def hurry(apart_from: Any = ()) -> bool:
        looks.append(len(texts))
        return next(hurried, False)

    monkeypatch.setattr(engine, "hurried", hurry)
    assert asyncio.run(samples_of(engine, tmp_path).sound("ryan"))
    assert looks[:4] == [0, 0, 0, 1]  # nothing was asked for until nobody was in a hurry
    assert len(texts) == 2  # left, and begun anew


def test_what_is_no_longer_wanted_is_not_spoken(engine: FakeEngine, tmp_path: Path) -> None:
    texts = counted(engine)
    names = engine.capabilities()["fake"].speakers

    async def sweep() -> list[bytes | None]:
        samples = samples_of(engine, tmp_path)
        waiting = []
        for name in names:
            waiting.append(asyncio.create_task(samples.sound(name)))
            while len(samples._making) < len(waiting) - sum(task.done() for task in waiting):
                await asyncio.sleep(0)
        return list(await asyncio.gather(*waiting))

    heard = asyncio.run(sweep())
    assert len(names) > MOST_WAITING
    assert all(heard[-MOST_WAITING:])
    assert len(texts) == sum(sound is not None for sound in heard)
