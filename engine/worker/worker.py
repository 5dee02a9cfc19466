"""The device side of the engine: plans in, codes and sound out.

Each checkpoint has a fixed range of slot numbers, its own talker and cache; all share one
codec. A step only starts work; `StepHandle.read` waits for it. Knows slots, never requests.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.errors import EngineClosed, EngineError, NotCapable
from engine.plan import Admit, CodecDecode, StepHandle, StepPlan
from engine.types import Clone, Waveform
from engine.worker.codec.codec_runner import CodecRunner
from engine.worker.cuda_graphs import finish
from engine.worker.device import keep_float32, leave_a_core, pick_device, pick_dtype
from engine.worker.loading.model_loader import load_codec, load_encoder, load_speaker, load_talker
from engine.worker.model_runner import FrameBatch, Half, ModelRunner, lane_for
from engine.worker.reference.encoder_graphs import Hearing, hearing
from engine.worker.reference.reference_encoder import LRUCache, ReferenceEncoder
from engine.worker.step_output import FailedStep, Made, PendingStep, Sound, Stopwatch, explain

FEW_ROWS = 4  # up to which a first sound goes before the talker
TRACED_ROWS = 4  # half a second of loading each


@dataclass(frozen=True)
class WorkerSettings:
    """Where the worker runs and how much it holds; slots and positions are the engine's."""

    max_num_seqs: int  # of each talker
    max_seq_len: int  # of each slot
    device: str | None = None  # None: a GPU where there is one
    dtype: torch.dtype | None = None  # None: bfloat16 on GPUs that know it, float32 elsewhere
    codec_dtype: torch.dtype | None = None  # None: float16 beside a talker of two bytes
    trace: bool = False  # replay small predictors without Python, on CPUs
    reference_silence: float = 0.5  # seconds put after a recording before it is encoded
    reference_bytes: int = 512 << 20  # kept of encoded references


class TorchWorker:
    """The Worker of engine.plan on PyTorch."""

    def __init__(self, checkpoints: Mapping[str, LocalCheckpoint], settings: WorkerSettings):
        self._checkpoints, self._settings = dict(checkpoints), settings
        self.device = pick_device(settings.device)
        leave_a_core(self.device)
        keep_float32(self.device)
        # work that no step waits for: on a GPU, a stream of its own
        self._aside = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        self.dtype = settings.dtype or pick_dtype(self.device)
        self._lanes: dict[str, ModelRunner] = {}  # replaced, never changed: steps run meanwhile
        self._decoding: CodecRunner | None = None
        self._listener: ReferenceEncoder | None = None
        self._speakers: dict[str, Hearing] = {}
        self._refused: set[int] = set()  # work for them may still be on its way
        self._loading = threading.RLock()
        self._closed = False

    def slots(self, talker: str) -> range:
        return self._range(talker) if talker in self._lanes else range(0)

    def load(self, talker: str) -> range:
        with self._loading, torch.inference_mode():
            if self._closed:
                raise EngineClosed("The engine is closed.")
            if talker not in self._lanes:
                try:
                    self._decoding = self._decoding or self._load_decoding(talker)
                    self._lanes = {**self._lanes, talker: self._load_lane(talker)}
                    self._warm_listener(talker)
                except Exception as error:
                    raise explain(error) from error
        return self._range(talker)

    def timings(self, talker: str) -> Mapping[int, float]:
        return self._lanes[talker].timings

    def unload(self, talker: str) -> None:
        with self._loading:
            self._lanes = {name: lane for name, lane in self._lanes.items() if name != talker}
            self._speakers.pop(talker, None)
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def exchange(self, out: str, name: str, checkpoint: LocalCheckpoint) -> None:
        """The newcomer takes over the slots; where nothing else is loaded, its codec as well."""
        with self._loading:
            if out in self._lanes:
                raise EngineError("{out} is in use again. Try once more.", out=out)
            held = self._checkpoints.items()
            self._checkpoints = dict(
                (name, checkpoint) if each == out else (each, own) for each, own in held
            )
            self._listener = None  # it remembers recordings by the checkpoint's name
            if not self._lanes:
                self._decoding = None

    def launch(self, plan: StepPlan) -> StepHandle:
        with torch.inference_mode():
            try:
                watch = Stopwatch(self.device)
                return PendingStep(plan.number, self._step(plan), watch)
            except Exception as error:
                return FailedStep(explain(error))

    def encode(self, talker: str, audio: Waveform, transcript: str) -> Clone:
        try:
            with torch.inference_mode(), torch.cuda.stream(self._aside):
                listener, speaker = self._listen(talker)
            return listener.clone(talker, speaker, audio, transcript)
        except Exception as error:
            raise explain(error) from error

    def reset(self) -> None:
        for lane in self._lanes.values():
            lane.clear()

    def memory(self) -> int:
        if self.device.type == "cuda":
            grown = sum(lane.slots.cache.grown_bytes for lane in self._lanes.values())
            return torch.cuda.memory_allocated(self.device) + grown
        decoding = self._decoding.bytes if self._decoding else 0
        return decoding + sum(lane.bytes for lane in self._lanes.values())

    def close(self) -> None:
        with self._loading:
            self._closed = True
            self._lanes = {}
            self._speakers.clear()
            self._decoding = self._listener = None
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _step(self, plan: StepPlan) -> Made:
        for slot in plan.release:
            lane, row = self._at(slot)
            lane.release(row)
        failed = self._admit(plan.admit) if plan.admit else {}
        self._refused = (self._refused - {admit.slot for admit in plan.admit}) | failed.keys()
        for feed in plan.append_text:
            if feed.slot not in self._refused:
                lane, row = self._at(feed.slot)
                lane.feed(row, feed)
        halves, sound = self._speak(plan), self._decode(plan)
        if sound.done is not None and _first_sound(plan):
            torch.cuda.current_stream(self.device).wait_event(sound.done)
        return Made([self._whole(name, rest()) for name, rest in halves], sound, failed)

    def _admit(self, admits: Sequence[Admit]) -> dict[int, Exception]:
        """Slots that could not be filled, and why; they are free again."""
        try:
            self._open(admits)
            return {}
        except Exception as error:
            if len(admits) == 1:
                return {admits[0].slot: explain(error)}
        # one's fault is not the others'
        return {slot: error for each in admits for slot, error in self._admit([each]).items()}

    def _open(self, admits: Sequence[Admit]) -> None:
        """All of them, or none."""
        given: list[tuple[ModelRunner, int]] = []
        try:
            for lane, own in self._by_lane(admits):
                lane.admit(own)
                given += [(lane, row) for row, _ in own]
            self._codec().open([(admit.slot, admit.prompt.reference) for admit in admits])
        except Exception:
            for lane, row in given:
                lane.release(row)
            raise

    def _by_lane(
        self, admits: Sequence[Admit]
    ) -> Iterator[tuple[ModelRunner, list[tuple[int, Admit]]]]:
        """With their rows."""
        places = [(*self._at(admit.slot), admit) for admit in admits]
        for lane in dict.fromkeys(lane for lane, _, _ in places):
            yield lane, [(row, admit) for own, row, admit in places if own is lane]

    def _speak(self, plan: StepPlan) -> list[tuple[str, Half]]:
        """Prompts, and the codes of frames, lane by lane."""
        halves, pieces = [], [each for each in plan.prefill if each.slot not in self._refused]
        wanted = [slot for slot in plan.decode if slot not in self._refused]
        for name, lane in self._lanes.items():
            own = self._range(name)
            due = [(own.index(each.slot), each) for each in pieces if each.slot in own]
            half = lane.speak(due, [own.index(slot) for slot in wanted if slot in own])
            if half:
                halves.append((name, half))
        return halves

    def _whole(self, name: str, batch: FrameBatch) -> tuple[list[int], Tensor]:
        """Frames by slots."""
        own = self._range(name)
        return [own[row] for row in batch.rows], batch.made

    def _decode(self, plan: StepPlan) -> Sound:
        """Slots of a lane are taken together, those due for most frames first."""
        lanes: dict[str, list[tuple[CodecDecode, int]]] = {}
        for due in sorted(plan.codec_decode, key=lambda due: due.start - due.stop):
            if due.slot not in self._refused:
                name, row = self._place(due.slot)
                lanes.setdefault(name, []).append((due, row))
        work = []
        for name, group in lanes.items():
            counts = [due.stop - due.start for due, _ in group]
            starts, rows = [due.start for due, _ in group], [row for _, row in group]
            codes = self._lanes[name].made(rows, starts, counts[0])
            work.append(([due.slot for due, _ in group], codes, counts))
        return self._codec().decode(work) if work else Sound()

    def _at(self, slot: int) -> tuple[ModelRunner, int]:
        """The lane and row of a slot number."""
        name, row = self._place(slot)
        return self._lanes[name], row

    def _place(self, slot: int) -> tuple[str, int]:
        number, row = divmod(slot, self._settings.max_num_seqs)
        return list(self._checkpoints)[number], row

    def _range(self, talker: str) -> range:
        start = list(self._checkpoints).index(talker) * self._settings.max_num_seqs
        return range(start, start + self._lanes[talker].rows)

    def _codec(self) -> CodecRunner:
        assert self._decoding is not None
        return self._decoding

    def _load_lane(self, talker: str) -> ModelRunner:
        checkpoint, settings = self._checkpoints[talker], self._settings
        place = self.device, self.dtype
        networks = load_talker(checkpoint.folder, *place)
        positions = min(settings.max_seq_len, checkpoint.max_positions)
        among = len(self._checkpoints) - len(self._lanes)
        lane = lane_for(networks, checkpoint.ids, settings.max_num_seqs, positions, *place, among)
        lane.warm()
        if settings.trace and self.device.type == "cpu":
            lane.step.predict.trace(min(settings.max_num_seqs, TRACED_ROWS))
        self._settle()
        return lane

    def _load_decoding(self, talker: str) -> CodecRunner:
        settings = self._settings
        half = torch.float16 if self.dtype.itemsize == 2 else torch.float32
        dtype = settings.codec_dtype or half
        codec = load_codec(self._checkpoints[talker].folder, self.device, torch.float32)
        slots = settings.max_num_seqs * len(self._checkpoints)
        decoding = CodecRunner(codec, slots, LRUCache(settings.reference_bytes), dtype)
        decoding.warm()
        return decoding

    def _listen(self, talker: str) -> tuple[ReferenceEncoder, Hearing]:
        """The encoders, loaded when the first recording comes."""
        checkpoint, settings = self._checkpoints[talker], self._settings
        if not checkpoint.capabilities.clone:
            raise NotCapable("{talker} cannot clone a voice. Use a Base model.", talker=talker)
        with self._loading:
            if self._listener is None:
                encoder = hearing(load_encoder(checkpoint.folder, self.device).encode, self.device)
                limit, silence = settings.reference_bytes, settings.reference_silence
                self._listener = ReferenceEncoder(encoder, limit, silence, self._aside)
            if talker not in self._speakers:
                speaker = load_speaker(checkpoint.folder, self.device)
                self._speakers[talker] = hearing(speaker.embed, self.device)
                self._settle()
            return self._listener, self._speakers[talker]

    def _warm_listener(self, talker: str) -> None:
        """On a GPU the encoders are there before the first recording comes."""
        if self._aside is not None and self._checkpoints[talker].capabilities.clone:
            listener, speaker = self._listen(talker)
            listener.warm(speaker)

    def _settle(self) -> None:
        """Weights are there before another stream reads them."""
        finish(self.device)


def _first_sound(plan: StepPlan) -> bool:
    """Whether somebody's first sound goes before the talker, which fills the device for few rows.

    Among more rows it leaves room, and sound is made beside it.
    """
    return len(plan.decode) <= FEW_ROWS and any(due.start == 0 for due in plan.codec_decode)
