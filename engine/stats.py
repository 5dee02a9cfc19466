"""Statistics of an engine: its state and totals as plain numbers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.requests.sequence import Sequence
from engine.scheduler.admission import Admission, joined
from engine.types import Chunk, End

RECENT = 512  # live requests whose time to first audio is kept


@dataclass(frozen=True)
class Stats:
    """A snapshot of an engine's state and totals."""

    running: int
    waiting: int
    slots: int
    talkers: tuple[str, ...]  # loaded now
    realtime_capacity: int  # streams that this machine can serve without a gap, as measured
    step_seconds: float  # of a step with the requests that run now
    steps: int
    failed_steps: int
    refused: int
    retried: int
    ended: dict[str, int]  # by reason
    audio_seconds: float
    gaps: int  # times a live stream ran out of audio
    first_audio: tuple[float, float] | None  # seconds from request to audio: median, p95
    lowest_lead: float | None  # seconds of audio buffered, of the streams that run now
    memory: int  # bytes on the device
    replicas: Mapping[str, Stats] = field(default_factory=dict)  # of a cluster, by name
    dashboard: str = ""  # the address where its processes are seen
    admission: Admission = field(default_factory=Admission)  # of further requests
    speed: float | None = None  # seconds of audio a second, for one stream alone; None: not timed


@dataclass
class Counters:
    """Running totals; only the engine's thread writes them."""

    steps: int = 0
    failed_steps: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    audio_seconds: float = 0.0
    gaps: int = 0
    first_audios: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def record(self, sequence: Sequence, item: Chunk | End) -> None:
        if isinstance(item, End):
            self.ended[item.reason] += 1
            self.gaps += sequence.playback.gaps if sequence.live else 0
            return
        self.audio_seconds += item.seconds
        if item.index == 0 and sequence.live and sequence.playback.began is not None:
            self.first_audios.append(sequence.playback.began - sequence.arrived)

    def first_audio(self) -> tuple[float, float] | None:
        recent = tuple(self.first_audios)
        if not recent:
            return None
        median, late = np.percentile(recent, (50, 95))
        return float(median), float(late)


def add_up(replicas: Mapping[str, Stats], here: Counters, refused: int) -> Stats:
    """The statistics of many engines as those of one: sums, and the worst of what has no sum.

    `replicas` keeps each one's own. Latency is what listeners on this side have seen, and before
    any, the worst replica's.
    """
    each = tuple(replicas.values())
    ended: Counter[str] = Counter()
    for stats in each:
        ended.update(stats.ended)
    firsts = [stats.first_audio for stats in each if stats.first_audio]
    return Stats(
        running=sum(stats.running for stats in each),
        waiting=sum(stats.waiting for stats in each),
        slots=sum(stats.slots for stats in each),
        talkers=tuple(dict.fromkeys(name for stats in each for name in stats.talkers)),
        realtime_capacity=sum(stats.realtime_capacity for stats in each),
        step_seconds=max((stats.step_seconds for stats in each), default=0.0),
        steps=sum(stats.steps for stats in each),
        failed_steps=sum(stats.failed_steps for stats in each),
        refused=refused + sum(stats.refused for stats in each),
        retried=sum(stats.retried for stats in each),
        ended=dict(ended),
        audio_seconds=sum(stats.audio_seconds for stats in each),
        gaps=sum(stats.gaps for stats in each),
        first_audio=here.first_audio() or max(firsts, default=None),
        lowest_lead=min(
            (stats.lowest_lead for stats in each if stats.lowest_lead is not None), default=None
        ),
        memory=sum(stats.memory for stats in each),
        replicas=dict(replicas),
        admission=joined([stats.admission for stats in each]),
        speed=min((stats.speed for stats in each if stats.speed is not None), default=None),
    )
