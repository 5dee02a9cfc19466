"""The cores of a CPU, shared by the kernels of steps and the codec's beside them: how long both
take by threads, and who has how many now.

No core is given to two threads: one that waits for a core holds up all others of its kernel.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from engine.types import FRAME_SECONDS
from engine.worker.codec.codec_runner import TIMED_FRAMES, CodecRunner
from engine.worker.core_shares import ROWS, CoreShares, FrameTimes
from engine.worker.cpu_start import CpuStart
from engine.worker.device import LARGE_WEIGHTS, compiles_kernels, step_threads
from engine.worker.model_runner import ModelRunner

PROMPT_SHARE = 0.75  # of a prompt's threads: rather than run on fewer it waits for the codec
QUICK = FRAME_SECONDS / 4  # a frame's time that is believed from a busy machine, too

log = logging.getLogger("timbre")


class SharedCores:
    def __init__(self, cores: int) -> None:
        self._cores = cores
        self.count = step_threads(cores, LARGE_WEIGHTS)  # what is not left for streaming

    def leave(self, runners: Mapping[str, ModelRunner], codec: CodecRunner, prompts: bool) -> None:
        """Leave the codec its cores while the next kernels run beside it. Wait for it if it has all
        of them, or if these are of prompts and would be much slower."""
        wanted = min(self.count, max((each.threads for each in runners.values()), default=0))
        free = self.count - codec.threads_at_work
        if free < (PROMPT_SHARE * wanted if prompts else 1):
            codec.wait()
            free = self.count
        for runner in runners.values():
            runner.leave_cores(free)

    def codec_threads(
        self, runners: Mapping[str, ModelRunner], rows: Mapping[str, int], first: bool
    ) -> int:
        """Threads of the codec beside steps of so many rows; 0: they wait for it. `first`: for a
        first chunk, which a listener waits for."""
        if rows:
            return min(runners[name].codec_threads(count, first) for name, count in rows.items())
        beside = any(runner.codec_threads(1) for runner in runners.values())
        return self.count if beside else 0  # nothing else needs a core

    def divide(self, runner: ModelRunner, codec: CodecRunner, start: CpuStart | None) -> None:
        """Find how long a frame takes by threads, unless an earlier start did, and so how many each
        gets."""
        threads = step_threads(self._cores, start.bytes) if start else 0
        times = start.frame_times(threads) if start and runner.on_cpu_kernels else None
        if times is None or not times.steps.keys() >= self._rows(runner, codec):
            times, believed = self._timed(runner, codec)
            if start and believed:
                start.keep_frame_times(threads, times)
        runner.share(shares := CoreShares(self.count, times))
        log.debug("Frames: %s.", shares)

    def _timed(self, runner: ModelRunner, codec: CodecRunner) -> tuple[FrameTimes, bool]:
        """Seconds of a frame, and whether a later start may believe them."""
        if self._are_tried(runner, codec) and (times := self._tried(runner, codec)).known:
            return times, True
        seconds: list[float] = []
        quiet = _quiet(lambda: seconds.extend((runner.step_seconds(), codec.seconds())))
        step, frame = seconds
        times = FrameTimes(
            {1: {runner.threads or self.count: step}}, {codec.threads or self.count: frame}
        )
        believed = quiet or step + frame <= QUICK
        return times, believed and not self._are_tried(runner, codec)

    def _are_tried(self, runner: ModelRunner, codec: CodecRunner) -> bool:
        """Whether numbers of threads are worth trying: both are kernels that would take more cores
        than there are, and these are enough for both to be on several."""
        large = runner.weights >= LARGE_WEIGHTS
        both = runner.threads and codec.threads and runner.threads + codec.threads > self.count
        return bool(both) and self.count >= (4 if large else 2)

    def _rows(self, runner: ModelRunner, codec: CodecRunner) -> set[int]:
        """Of the steps that are timed."""
        return {1, min(ROWS, runner.rows)} if self._are_tried(runner, codec) else {1}

    def _tried(self, runner: ModelRunner, codec: CodecRunner) -> FrameTimes:
        from engine.worker.kernels.cpu.threads import counts_to, tried  # needs numba

        counts = counts_to(min(runner.threads, self.count))
        times = FrameTimes({}, {})
        for rows in sorted(self._rows(runner, codec)):
            if times.known:
                steps = tried(partial(runner.run_step, rows), counts)
                times = FrameTimes({**times.steps, rows: steps}, {})
        if times.known:
            chunk = tried(partial(codec.run_chunk, TIMED_FRAMES), counts_to(codec.threads))
            frame = {count: seconds / TIMED_FRAMES for count, seconds in chunk.items()}
            times = FrameTimes(times.steps, frame)
        runner.leave_cores(self.count)
        return times


def _quiet(run: Callable[[], object]) -> bool:
    """Run, and tell whether nothing else had the cores meanwhile, as far as that is known."""
    if not compiles_kernels():
        run()
        return False
    from engine.worker.kernels.cpu.threads import timed  # needs numba

    return timed(run)[1]
