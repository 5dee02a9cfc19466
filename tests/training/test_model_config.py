"""The recipe writes the config files of the model that is embedded."""

from __future__ import annotations

import json
from pathlib import Path

from training import model_config

MINI = Path(__file__).parents[2] / "presets" / "mini"


def test_an_export_has_the_config_of_the_embedded_model() -> None:
    embedded = json.loads((MINI / "config.json").read_text())
    written = model_config.model(embedded["assistant_token_id"])
    assert written == embedded
    voices = [each["talker_config"]["spk_id"] for each in (written, embedded)]
    assert list(voices[0]) == list(voices[1])  # the most natural first


def test_an_export_has_the_codec_config_of_the_embedded_model() -> None:
    embedded = json.loads((MINI / "speech_tokenizer" / "config.json").read_text())
    assert model_config.codec() == embedded


def test_an_export_samples_as_the_embedded_model_does() -> None:
    assert json.loads((MINI / "generation_config.json").read_text()) == model_config.GENERATION
