"""The device side of the engine: runs plans and returns codes and audio.

Each checkpoint has a fixed range of slot numbers, its own talker and KV cache; all share one codec.
A launch only starts work; its `StepHandle` waits for results. Knows slots, never requests.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from subprocess import Popen

import torch
from torch import Tensor

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.errors import EngineClosed, EngineError, NotCapable
from engine.model.codec import CodecDecoder, CodecState
from engine.model.talker import Talker
from engine.plan import Admit, CodecDecode, StepHandle, StepPlan
from engine.types import Clone, Waveform
from engine.worker.codec.codec_graphs import CpuStep, select_cpu_step
from engine.worker.codec.codec_runner import CodecRunner
from engine.worker.cpu_cores import SharedCores
from engine.worker.cpu_start import CpuStart
from engine.worker.cuda_graphs import synchronize
from engine.worker.device import (
    LARGE_WEIGHTS,
    compiles_kernels,
    pick_device,
    pick_dtype,
    return_free_memory,
    returned_memory,
    runs_cuda,
    set_libraries,
    step_threads,
    usable_cores,
)
from engine.worker.loading.model_loader import (
    empty_codec,
    load_codec,
    load_encoder,
    load_speaker,
    load_talker,
)
from engine.worker.loading.start_cache import StartCache
from engine.worker.loading.talker_ahead import load_ahead
from engine.worker.lru_cache import LRUCache
from engine.worker.model_runner import FrameBatch, ModelRunner, RunnerStep, make_model_runner
from engine.worker.reference.encoder_graphs import EncoderRunner, select_encoder
from engine.worker.reference.reference_encoder import ReferenceEncoder
from engine.worker.step_output import (
    FailedStep,
    FirstCodes,
    PendingStep,
    StepAudio,
    StepOutput,
    StepTimer,
    explain,
)
from engine.worker.worker_settings import WorkerSettings

AUDIO_FIRST_ROWS = 4  # up to this, a first chunk is decoded before the talker runs
TRACED_ROWS = 4  # batch sizes to trace; each takes half a second of loading
TAKE_SECONDS = 0.5  # between two looks at whether kernels can be taken
CODEC_MODELS = 4  # models that can be added without a restart; a codec slot takes 2 to 5 MB

log = logging.getLogger("timbre")


class TorchWorker:
    """The Worker of engine.plan on PyTorch."""

    def __init__(self, checkpoints: Mapping[str, LocalCheckpoint], settings: WorkerSettings):
        self._checkpoints, self._settings = dict(checkpoints), settings
        self._places = list(checkpoints)  # whose slots come first; "": of one that was removed
        self.device = pick_device(settings.device)
        self._cores = usable_cores()
        self._shared = SharedCores(self._cores)
        self._threads = step_threads(self._cores, 0)
        set_libraries(self.device)
        if runs_cuda(self.device) and settings.cache is not None:
            from engine.worker.kernels.cuda.nvrtc import Module

            Module.kept = StartCache(settings.cache)
        # for encoders, which no step waits for
        self._encoder_stream = (
            torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        )
        self.dtype = settings.dtype or pick_dtype(self.device)
        self._runners: dict[str, ModelRunner] = {}  # replaced, never modified: steps run meanwhile
        self._codec_runner: CodecRunner | None = None
        self._room = CODEC_MODELS  # models that the codec has slots for
        self._reference_encoder: ReferenceEncoder | None = None
        self._speakers: dict[str, EncoderRunner] = {}
        self._refused: set[int] = set()  # slots whose admission failed, with work in flight
        self._loading, self._stepping = threading.RLock(), threading.Lock()
        self._closed = False

    def slots(self, talker: str) -> range:
        return self._range(talker) if talker in self._runners else range(0)

    def load(self, talker: str) -> range:
        self._limit_threads()
        with self._loading, returned_memory(self.device), torch.inference_mode():
            if self._closed:
                raise EngineClosed("The engine is closed.")
            if talker not in self._runners:
                try:
                    place = self.device, self.dtype
                    ahead = load_ahead(self._checkpoints[talker], *place, self._settings)
                    self._codec_runner = self._codec_runner or self._load_codec_runner(talker)
                    runner = self._load_runner(talker, ahead)
                    self._warm_encoders(talker)
                    self._runners = {**self._runners, talker: runner}
                    self._compile_beside(talker)
                except Exception as error:
                    raise explain(error) from error
        return self._range(talker)

    def timings(self, talker: str) -> Mapping[int, float]:
        return self._runners[talker].timings

    def unload(self, talker: str) -> None:
        with self._loading:
            runner = self._runners.get(talker)
            self._runners = {n: each for n, each in self._runners.items() if n != talker}
            if runner is not None:
                runner.close()
            self._speakers.pop(talker, None)
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def exchange(self, out: str, name: str, checkpoint: LocalCheckpoint) -> None:
        """The new checkpoint takes over the slots; if no other is loaded, its codec is used."""
        with self._loading:
            self._rename(out, name)
            held = {**self._checkpoints, out: checkpoint}
            self._checkpoints = {name if n == out else n: each for n, each in held.items()}
            self._forget_encoders(out)
            if not self._runners:
                self._close_codec()

    def add(self, name: str, checkpoint: LocalCheckpoint) -> None:
        """The new checkpoint takes the first slots that are free, if the codec has slots for it."""
        with self._loading:
            if self._codec_runner is not None and len(self._checkpoints) >= self._room:
                raise EngineError(
                    "There is room for {most} models. Start Timbre with those you want.",
                    most=self._room,
                )
            self._places += [] if "" in self._places else [""]
            self._rename("", name)
            self._checkpoints = {**self._checkpoints, name: checkpoint}

    def remove(self, name: str) -> None:
        with self._loading:
            self._rename(name, "")
            if start := self._cpu_start(name):
                start.forget()
            self._checkpoints = {n: each for n, each in self._checkpoints.items() if n != name}
            self._forget_encoders(name)

    def _rename(self, out: str, name: str) -> None:
        if out in self._runners:  # a request that was long in preparation has loaded it
            raise EngineError("{out} is in use again. Try once more.", out=out)
        self._places[self._places.index(out)] = name

    def launch(self, plan: StepPlan) -> StepHandle:
        self._limit_threads()
        with self._stepping, torch.inference_mode():
            try:
                watch = StepTimer(self.device)
                return PendingStep(plan.number, self._step(plan), watch)
            except Exception as error:
                return FailedStep(explain(error))

    def encode(self, talker: str, audio: Waveform, transcript: str) -> Clone:
        try:
            with torch.inference_mode(), torch.cuda.stream(self._encoder_stream):
                reference_encoder, speaker = self._load_encoders(talker)
            return reference_encoder.clone(talker, speaker, audio, transcript)
        except Exception as error:
            raise explain(error) from error
        finally:
            return_free_memory(self.device)  # a minute of sound takes some hundred megabytes

    def reset(self) -> None:
        for runner in self._runners.values():
            runner.clear()

    def memory(self) -> int:
        if self.device.type == "cuda":
            grown = sum(runner.slots.cache.mapped_bytes for runner in self._runners.values())
            return torch.cuda.memory_allocated(self.device) + grown
        codec_runner = self._codec_runner.bytes if self._codec_runner else 0
        return codec_runner + sum(runner.bytes for runner in self._runners.values())

    def close(self) -> None:
        with self._loading:
            self._closed = True
            for runner in self._runners.values():
                runner.close()
            self._runners = {}
            self._speakers.clear()
            self._close_codec()
            self._reference_encoder = None
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _close_codec(self) -> None:
        if self._codec_runner is not None:
            self._codec_runner.close()
        self._codec_runner = None

    def _limit_threads(self) -> None:
        """Limit the calling thread, and those that torch starts later, to so many cores."""
        if self.device.type == "cpu" and torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)

    def _step(self, plan: StepPlan) -> StepOutput:
        for slot in plan.release:
            runner, row = self._at(slot)
            runner.release(row)
        failed = self._admit(plan.admit) if plan.admit else {}
        self._refused = (self._refused - {admit.slot for admit in plan.admit}) | failed.keys()
        for added in plan.append_text:
            if added.slot not in self._refused:
                runner, row = self._at(added.slot)
                runner.append_text(row, added)
        runners, codec = self._runners, self._codec()
        self._shared.leave(runners, codec, prompts=bool(plan.prefill))
        steps = self._start_steps(plan)
        rows = {name: len(step.rows) for name, step in steps}
        beside = self._shared.codec_threads(runners, rows, plan.awaits_audio)
        audio = self._codec_decode(plan, beside)
        self._shared.leave(runners, codec, prompts=False)
        first = None
        if isinstance(audio.done, torch.cuda.Event) and plan.awaits_audio:
            first = FirstCodes([self._by_slot(name, step.codes()) for name, step in steps])
            if len(plan.decode) <= AUDIO_FIRST_ROWS:
                torch.cuda.current_stream(self.device).wait_event(audio.done)
        frames = [self._by_slot(name, step.advance()) for name, step in steps]
        if audio.follows and audio.done and plan.awaits_audio:
            audio.done.synchronize()
        return StepOutput(frames, audio, failed, first)

    def _admit(self, admits: Sequence[Admit]) -> dict[int, Exception]:
        """Admit all; returns slots whose admission failed, which are free again, and why."""
        try:
            self._open(admits)
            return {}
        except Exception as error:
            if len(admits) == 1:
                return {admits[0].slot: explain(error)}
        # one by one, so that only those at fault fail
        return {slot: error for each in admits for slot, error in self._admit([each]).items()}

    def _open(self, admits: Sequence[Admit]) -> None:
        """Admit all of them, or none."""
        given: list[tuple[ModelRunner, int]] = []
        try:
            for runner, admitted in self._by_runner(admits):
                runner.admit(admitted)
                given += [(runner, row) for row, _ in admitted]
            self._codec().open([(admit.slot, admit.prompt.reference) for admit in admits])
        except Exception:
            for runner, row in given:
                runner.release(row)
            raise

    def _by_runner(
        self, admits: Sequence[Admit]
    ) -> Iterator[tuple[ModelRunner, list[tuple[int, Admit]]]]:
        """Admissions by runner, with their rows."""
        places = [(*self._at(admit.slot), admit) for admit in admits]
        for runner in dict.fromkeys(runner for runner, _, _ in places):
            yield runner, [(row, admit) for holder, row, admit in places if holder is runner]

    def _start_steps(self, plan: StepPlan) -> list[tuple[str, RunnerStep]]:
        """Launch prefill and the codes of frames, runner by runner."""
        steps, pieces = [], [each for each in plan.prefill if each.slot not in self._refused]
        wanted = [slot for slot in plan.decode if slot not in self._refused]
        for name, runner in self._runners.items():
            slots = self._range(name)
            due = [(slots.index(each.slot), each) for each in pieces if each.slot in slots]
            step = runner.start_step(due, [slots.index(slot) for slot in wanted if slot in slots])
            if step:
                steps.append((name, step))
        return steps

    def _by_slot(self, name: str, batch: FrameBatch) -> tuple[list[int], Tensor]:
        """A runner's frames by slot number."""
        slots = self._range(name)
        return [slots[row] for row in batch.rows], batch.codes

    def _codec_decode(self, plan: StepPlan, beside: int) -> StepAudio:
        """Decode slots by runner, those with the most frames first, beside the step on so many
        threads."""
        runners: dict[str, list[tuple[CodecDecode, int]]] = {}
        for due in sorted(plan.codec_decode, key=lambda due: due.start - due.stop):
            if due.slot not in self._refused:
                name, row = self._place(due.slot)
                runners.setdefault(name, []).append((due, row))
        work = []
        for name, group in runners.items():
            counts = [due.stop - due.start for due, _ in group]
            starts, rows = [due.start for due, _ in group], [row for _, row in group]
            codes = self._runners[name].codes_from(rows, starts, counts[0])
            work.append(([due.slot for due, _ in group], codes, counts))
        return self._codec().decode(work, beside)

    def _at(self, slot: int) -> tuple[ModelRunner, int]:
        """The runner and row of a slot number."""
        name, row = self._place(slot)
        return self._runners[name], row

    def _place(self, slot: int) -> tuple[str, int]:
        number, row = divmod(slot, self._settings.max_num_seqs)
        return self._places[number], row

    def _range(self, talker: str) -> range:
        start = self._places.index(talker) * self._settings.max_num_seqs
        return range(start, start + self._runners[talker].rows)

    def _codec(self) -> CodecRunner:
        assert self._codec_runner is not None
        return self._codec_runner

    def _load_runner(
        self, talker: str, ahead: Talker | None = None, keeps: bool = True
    ) -> ModelRunner:
        checkpoint, settings = self._checkpoints[talker], self._settings
        place = self.device, self.dtype
        start = self._cpu_start(talker)
        threads = step_threads(self._cores, start.bytes) if start else 0
        kept = start and start.talker(threads)
        networks = ahead or kept or load_talker(checkpoint.folder, *place, settings.weights)
        self._threads = max(self._threads, step_threads(self._cores, _bytes(networks)))
        positions = settings.positions(checkpoint.max_positions)
        talkers = len(self._checkpoints) - len(self._runners)
        runner = make_model_runner(
            networks, checkpoint.ids, settings.max_num_seqs, positions, *place, talkers
        )
        runner.warm()
        if settings.fast and self.device.type == "cpu":
            self._speed_up(runner, start, self._waits(start))
            if start and keeps and not kept and start.keep_talker(networks, threads):
                runner.close()
                del runner, networks  # mapped, they take less memory
                return self._load_runner(talker, keeps=False)
            self._shared.divide(runner, self._codec(), start)
        self._synchronize()
        return runner

    def _cpu_start(self, talker: str) -> CpuStart | None:
        """What earlier starts on this machine have kept, if that is wanted."""
        settings = self._settings
        takes = settings.fast and settings.weights != "full" and self.dtype == torch.float32
        if not takes or settings.cache is None or self.device.type != "cpu":
            return None
        if not compiles_kernels():
            return None
        folder = self._checkpoints[talker].folder
        return CpuStart(StartCache(settings.cache), folder, settings.weights)

    def _speed_up(self, runner: ModelRunner, start: CpuStart | None, waits: bool = False) -> None:
        """Kernels if these are right here, else traces; `waits`: kernels follow later, before a
        trace, which takes seconds, would have been worth it."""
        if waits:
            return
        settings, weights = self._settings, _bytes(runner.talker)
        threads = step_threads(self._cores, start.bytes if start else weights)
        proof = start.talker_proof(threads) if start else None
        if settings.weights != "full" and runner.use_cpu_kernels(threads, proof):
            return
        # a trace takes 160 MB at published sizes, and half a second
        rows = TRACED_ROWS if weights < LARGE_WEIGHTS else 1
        runner.step.predict.trace(min(settings.max_num_seqs, rows))

    def _waits(self, start: CpuStart | None) -> bool:
        """Whether kernels are still to be compiled, by another process."""
        if not self._settings.compiles_beside or start is None:
            return False
        return start.keeps() and not start.compiled(step_threads(self._cores, start.bytes))

    def _compile_beside(self, talker: str) -> None:
        start = self._cpu_start(talker)
        if start is None or not self._waits(start):
            return
        begun = start.begin(step_threads(self._cores, start.bytes))
        threading.Thread(target=self._follow, args=(talker, begun), daemon=True).start()

    def _follow(self, talker: str, begun: Popen[str]) -> None:
        """Tell how far the process is; when it is done and nobody is heard, take the kernels."""
        with begun:
            for line in begun.stderr or ():
                log.warning("%s", line.rstrip())
        if begun.returncode:
            log.warning("Kernels could not be compiled; speech is made without them, slower.")
            return
        while not self._closed and not self._take_kernels(talker):
            time.sleep(TAKE_SECONDS)

    def _take_kernels(self, talker: str) -> bool:
        """Whether that is done with: not while a slot is in use."""
        self._limit_threads()
        with self._loading, self._stepping, torch.inference_mode():
            if any(runner.row_states for runner in self._runners.values()):
                return False
            runner = self._runners.get(talker)
            start = self._cpu_start(talker) if runner is not None else None
            if self._closed or start is None or runner is None:
                return True
            codec = self._load_codec(talker, torch.float32)
            if isinstance(codec, CpuStep):
                self._close_codec()
                self._codec_runner = self._run_codec(codec, torch.float32)
            self._speed_up(runner, start)
            self._shared.divide(runner, self._codec(), start)
            return True

    def _load_codec_runner(self, talker: str) -> CodecRunner:
        settings = self._settings
        half = torch.float16 if self.dtype.itemsize == 2 else torch.float32
        dtype = settings.codec_dtype or half
        self._room = max(CODEC_MODELS, len(self._places))
        codec_runner = self._run_codec(self._load_codec(talker, dtype), dtype)
        codec_runner.warm()
        return codec_runner

    def _run_codec(self, codec: CodecDecoder | CpuStep, dtype: torch.dtype) -> CodecRunner:
        slots = self._settings.max_num_seqs * self._room
        cache: LRUCache[str, CodecState] = LRUCache(self._settings.reference_bytes)
        return CodecRunner(codec, slots, cache, dtype)

    def _load_codec(self, talker: str, dtype: torch.dtype) -> CodecDecoder | CpuStep:
        """The decoder, on a CPU on its kernel if that is right here."""
        settings, start = self._settings, self._cpu_start(talker)
        folder = self._checkpoints[talker].folder
        on_kernel = settings.fast and settings.weights != "full" and self.device.type == "cpu"
        empty = empty_codec(folder)
        threads = step_threads(self._cores, empty.bytes) if on_kernel else 0
        if start and (kept := start.codec(threads, empty)):
            return kept
        codec = load_codec(folder, self.device, torch.float32)
        if threads == 0 or dtype != torch.float32 or self._waits(start):
            return codec
        step = select_cpu_step(codec, threads)
        if start and step:
            start.keep_codec(step, threads)
            if kept := start.codec(threads, empty):
                step.close()
                return kept
        return step or codec

    def _load_encoders(self, talker: str) -> tuple[ReferenceEncoder, EncoderRunner]:
        """The encoders, loaded at first use."""
        settings = self._settings
        with self._loading:
            checkpoint = self._checkpoints[talker]
            if not checkpoint.capabilities.clone:
                raise NotCapable("{talker} cannot clone a voice. Use a Base model.", talker=talker)
            if self._reference_encoder is None:
                encoder = select_encoder(
                    load_encoder(checkpoint.folder, self.device).encode, self.device
                )
                limit, silence = settings.reference_bytes, settings.reference_silence
                self._reference_encoder = ReferenceEncoder(
                    encoder, limit, silence, self._encoder_stream
                )
            if talker not in self._speakers:
                speaker = load_speaker(checkpoint.folder, self.device)
                self._speakers[talker] = select_encoder(speaker.embed, self.device)
                self._synchronize()
            return self._reference_encoder, self._speakers[talker]

    def _forget_encoders(self, talker: str) -> None:
        """Another checkpoint of this name may follow, and cached voices have the name as a key."""
        self._speakers.pop(talker, None)
        self._reference_encoder = None

    def _warm_encoders(self, talker: str) -> None:
        """On a GPU, load the encoders before the first recording."""
        if self._encoder_stream is not None and self._checkpoints[talker].capabilities.clone:
            reference_encoder, speaker = self._load_encoders(talker)
            reference_encoder.warm(speaker)

    def _synchronize(self) -> None:
        """Wait until weights are written, before another stream reads them."""
        synchronize(self.device)


def _bytes(network: torch.nn.Module) -> int:
    return sum(tensor.nbytes for tensor in (*network.parameters(), *network.buffers()))
