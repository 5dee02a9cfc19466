"""The statistics of many replicas as those of one engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from engine.scheduler.admission import joined
from engine.stats import Counters, Stats


def add_up(replicas: Mapping[str, Stats], here: Counters, refused: int) -> Stats:
    """Sums, and the worst of what has no sum; `replicas` keeps each one's own.

    Latency is what listeners on this side have seen, and before any, the worst replica's.
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
