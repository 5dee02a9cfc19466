"""Clone, Design, Blend and Library in a browser: what is pressed is heard, shown and kept."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastapi
import gradio as gr
import httpx
import numpy as np
import pytest

from engine import FRAME_SECONDS, SAMPLE_RATE, Library, SpeechRequest, parse_blend
from engine.testing import Costs
from studio.context import Studio, open_studio
from studio.ui.tabs import blend, clone, design, library
from studio.ui.tabs.blend_handlers import PHRASE
from tests.support.browser import (
    PATIENCE,
    OpenPage,
    Server,
    Tap,
    expect,
    open_tab,
    paste,
    play_through,
    serve_page,
)
from tests.support.tab_makers import app_of, make_studio, mounted, recording

TABS = {"Blend": blend, "Clone": clone, "Design": design, "Library": library}
ONE = "window.timbre.players[0]"  # Blend's is the only player until another tab is opened


@pytest.fixture(scope="module")
def studio(tmp_path_factory) -> Iterator[Studio]:
    made = make_studio(tmp_path_factory.mktemp("studio"), raw=True)
    with made.engine:
        yield made


@pytest.fixture(scope="module")
def url(browser: Any, studio: Studio) -> Iterator[str]:
    app = fastapi.FastAPI()
    app.include_router(studio.live.router())
    with gr.Blocks(analytics_enabled=False) as blocks:
        for label, tab in TABS.items():
            with gr.Tab(label):
                tab.build(studio)
    blocks.queue(max_size=50)
    with Server(mounted(app, blocks)) as url:
        yield url


@pytest.fixture(scope="module")
def shared(open_pages: OpenPage, url: str) -> Any:
    page = open_pages(url)
    page.locator(".timbre-pad canvas").wait_for()
    return page


@pytest.fixture
def page(shared: Any) -> Any:
    """A page that other tests have used, with Blend in front and silent."""
    open_tab(shared, "Blend")
    shared.wait_for_function(f"!{ONE}.now || {ONE}.now.over")
    return shared


def drag(page: Any, x: float, y: float) -> None:
    """To a place of the canvas, from wherever the mouse is."""
    box = page.locator(".timbre-pad canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y, steps=3)
    page.mouse.up()


def recipe(page: Any) -> Any:
    return page.locator("#blend-recipe").locator("input, textarea")


def corners(page: Any) -> dict[str, int]:
    """What the pad says of each voice."""
    spoken = page.locator(".timbre-pad .corner").all_inner_texts()
    return {name: int(share) for name, share in re.findall(r"(\S+) (\d+) %", "\n".join(spoken))}


def heard_all(tap: Tap, press: Callable[[], object]) -> np.ndarray:
    play_through([tap], lambda _: press())
    return np.round(tap.sound() * 32768).astype(np.int16)


def speaks_anew(tap: Tap, press: Callable[[], object]) -> None:
    before = (tap.state() or {}).get("id")
    press()
    tap.wait(f"now && now.id !== '{before}' && now.report?.played > 2400")


def without_silence(pcm: np.ndarray) -> np.ndarray:
    loud = np.flatnonzero(pcm)
    return pcm[loud[0] : loud[-1] + 1]


def test_letting_go_of_the_handle_speaks_the_blend_that_is_written(page, studio):
    tap = Tap(page, 0)
    before = recipe(page).input_value()
    sound = heard_all(tap, lambda: drag(page, 0.3, 0.2))
    expect(recipe(page)).not_to_have_value(before)
    written = recipe(page).input_value()
    line = SpeechRequest(PHRASE, studio.choices().blend(written), seed=0)
    assert np.array_equal(sound, without_silence(studio.engine.submit(line).collect()))
    shown = {name: share for name, share in corners(page).items() if share}
    assert shown == dict(parse_blend(written))


def test_letting_go_again_starts_anew_at_once(page):
    """In the middle of a sentence that lasts longer than anything is waited for."""
    letters = 2 * round(PATIENCE / FRAME_SECONDS)  # a frame each
    page.get_by_label("What to say").locator("visible=true").fill("a" * letters)
    tap = Tap(page, 0)
    speaks_anew(tap, lambda: drag(page, 0.3, 0.2))
    for place in (0.7, 0.4):
        tap.wait("now?.report?.played > 4800")
        before = tap.get("now.id")
        drag(page, place, 0.8)
        tap.wait(f"now.id !== '{before}' && now.first !== null")
    page.locator(".timbre-player .stop").click()
    page.get_by_label("What to say").locator("visible=true").fill(PHRASE)


def test_the_arrow_keys_move_the_handle(page):
    tap = Tap(page, 0)
    canvas = page.locator(".timbre-pad canvas")
    canvas.focus()
    before = corners(page)
    speaks_anew(tap, lambda: [canvas.press("ArrowRight") for _ in range(3)])
    after = corners(page)
    left, right, *_ = before
    assert after[right] > before[right]
    assert after[left] < before[left]
    expect(canvas).to_have_attribute("aria-valuetext", re.compile(rf"\b{after[right]}\b"))


def test_a_written_blend_moves_the_handle_and_speaks(page):
    tap = Tap(page, 0)
    recipe(page).fill("ryan(3)+vivian(1)")
    speaks_anew(tap, lambda: recipe(page).press("Enter"))
    page.wait_for_function("document.querySelectorAll('.corner')[0].textContent.includes('75 %')")
    assert corners(page) == {"ryan": 75, "vivian": 25}


def test_a_step_is_written_and_heard(page, studio):
    tap = Tap(page, 0)
    page.get_by_label("What to say").locator("visible=true").fill("Hello.")
    step = page.get_by_label("2/8", exact=True)
    again = page.get_by_role("button", name="Speak the blend")
    sound = heard_all(tap, lambda: again.click() if step.is_checked() else step.check())
    expect(recipe(page)).to_have_value("ryan(75)+vivian(25)")
    line = SpeechRequest("Hello.", studio.choices().blend("ryan(75)+vivian(25)"), seed=0)
    assert np.array_equal(sound, without_silence(studio.engine.submit(line).collect()))
    recipe(page).fill("ryan(1)+vivian(3)")
    recipe(page).press("Enter")
    page.wait_for_function("!document.querySelector('input[type=radio][value=\"2\"]:checked')")


def test_stop_stops_all_nine(page, studio):
    tap = Tap(page, 0)
    nine = page.get_by_role("button", name="Play all nine steps")
    speaks_anew(tap, nine.click)
    page.locator(".timbre-player .stop").click()
    page.wait_for_function(f"{ONE}.now.over")
    assert page.evaluate(f"{ONE}.now.report.played") < 20 * SAMPLE_RATE


def test_a_recording_is_checked_tried_and_kept_and_can_be_blended(
    open_page: OpenPage, url: str, studio, tmp_path: Path
):
    page = open_page(url)
    open_tab(page, "Clone")
    file = page.locator("#clone-file input[type=file]")
    file.set_input_files(str(recording(tmp_path / "mine.wav")))
    report = page.locator("#clone-report")
    report.get_by_text("of silence cut").wait_for()
    player = page.locator(".timbre-player")
    page.get_by_role("button", name="Try it").click()
    player.get_by_text("Tick the box first").wait_for()
    page.get_by_label("This is my voice").check()
    page.get_by_label("What to say").locator("visible=true").fill("Hello.")
    page.get_by_role("button", name="Try it").click()
    player.get_by_text("Finished").wait_for()
    panel = page.get_by_role("tabpanel").filter(has=page.locator("#clone-player"))
    panel.get_by_label("Name").fill("Mama")
    panel.get_by_role("button", name="Save as voice").click()
    panel.get_by_text("Mama is saved").wait_for()
    assert studio.library.find("Mama").card.consent
    open_tab(page, "Blend")
    page.get_by_role("combobox", name="Voices").click()
    page.get_by_role("option", name="Mama").wait_for()


def test_consent_and_words_belong_to_one_recording(page, tmp_path: Path):
    open_tab(page, "Clone")
    agreed, words = (
        page.get_by_label("This is my voice"),
        page.get_by_label("Transcript (optional)"),
    )
    for seconds in (3.0, 4.0):
        file = recording(tmp_path / f"{seconds}.wav", seconds)
        page.locator("#clone-file input[type=file]").set_input_files(str(file))
        page.locator("#clone-report").get_by_text(f"{seconds:.0f}.").wait_for()
        page.get_by_role("button", name="Play: Cleaned reference").click()
        page.locator(".timbre-player .voice", has_text="Cleaned reference").wait_for()
        expect(agreed).not_to_be_checked()
        expect(words).to_have_value("")
        agreed.check()
        words.fill("What is said in it.")
        page.locator("#clone-recording").get_by_label("Clear").click()
    expect(agreed).not_to_be_checked()
    expect(words).to_have_value("")


def test_three_takes_are_made_and_one_is_kept(page, studio):
    open_tab(page, "Design")
    page.get_by_role("textbox", name="The voice").fill("A calm old man.")
    page.get_by_role("button", name="Make three takes").click()
    page.get_by_text("Listen, pick one").wait_for()
    expect(page.get_by_text(re.compile(r"\d s, seed \d+"))).to_have_count(design.TAKES)
    page.get_by_role("button", name="Play: Take 2").click()
    page.locator(".timbre-player .voice", has_text="Design · Take 2").wait_for()
    page.get_by_label("Take 2", exact=True).check()
    panel = page.get_by_role("tabpanel").filter(has=page.get_by_text("Which take to save?"))
    panel.get_by_label("Name").fill("Old man")
    panel.get_by_role("button", name="Save as voice").click()
    panel.get_by_text("Old man is saved").wait_for()
    assert studio.library.find("Old man").card.made_from == "Designed: A calm old man."


def test_takes_that_were_stopped_do_not_wait(browser: Any, open_page: OpenPage, tmp_path: Path):
    studio = make_studio(tmp_path, raw=True, costs=Costs(step=0.2))
    with studio.engine, Server(app_of(design.build, studio)) as url:
        page = open_page(url)
        page.get_by_label("The voice").fill("A calm old man.")
        page.get_by_role("button", name="Make three takes").click()
        page.get_by_text("Making three takes").wait_for()
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped.").wait_for()
        expect(page.get_by_text("Not made yet")).to_have_count(design.TAKES)


def test_a_voice_is_found_renamed_deleted_and_brought_back(page, studio, tmp_path: Path):
    studio.library.save("Ada", blend_of(studio), consent=True)
    open_tab(page, "Library")
    open_tab(page, "Voices")
    card = page.locator("#library-voices li", has_text="Ada")
    card.get_by_role("button", name="Edit").click()
    panel = page.get_by_role("tabpanel").filter(has=page.locator("#library-voices")).last
    panel.get_by_label("Name").fill("Ada Lovelace")
    panel.get_by_role("button", name="Save changes").click()
    panel.get_by_text("Ada Lovelace is changed.").wait_for()
    wait_for_name(page, panel, tmp_path, "Ada Lovelace")
    paste(page, panel.get_by_label("Search"), "nobody")
    panel.get_by_text("No results for “nobody”.").wait_for()
    panel.get_by_label("Search").fill("lovelace")
    expect(page.locator("#library-voices li")).to_have_count(1)
    card.get_by_role("button", name="Edit").click()
    panel.get_by_role("button", name="Delete").click()
    panel.get_by_text("Ada Lovelace is deleted.").wait_for()
    assert studio.library.find("Ada Lovelace") is None
    panel.get_by_role("button", name="Restore: Ada Lovelace").click()
    panel.get_by_text("Ada Lovelace is back.").wait_for()
    page.locator("#library-voices strong").get_by_text("Ada Lovelace").wait_for()
    assert studio.library.find("Ada Lovelace")


def wait_for_name(page: Any, panel: Any, folder: Path, name: str) -> None:
    """Until whoever gets the exported file sees this name; the card is written anew meanwhile."""
    theirs, until, got = Library(folder / "theirs"), time.monotonic() + PATIENCE, ""
    while got != name:
        assert time.monotonic() < until, got
        with page.expect_download() as download:
            panel.get_by_role("button", name="Export").click()
        got = theirs.import_file(Path(download.value.path()).read_bytes()).name


def blend_of(studio: Studio) -> Any:
    return studio.engine.resolve(studio.choices().blend("ryan(2)+vivian(1)")).voice


def test_on_a_phone_nothing_is_wider_than_the_page(open_page: OpenPage, url: str):
    page = open_page(url, viewport={"width": 390, "height": 844})
    page.locator(".timbre-pad canvas").wait_for()
    for label in TABS:
        open_tab(page, label)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def call(url: str, name: str, *data: Any) -> tuple[str, Any]:
    """The last event of a named endpoint, and what came with it."""
    with httpx.Client(base_url=f"{url}/gradio_api", timeout=PATIENCE) as client:
        number = client.post(f"/call/{name}", json={"data": data}).json()["event_id"]
        lines = client.get(f"/call/{name}/{number}").text.strip().splitlines()
    return lines[-2].removeprefix("event: "), json.loads(lines[-1].removeprefix("data: "))


def sent(path: str) -> dict[str, Any]:
    return {"path": path, "meta": {"_type": "gradio.FileData"}}


def test_programs_find_one_name_for_each_way_to_a_voice(url: str):
    named = httpx.get(f"{url}/gradio_api/info", timeout=PATIENCE).json()["named_endpoints"]
    assert set(named) == {"/clone", "/design", "/blend"}


def test_programs_make_voices_too(url: str, studio, tmp_path: Path):
    file = recording(tmp_path / "mine.wav")
    upload = {"files": file.open("rb")}
    (kept,) = httpx.post(f"{url}/gradio_api/upload", files=upload, timeout=PATIENCE).json()
    upload["files"].close()
    _, (cloned,) = call(url, "clone", "Program's own", sent(kept), "Some words.", True, "")
    assert studio.library.get(cloned).voice.in_context
    _, (designed,) = call(url, "design", "Calm", "A calm voice.", "A sentence to say.", 3)
    assert studio.library.get(designed).card.made_from == "Designed: A calm voice."
    _, (blended,) = call(url, "blend", "Ours", "ryan(2)+vivian(1)", "linear", "")
    assert studio.library.get(blended).card.kind == "blend"


def test_programs_are_refused_files_of_the_server(url: str, studio, tmp_path: Path):
    theirs = recording(tmp_path / "theirs.wav")
    with serve_page(open_studio(studio.engine, studio.library, studio.takes)) as real:
        event, _ = call(real, "clone", "Theirs", sent(str(theirs)), "", True, "")
    assert event == "error"
    assert studio.library.find("Theirs") is None
