"""Chooses the fastest implementation that gives the reference's results on this device.

Kernels need a certain GPU, driver or compiler, and may be wrong on an untested one. So each is
built and compared with the plain form once, when a model is loaded. Knows no kernels and no
networks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

Backend = TypeVar("Backend")
Reference = TypeVar("Reference")

log = logging.getLogger("timbre")


@dataclass(frozen=True)
class Candidate(Generic[Backend]):
    """An implementation to try."""

    name: str  # for log lines: "the talker's kernels"
    build: Callable[[], Backend | None]  # imports its dependencies; None: not for this device
    difference: Callable[[Backend], float]  # from the reference's results; 0: equal


def select_backend(
    candidates: Iterable[Candidate[Backend]], reference: Reference, tolerance: float
) -> Backend | Reference:
    """The first candidate that runs and is within the tolerance, or else the reference.

    A candidate that raises or differs is skipped with a warning. torch.OutOfMemoryError is not
    the candidate's fault and is raised.
    """
    for candidate in candidates:
        try:
            backend = candidate.build()
            difference = 0.0 if backend is None else candidate.difference(backend)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # an old GPU, no compiler, no Triton
            reason = str(error)  # the error holds the backend, and a log may be kept
            log.warning(
                "Not used: %s cannot run here (%s). Steps take longer.", candidate.name, reason
            )
            continue
        if backend is None:
            continue
        if difference <= tolerance:  # false for NaN
            return backend
        log.warning(
            "Not used: %s gave other results than the plain form here (off by %.0e). "
            "Steps take longer. Please report it.",
            candidate.name,
            difference,
        )
    return reference
