"""Stands in for Hugging Face's `spaces` package on ZeroGPU, written after version 0.51.

What is decorated runs in a forked process, one call each; arguments and results are pickled;
coroutines and asynchronous generators are refused; what goes wrong there arrives as Gradio's own
error with the name of its class and without its words. ZERO_CALLS names a file that every call
is written into: its process, and the seconds of a device that were asked for.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import gradio as gr

fork = multiprocessing.get_context("fork")
MAIN = os.getpid()


def GPU(task: Any = None, *, duration: Any = None) -> Any:  # noqa: N802  # its own name
    if task is None:
        return lambda each: GPU(each, duration=duration)
    if inspect.iscoroutinefunction(task) or inspect.isasyncgenfunction(task):
        raise NotImplementedError

    if inspect.isgeneratorfunction(task):

        @wraps(task)
        def generate(*given: Any) -> Iterator[Any]:
            yield from _call(task, given, _seconds(duration, given))

        return generate

    @wraps(task)
    def call(*given: Any) -> Any:
        return next(_call(lambda *each: iter([task(*each)]), given, _seconds(duration, given)))

    return call


def _seconds(duration: Any, given: Any) -> float:
    return float(duration(*given) if callable(duration) else duration or 60)


def _call(task: Callable[..., Any], given: Any, seconds: float) -> Iterator[Any]:
    questions, answers, stop = fork.SimpleQueue(), fork.SimpleQueue(), fork.Event()
    process = fork.Process(
        target=_there, args=(task, questions, answers, stop, seconds), daemon=True
    )
    process.start()
    questions.put(given)
    try:
        while (answer := answers.get())[0] == "made":
            yield answer[1]
        if answer[0] == "failed":
            raise gr.Error(answer[1], print_exception=False)
    finally:
        stop.set()
        process.join(60)
        assert process.exitcode == 0, process.exitcode


def _there(
    task: Callable[..., Any], questions: Any, answers: Any, stop: Any, seconds: float
) -> None:
    if log := os.environ.get("ZERO_CALLS"):
        with Path(log).open("a") as file:
            file.write(f"{os.getpid()} {MAIN} {seconds}\n")
    try:
        made = task(*questions.get())
        for each in made:
            if stop.is_set():
                made.close()
                break
            answers.put(("made", each))
        answers.put(("done", None))
    except Exception as error:
        answers.put(("failed", type(error).__name__))
