"""Clone on the embedded model: several recordings of one person; the microphone's level."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import (
    Library,
    Preset,
    SpeechEngine,
    SpeechRequest,
    load_reference_audio,
    open_engine,
    save_sound,
)
from studio.cli.app_context import MINI
from studio.context import open_studio
from studio.voices.sample_vectors import mean_vector
from studio.voices.voice_training import VoiceTraining
from tests.support.browser import OpenPage, Visitors, expect, open_tab, serve_page
from tests.support.programs import CACHE

TEXTS = (
    "When sunlight strikes raindrops in the air, they act as a prism and form a rainbow.",
    "I usually take the early train, because the carriages are quiet and the view is good.",
    "Glue the sheet to the dark blue background, and wait until all of it is dry.",
)
# A microphone that gives a tone as loud as the test says.
MICROPHONE = """
navigator.mediaDevices.getUserMedia = async () => {
  const context = new AudioContext()
  const gain = new GainNode(context, { gain: 0.3 })
  const tone = new OscillatorNode(context, { frequency: 220 })
  const out = new MediaStreamAudioDestinationNode(context)
  tone.connect(gain).connect(out)
  tone.start()
  window.loudness = (level) => { gain.gain.value = level }
  return out.stream
}
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[SpeechEngine]:
    with open_engine([MINI], "cpu", cache=CACHE) as engine:
        yield engine


@pytest.fixture(scope="module")
def recordings(engine: SpeechEngine, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three of one person, one of another."""
    folder = tmp_path_factory.mktemp("recordings")
    spoken = [*(("robert", text) for text in TEXTS), ("clara", TEXTS[1])]
    return [
        save_sound(
            folder / f"{name}-{number}.wav",
            engine.submit(SpeechRequest(text, Preset(name), seed=number)).collect(),
        )
        for number, (name, text) in enumerate(spoken)
    ]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("clone") / "voices")


@pytest.fixture(scope="module")
def url(browser: Any, engine: SpeechEngine, library: Library) -> Iterator[str]:
    with serve_page(open_studio(engine, library)) as url:
        yield url


def test_a_recording_of_somebody_else_is_left_out(
    open_page: OpenPage, url: str, engine: SpeechEngine, library: Library, recordings: list[Path]
) -> None:
    page = open_page(url)
    open_tab(page, "Clone")
    page.locator("#clone-file input[type=file]").set_input_files(recordings[0])
    page.locator("#clone-report .timbre-checks").wait_for()
    page.get_by_text("More recordings of the same person").click()
    page.locator("#clone-more input[type=file]").set_input_files(recordings[1:])
    compared = page.locator("#clone-compared")
    expect(compared).to_contain_text("Tick the box of consent")
    page.get_by_label("This is my voice, or the person has agreed").check()
    expect(compared.locator("dd")).to_have_count(4)
    expect(compared.locator(".bad")).to_have_count(1)
    expect(compared.locator(".bad")).to_contain_text("clara-3")
    expect(page.get_by_role("checkbox", name="clara-3.wav")).not_to_be_checked()
    for name in ("robert-0", "robert-1", "robert-2"):
        expect(page.get_by_role("checkbox", name=f"{name}.wav")).to_be_checked()
    panel = page.get_by_role("tabpanel").filter(has=page.locator("#clone-recording"))
    panel.get_by_label("Name", exact=True).fill("Grandfather")
    panel.get_by_role("button", name="Save as voice").click()
    panel.get_by_text("is saved").wait_for()
    saved = library.named("Grandfather")
    assert saved is not None
    sounds = [load_reference_audio(path).waveform for path in recordings[:3]]
    expected = mean_vector([engine.clone(sound).vector for sound in sounds])
    np.testing.assert_allclose(saved.voice.vector, expected, rtol=1e-4, atol=1e-5)


def test_the_level_is_shown_while_something_is_recorded(open_page: OpenPage, url: str) -> None:
    page = open_page("about:blank")
    page.add_init_script(MICROPHONE)
    page.goto(url)
    open_tab(page, "Clone")
    level = page.locator(".timbre-level")
    expect(level).to_be_hidden()
    page.locator("#clone-recording .record-button").click()
    expect(level).to_have_attribute("data-level", "good")
    for loudness, rated, advice in ((1, "loud", "Too loud"), (0.004, "quiet", "Too quiet")):
        page.evaluate("(level) => window.loudness(level)", loudness)
        expect(level).to_have_attribute("data-level", rated)
        expect(level.get_by_text(advice)).to_be_visible()
    page.locator("#clone-recording .stop-button").click()
    expect(level).to_be_hidden()


NO_MICROPHONE = {
    "NotAllowedError": "gives this page no microphone",
    "NotFoundError": "finds no microphone",
    "": "only to pages over HTTPS",
}
REFUSING = """
const name = '%s'
const devices = { enumerateDevices: async () => [], addEventListener() {}, getUserMedia }
async function getUserMedia() { throw new DOMException('It is refused', name) }
Object.defineProperty(navigator, 'mediaDevices', { value: name ? devices : undefined })
"""


@pytest.mark.parametrize("name", NO_MICROPHONE)
def test_it_is_told_why_there_is_no_microphone(visitors: Visitors, url: str, name: str) -> None:
    context = visitors.enter()
    page = context.new_page()
    page.add_init_script(REFUSING % name)
    page.goto(url)
    open_tab(page, "Clone")
    page.locator("#clone-recording .record-button").click()
    expect(page.locator(".timbre-level").get_by_text(NO_MICROPHONE[name])).to_be_visible()
    expect(page.get_by_role("meter")).to_be_hidden()
    visitors.leave(context)


def test_sentences_are_read_after_consent_with_the_meter_beside_them(
    open_page: OpenPage,
    browser: Any,
    engine: SpeechEngine,
    library: Library,
    recordings: list[Path],
    tmp_path: Path,
) -> None:
    trainings = VoiceTraining(tmp_path)
    with serve_page(open_studio(engine, library, trainings=trainings)) as url:
        page = open_page("about:blank")
        page.add_init_script(MICROPHONE)
        page.goto(url)
        open_tab(page, "Clone")
        page.get_by_text("Train a better one").click()
        own = page.locator("#own-voice")
        record, meter = own.locator(".record-button"), own.locator(".timbre-level")
        expect(own.get_by_text("write first whose voice it is")).to_be_visible()
        expect(record).to_be_hidden()
        expect(own.get_by_role("button", name="Delete", exact=True)).to_be_hidden()
        own.get_by_label("Whose voice it is, and that they agree").fill("Ann Lee, my own voice")
        expect(record).to_be_visible()
        record.click()
        expect(meter).to_have_attribute("data-level", "good")
        expect(page.locator(".timbre-level:visible")).to_have_count(1)
        own.locator(".stop-button").click()
        expect(own.locator("#own-voice-read")).to_contain_text("telephone")  # a tone is no speech
        own.locator("input[type=file]").first.set_input_files(recordings)
        expect(own.locator("#own-voice-heard li")).to_have_count(len(recordings))
        expect(own.locator("#own-voice-heard svg")).to_have_count(len(recordings))
