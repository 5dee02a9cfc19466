"""Voices of other services by name. Each stands for one of the voices here."""

from __future__ import annotations

from typing import Final

_OPENAI = "alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse"
_QWEN = "aiden dylan eric ono_anna ryan serena sohee uncle_fu vivian"
_KOKORO = """
af_alloy af_aoede af_bella af_heart af_jessica af_kore af_nicole af_nova af_river af_sarah af_sky
am_adam am_echo am_eric am_fenrir am_liam am_michael am_onyx am_puck am_santa
bf_alice bf_emma bf_isabella bf_lily bm_daniel bm_fable bm_george bm_lewis
"""
FOREIGN_VOICES: Final = tuple(f"{_OPENAI} {_QWEN} {_KOKORO}".split())
