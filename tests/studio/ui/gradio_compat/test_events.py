"""Presses on one thing are handled in their order, whatever thread each of them gets."""

from __future__ import annotations

import asyncio
import threading

from studio.ui.gradio_compat.events import in_turn


def test_a_quick_second_press_waits_for_the_first_one() -> None:
    gate, done = threading.Event(), list[int]()

    def press(script: str, number: int) -> int:
        if number == 1:
            gate.wait()
        done.append(number)
        return number

    async def presses() -> list[int]:
        ordered = in_turn(press)
        quick = [asyncio.ensure_future(ordered("sea", number)) for number in (1, 2, 3)]
        assert await ordered("another script", 4) == 4  # nobody else waits
        gate.set()
        return await asyncio.gather(*quick)

    assert asyncio.run(presses()) == [1, 2, 3]
    assert done == [4, 1, 2, 3]


def test_one_that_fails_lets_the_next_one_in() -> None:
    def press(script: str, number: int) -> int:
        return 1 // number

    async def presses() -> list[int | BaseException]:
        ordered = in_turn(press)
        return await asyncio.gather(ordered("sea", 0), ordered("sea", 1), return_exceptions=True)

    failed, made = asyncio.run(presses())
    assert isinstance(failed, ZeroDivisionError)
    assert made == 1
