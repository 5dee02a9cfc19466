"""What a worker is told at its start. Knows no device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class WorkerSettings:
    """The worker's device, precision and sizes."""

    max_num_seqs: int  # of each talker
    max_seq_len: int  # of each slot
    device: str | None = None  # None: a GPU if there is one
    dtype: torch.dtype | None = None  # None: bfloat16 on GPUs that support it, else float32
    codec_dtype: torch.dtype | None = None  # None: float16 with a 16-bit talker, else float32
    weights: str = "auto"  # of the talker, on CPUs: auto, full, 8bit or 4bit
    cache: Path | None = None  # a folder for what later starts need not make again
    compiles_beside: bool = False  # speak by the plain form while another process fills the cache
    fast: bool = False  # on CPUs: compiled kernels, or with full weights traced predictors
    reference_silence: float = 0.5  # seconds at least, put behind a recording that is encoded
    reference_bytes: int = 512 << 20  # size of the cache of encoded references

    def positions(self, most: int) -> int:
        """Of each slot of a model that has so many."""
        return min(self.max_seq_len, most)
