"""Loads networks for CPUs from what an earlier start has kept, and keeps them where nothing was.

A first start quantises a talker, lays out a codec, and compares kernels with the plain forms. Later
ones map the same arrays and believe what the first one found. Knows no slots and no requests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import torch

from engine.checkpoints.files import CODEC_FOLDER
from engine.errors import TimbreError
from engine.model.codec import CodecDecoder
from engine.model.talker import Talker
from engine.worker.codec.codec_graphs import CpuStep, kept_kind
from engine.worker.core_shares import FrameTimes
from engine.worker.loading.model_loader import (
    empty_talker,
    layer_bits,
    load_packed_talker,
    transpose,
)
from engine.worker.loading.packed_talker import (
    fits_bfloat16,
    loaded_bytes,
    packed_arrays,
    packed_forms,
)
from engine.worker.loading.start_cache import KernelProof, StartCache
from engine.worker.loading.weight_loader import weight_files

MOST_FULL = 1 << 30  # bytes of full weights that are kept, in both their forms
# Python's path is this process's, so that both run the same files.
BOOT = (
    "import sys; sys.path[:] = {path!r}; "
    "from {package}.first_start import main; main({arguments!r})"
)
PACKING = 3  # another number for another form of the arrays


class CpuStart:
    """What is kept of one checkpoint, for one choice of weights."""

    def __init__(self, cache: StartCache, folder: Path, weights: str) -> None:
        self._cache, self._folder, self._weights = cache, folder, weights

    @cached_property
    def _talker_key(self) -> str:
        return json.dumps(
            ["talker", PACKING, self._weights, _machine(), self._digest(self._folder)]
        )

    @cached_property
    def _codec_key(self) -> str:
        digest = self._digest(self._folder / CODEC_FOLDER)
        return json.dumps(["codec", PACKING, _machine(), digest])

    def _digest(self, folder: Path) -> str:
        return self._cache.digest(folder / "config.json", *weight_files(folder))

    @cached_property
    def bytes(self) -> int:
        """Size of the talker's weights, once they are loaded."""
        return loaded_bytes(self._empty[0])

    @cached_property
    def _empty(self) -> tuple[Talker, int | None]:
        return empty_talker(self._folder, self._weights)

    def begin(self, threads: int) -> subprocess.Popen[str]:
        """A process that makes and keeps what later starts map, and reports on standard error."""
        proof = self.talker_proof(threads).file
        with suppress(OSError):
            proof.unlink()  # it is damaged, or of kernels that are gone
        paths = str(self._folder.resolve()), str(self._cache.folder.resolve()), str(proof.resolve())
        arguments = json.dumps([paths[0], self._weights, *paths[1:]])
        boot = BOOT.format(path=sys.path, package=__package__, arguments=arguments)
        return subprocess.Popen(
            [sys.executable, "-c", boot],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def keeps(self) -> bool:
        """Whether a process can keep kernels, and what is known of them, for this one."""
        from engine.worker.kernels.cpu import predictor
        from engine.worker.kernels.cpu.compiler import can_be_kept

        return self._cache.is_writable() and can_be_kept(predictor.predict)

    def compiled(self, threads: int) -> bool:
        """Whether kernels of this processor were kept, by an earlier start or with other
        weights; what is known of them may outlive them, in another folder."""
        from engine.worker.kernels.cpu import codec, predictor
        from engine.worker.kernels.cpu.compiler import is_kept

        if not is_kept(predictor.predict):
            return False
        return self.talker_proof(threads).known() is not None or is_kept(codec.decode)

    def talker(self, threads: int) -> Talker | None:
        """As load_talker gives it; None: nothing that can be used was kept."""
        talker, bits = self._empty
        panels = _takes_panels(bits)
        if not self._maps(bits, panels, threads):
            return None
        arrays = self._cache.arrays("talker", self._talker_key, packed_forms(talker, panels))
        if arrays is None:
            return None
        del self._empty  # filled now
        load_packed_talker(self._folder, talker, arrays)
        if bits is None:
            transpose(talker.text_projection)  # no kernel takes it, see load_talker
        return talker

    def keep_talker(self, talker: Talker, threads: int) -> bool:
        """Keep what later starts map, of a talker whose kernels, if any, are in use; whether it
        was kept."""
        bits = layer_bits(talker)
        panels = _takes_panels(bits)
        if not self._maps(bits, panels, threads):
            return False
        forms = packed_forms(talker, panels)
        if bits is None and sum(form.bytes for form in forms.values()) > MOST_FULL:
            return False
        if not fits_bfloat16(talker):
            return False
        self._cache.keep("talker", self._talker_key, packed_arrays(talker, panels))
        return self._cache.arrays("talker", self._talker_key, forms) is not None

    def forget(self) -> None:
        """Delete the packed talker: it may be somebody's voice, whose model is deleted next."""
        with suppress(TimbreError, OSError):  # its folder is gone already
            self._cache.forget("talker", self._talker_key)

    def _maps(self, bits: int | None, panels: bool, threads: int) -> bool:
        """Whether weights can be kept in their form: of full ones, and of panels, kernels alone
        take it, which must be right here."""
        proved = self.talker_proof(threads).known() or {}
        return "prompts" in proved if panels else bits is not None or "talk" in proved

    def talker_proof(self, threads: int) -> KernelProof:
        return self._proof(self._talker_key, threads)

    def frame_times(self, threads: int) -> FrameTimes | None:
        """Seconds of a frame, as an earlier start measured them with its kernels; None: unknown."""
        if not self.talker_proof(threads).known():
            return None
        return FrameTimes.of_note(self._cache.seconds(self._frame_key(threads)))

    def keep_frame_times(self, threads: int, times: FrameTimes) -> None:
        if self.talker_proof(threads).known():
            self._cache.keep_seconds(self._frame_key(threads), times.note())

    def _frame_key(self, threads: int) -> str:
        return json.dumps(["frames", self._talker_key, self._codec_key, *_kernels(), threads])

    def codec(self, threads: int, codec: CodecDecoder) -> CpuStep | None:
        """The decoder, given without memory, on its kernel, which is known to be right; None:
        nothing was kept."""
        known = self._proof(self._codec_key, threads).known()
        if known is None:
            return None
        from engine.worker.codec.cpu_decoder import CpuDecoder, PackedCodec, supports

        if not supports(codec.config):
            return None
        kind = kept_kind(codec)
        arrays = self._cache.arrays("codec", self._codec_key, PackedCodec.forms(codec, kind))
        if arrays is None:
            return None
        step = CpuStep(CpuDecoder(PackedCodec(codec, kind, arrays), threads))
        step.decoder.threads = min(known.get("decode", threads), threads)
        return step

    def keep_codec(self, step: CpuStep, threads: int) -> None:
        self._cache.keep("codec", self._codec_key, step.decoder.packed.arrays)
        self._proof(self._codec_key, threads).keep({"decode": step.decoder.threads})

    def _proof(self, key: str, threads: int) -> KernelProof:
        return KernelProof(self._cache, json.dumps([key, *_kernels(), threads]))


def _takes_panels(bits: int | None) -> bool:
    from engine.worker.kernels.cpu import integers

    return bits == 4 and integers.AVAILABLE


def _kernels() -> list[object]:
    """What is found of kernels here depends on their sources and on the registers that this process
    may use; packed weights do not, and whoever deletes them may compile nothing."""
    from engine.worker.kernels.cpu import amx
    from engine.worker.kernels.cpu.compiler import VERSION

    return [VERSION, amx.permitted()]


def _machine() -> list[str]:
    """What packed weights and kernels depend on: the processor, what compiles for it, and what
    torch takes of it, whose order of 4 bits is another one with other vectors."""
    import llvmlite
    import numba
    from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

    from engine.worker.kernels.cpu.llvm import features

    there = sorted(name for name, has in get_host_cpu_features().items() if has)
    versions = torch.__version__, numba.__version__, llvmlite.__version__
    told = str(numba.config.CPU_NAME), features(), torch.backends.cpu.get_cpu_capability()
    return [get_host_cpu_name(), *there, *told, *versions]
