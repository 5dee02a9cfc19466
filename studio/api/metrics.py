"""The metrics of /metrics in Prometheus' format.

Responses are counted when they end, and the engine's statistics are read on request, so there is no
cost per chunk.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from engine import FRAME_SECONDS, End, Reason, SpeechEngine, Stats
from studio.api.errors import ApiError

_FIRST = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10)
_WHOLE = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The metrics of one API."""

    def __init__(self, engine: SpeechEngine) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "timbre_speech_requests",
            "Answers by how they ended",
            ["way", "reason"],
            registry=self._registry,
        )
        self.first = Histogram(
            "timbre_first_byte_seconds",
            "Request to first byte",
            ["way"],
            buckets=_FIRST,
            registry=self._registry,
        )
        self.total = Histogram(
            "timbre_speech_seconds",
            "Request to last byte",
            ["way"],
            buckets=_WHOLE,
            registry=self._registry,
        )
        self.audio = Counter(
            "timbre_answered_audio_seconds", "Audio answered", ["format"], registry=self._registry
        )
        self.refused = Counter(
            "timbre_refused", "Requests refused", ["status", "code"], registry=self._registry
        )
        self._registry.register(EngineNumbers(engine))

    def watch(self, way: str, format: str) -> Watch:
        return Watch(self, way, format)

    def refuse(self, error: ApiError) -> None:
        self.refused.labels(error.status, error.code).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Watch:
    """Times one response, from its request on."""

    def __init__(self, metrics: Metrics, way: str, format: str) -> None:
        self._metrics, self._way, self._format = metrics, way, format
        self._start = time.perf_counter()
        self._waiting = True  # for the first byte

    def first(self) -> None:
        if self._waiting:
            self._waiting = False
            self._metrics.first.labels(self._way).observe(self._elapsed)

    def end(self, end: End | None, reason: str | None = None) -> None:
        """`end` None: the client left early."""
        reason = reason or (end.reason if end else "cancelled")
        self._metrics.requests.labels(self._way, reason).inc()
        self._metrics.total.labels(self._way).observe(self._elapsed)
        self._metrics.audio.labels(self._format).inc(end.frames * FRAME_SECONDS if end else 0)

    @property
    def _elapsed(self) -> float:
        return time.perf_counter() - self._start


class EngineNumbers(Collector):
    """The engine's statistics, read on request."""

    def __init__(self, engine: SpeechEngine) -> None:
        self._engine = engine

    def collect(self) -> Iterable[Metric]:
        stats = self._engine.stats()
        for name, (help, value) in _gauges(stats).items():
            yield GaugeMetricFamily(f"timbre_{name}", help, value)
        for name, (help, value) in _counters(stats).items():
            yield CounterMetricFamily(f"timbre_{name}", help, value)
        ended = CounterMetricFamily(
            "timbre_engine_ended", "Requests by their end", None, ["reason"]
        )
        for reason in get_args(Reason):
            ended.add_metric([reason], stats.ended.get(reason, 0))
        yield ended
        yield from _replicas(stats)


def _replicas(stats: Stats) -> Iterable[Metric]:
    """The gauges and counters of each replica of a cluster."""
    if not stats.replicas:
        return
    kinds = ((GaugeMetricFamily, _gauges), (CounterMetricFamily, _counters))
    for family, numbers in kinds:
        for name, (help, _) in numbers(stats).items():
            metric = family(f"timbre_replica_{name}", f"{help}, by replica", None, ["replica"])
            for replica, counts in stats.replicas.items():
                metric.add_metric([replica], numbers(counts)[name][1])
            yield metric


def _gauges(stats: Stats) -> dict[str, tuple[str, float]]:
    lead = math.nan if stats.lowest_lead is None else stats.lowest_lead
    return {
        "running": ("Requests that hold a slot", stats.running),
        "waiting": ("Requests in the queue", stats.waiting),
        "slots": ("Slots on the device", stats.slots),
        "lead_seconds": ("Shortest lead of the live streams", lead),
        "step_seconds": ("Time of a step with everybody who runs", stats.step_seconds),
        "device_memory_bytes": ("Memory in use on the device", stats.memory),
    }


def _counters(stats: Stats) -> dict[str, tuple[str, float]]:
    return {
        "steps": ("Steps made", stats.steps),
        "failed_steps": ("Steps that raised", stats.failed_steps),
        "underruns": ("Times a live stream ran dry, as the scheduler sees it", stats.gaps),
        "audio_seconds": ("Audio made", stats.audio_seconds),
        "runaways": ("Requests stopped as runaways", stats.ended.get("runaway", 0)),
        "retries": ("Files made a second time", stats.retried),
        "queue_refusals": ("Requests refused by a full queue", stats.refused),
    }
