"""A headless Chromium for tests, and a tap on what a player sends to the loudspeaker.

The tap is a worklet of its own behind the player's volume, so it hears what a person would.
Without Chromium (Debian: `apt-get install chromium`) or playwright the tests are skipped.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import uvicorn

from studio.context import Studio
from studio.server.middleware.compression import Compression
from tests.support import serving
from tests.support.serving import ClosingServer

# Gradio sums up every finished event with pandas, and its pandas warns; we do without.
os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", "100000")

# Chromium takes the last such list alone: what playwright leaves out, and the popups of the address
# field, which every window would load unseen, for half a second of CPU.
LEFT_OUT = (
    "AimEnabled,AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,"
    "LensOverlay,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PaintHolding,"
    "PreconnectToSearch,ThirdPartyStoragePartitioning,WebUIOmniboxAimPopup,WebUIOmniboxPopup"
)
FLAGS = (
    f"--disable-features={LEFT_OUT}",
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # a visitor's pages share what was compiled
    "--autoplay-policy=no-user-gesture-required",
)

TAP = """
async (index) => {
  const code = `registerProcessor('tap', class extends AudioWorkletProcessor {
    constructor() {
      super();
      this.port.onmessage = ({ data }) => this.port.postMessage(data);
    }
    process([[block]]) {
      if (!block) return true;
      this.begun ||= block.some((sample) => sample !== 0);
      if (this.begun) this.port.postMessage(block.slice());
      return true;
    }
  })`;
  const { context } = window.timbre.Sound;
  const module = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  const worklets = Object.getOwnPropertyDescriptor(BaseAudioContext.prototype, 'audioWorklet');
  await worklets.get.call(context).addModule(module); // also where a test hides it
  const mono = { channelCount: 1, channelCountMode: 'explicit' };
  const node = new AudioWorkletNode(context, 'tap', mono);
  const tap = { blocks: [], first: null };
  tap.settled = () => new Promise((done) => { // all that was played so far is here
    tap.echo = done;
    node.port.postMessage('echo');
  });
  node.port.onmessage = ({ data }) => {
    if (data === 'echo') return tap.echo();
    if (data.some((sample) => sample !== 0)) tap.first ??= performance.now();
    tap.blocks.push(data);
  };
  const player = window.timbre.players[index];
  player.tap = tap;
  player.speaker.gain.connect(node);
  node.connect(new GainNode(context, { gain: 0 })).connect(context.destination);
}
"""

RESTART = "(i) => Object.assign(window.timbre.players[i].tap, { blocks: [], first: null })"

RECORDED = """
async (index) => {
  const { tap } = window.timbre.players[index];
  await tap.settled();
  const url = await new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.readAsDataURL(new Blob(tap.blocks));
  });
  return url.split(',')[1] ?? '';
}
"""

# Two frames after the tab is drawn, with whatever Gradio still awaits before each.
DRAWN = """
async () => {
  for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
  await new Promise((go) => setTimeout(go));
}
"""

# Fills what a browser keeps for good to the last byte.
FULL_STORAGE = """
() => {
  let piece = 'x'.repeat(1 << 20);
  for (let number = 0; piece; ) {
    try {
      localStorage.setItem(`full-${number++}`, piece);
    } catch {
      piece = piece.slice(piece.length / 2 + 0.5);
    }
  }
}
"""

OpenPage = Callable[..., Any]
ENDLESS = 60  # requests; a tab's first opening takes a dozen
LOOK = 30  # ms between two looks at a player; a look at each frame costs as much as the page
PATIENCE = 60.0  # seconds that a busy machine may take; the wait ends as soon as the page is ready


@pytest.fixture(scope="session")
def chromium() -> Iterator[Visitors]:
    """Debian's Chromium, driven by playwright, and its visitors; one for all files of a worker."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("no chromium here: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=found, args=list(FLAGS), timeout=1000 * PATIENCE
        )
        yield Visitors(started)
        started.close()


@pytest.fixture(scope="module")
def browser(chromium: Visitors) -> Iterator[Any]:
    """The browser. Playwright's own loop runs in this thread, so `asyncio.run` is refused; between
    files with a browser its loop rests, and the thread is free for others."""
    asyncio._set_running_loop(chromium.browser._loop)
    yield chromium.browser
    asyncio._set_running_loop(None)


class Visitors:
    """New visitors of a browser. Those with the same wishes come one after the other to one
    context, emptied between them: a page there opens at half the cost, as its scripts are loaded
    and compiled. What a visitor has is gone with it all the same: tabs, cookies, storage.
    """

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self._keepers: dict[Any, tuple[str, Any, Any]] = {}  # context: wishes, a page, its tools
        self._free: dict[str, list[Any]] = {}  # wishes: contexts
        self.leave(self.enter())  # from here on the process of the pages is alive

    def context(self, **options: Any) -> Any:
        made = self.browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        made.set_default_timeout(1000 * PATIENCE)
        return made

    def enter(self, **options: Any) -> Any:
        """The context of a new visitor."""
        wishes = repr(sorted(options.items()))
        free = self._free.setdefault(wishes, [])
        if free:
            return free.pop()
        made = self.context(**options)
        keeper = made.new_page()
        keeper.route("**", lambda route: route.fulfill(body="", content_type="text/html"))
        keeper.goto("http://127.0.0.1/")
        self._keepers[made] = wishes, keeper, made.new_cdp_session(keeper)
        return made

    def leave(self, context: Any) -> None:
        wishes, keeper, tools = self._keepers[context]
        pages = [page for page in context.pages if page is not keeper]
        addresses = {page.url for page in pages}
        for page in pages:
            page.close()
        for address in addresses:  # only now: no script runs that would miss what it stored
            parts = urlsplit(address)
            place = {"origin": f"{parts.scheme}://{parts.netloc}", "storageTypes": "local_storage"}
            if parts.netloc:
                tools.send("Storage.clearDataForOrigin", place)
        context.clear_cookies()
        self._free[wishes].append(context)


@pytest.fixture(scope="module")
def visitors(browser: Any, chromium: Visitors) -> Visitors:
    return chromium


def _opening(visitors: Visitors) -> Iterator[OpenPage]:
    """Open pages that fail the test on an error in a script; closed at its end."""
    opened: list[Any] = []
    errors: list[str] = []

    def open_(url: str, **options: Any) -> Any:
        context = visitors.enter(**options)
        opened.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        return page

    yield open_
    seen = [*errors]  # before pages close, which breaks off what they load
    for context in opened:
        visitors.leave(context)
    assert seen == [], seen


open_page = pytest.fixture(_opening, name="open_page")
open_pages = pytest.fixture(_opening, scope="module", name="open_pages")


@dataclass
class Tap:
    """What one player of a page has sent to the loudspeaker since."""

    page: Any
    index: int

    def __post_init__(self) -> None:
        self.page.wait_for_function(f"window.timbre?.players[{self.index}]?.speaker.node")
        self.page.evaluate(TAP, self.index)

    def restart(self) -> None:
        """Forget the recorded samples."""
        self.page.evaluate(RESTART, self.index)

    def gaps(self, least: int = 128) -> list[tuple[int, int]]:
        """Runs of silence inside the sound, as sample positions."""
        edges = np.diff(np.concatenate(([0], self.sound() == 0, [0])).astype(np.int8))
        runs = zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True)
        return [(int(start), int(stop)) for start, stop in runs if stop - start >= least]

    def sound(self) -> np.ndarray:
        """Float32 from the first sample that is not zero, trailing silence cut."""
        raw = base64.b64decode(self.page.evaluate(RECORDED, self.index))
        sound = np.frombuffer(raw, np.float32)
        loud = np.flatnonzero(sound)
        return sound[loud[0] : loud[-1] + 1] if len(loud) else sound[:0]

    def first(self) -> float | None:
        """performance.now() when the first of them came."""
        return self.get("tap.first")

    def state(self) -> dict[str, Any]:
        return self.get("now")

    def wait(self, condition: str, seconds: float = PATIENCE) -> None:
        """Wait until a JavaScript condition over `player` and `now` holds."""
        code = f"(() => {{ const player = window.timbre.players[{self.index}]; "
        code += f"const now = player.now; return {condition}; }})()"
        self.page.wait_for_function(code, timeout=1000 * seconds, polling=LOOK)

    def get(self, name: str) -> Any:
        return self.page.evaluate(f"window.timbre.players[{self.index}].{name}")


def play_through(taps: list[Tap], press: Callable[[Tap], object]) -> None:
    """Speak to the end in every page; repeat all of it where a busy machine was late."""
    for _ in range(5):
        before = [(tap.state() or {}).get("id", "") for tap in taps]
        for tap in taps:
            tap.restart()
            press(tap)
        for tap, other in zip(taps, before, strict=True):
            tap.wait(f"now && now.id !== '{other}' && now.over && now.made")
        if not any(tap.state()["report"]["underruns"] for tap in taps):
            return
    raise AssertionError("the sound was late five times")


def expect(found: Any) -> Any:
    """What playwright asserts of a locator, waiting for it; imported late, as it may be missing."""
    from playwright.sync_api import expect as expected

    expected.set_options(timeout=1000 * PATIENCE)
    return expected(found)


def in_front(page: Any) -> Any:
    """Bring a page to the front: behind another one of its window it is drawn once a second."""
    page.bring_to_front()
    return page


def open_tab(page: Any, name: str) -> None:
    """Choose a tab, and wait until it takes what is typed.

    Gradio sets the values of a tab's components once more in the frame after it has drawn them.
    """
    tab = page.get_by_role("tab", name=name, exact=True)
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")
    page.evaluate(DRAWN)


def until_silent(page: Any, requests: Sequence[object]) -> None:
    """Wait until a page asks for nothing more for a second. A busy machine takes its time for what
    one press sets off; what never ends is told by the number of its requests, as they come."""
    first, before = len(requests), -1
    while len(requests) != before:
        before = len(requests)
        assert before - first < ENDLESS, requests[-8:]
        page.wait_for_timeout(1000)


def until_answered(page: Any, press: Callable[[], object]) -> None:
    """Press, and wait until the page has taken the answers to all that it asks for then."""
    answers = list[str]()

    def note(request: Any) -> None:
        answers.append(request.url)

    page.on("requestfinished", note)
    press()
    until_silent(page, answers)
    page.remove_listener("requestfinished", note)


def paste(page: Any, field: Any, text: str) -> None:
    """Insert as a paste or an input method does: no key is pressed."""
    field.focus()
    page.keyboard.insert_text(text)
    expect(field).to_have_value(text)


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition of this process holds."""
    serving.wait_until(condition, PATIENCE)


class Held:
    """Calls that take as long as it takes, for answers that come late; the first is waited for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, called: str, of: Any) -> None:
        self.begun, self.may_end, self.ended = (threading.Event() for _ in range(3))
        call = getattr(of, called)

        def later(*values: Any, **named: Any) -> Any:
            self.begun.set()
            assert self.may_end.wait(PATIENCE)
            try:
                return call(*values, **named)
            finally:
                self.ended.set()

        monkeypatch.setattr(of, called, later)


PORTS: list[int] = []  # that servers of this process had


def free_door() -> socket.socket:
    """A port of this machine; one that an earlier server had, if it is free: what a browser has
    loaded and compiled is known to it by its address."""
    for port in PORTS:
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
    door = socket.create_server(("127.0.0.1", 0))
    PORTS.append(door.getsockname()[1])
    return door


class Server:
    """An ASGI app on a free port of this machine, in a thread."""

    def __init__(self, app: Any) -> None:
        self._door = free_door()
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=0)
        self._server = ClosingServer(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._door]}, daemon=True
        )

    def __enter__(self) -> str:
        self._thread.start()
        until = time.monotonic() + PATIENCE
        while not self._server.started:
            assert self._thread.is_alive(), "the server did not start"
            assert time.monotonic() < until, "the server takes too long to start"
            time.sleep(0.02)
        return f"http://127.0.0.1:{self._door.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)


def as_served(application: Any) -> Any:
    """With what a server has around its page (public_server): mended scripts, which a browser
    keeps, and responses compressed once."""
    from studio.ui import static_files
    from studio.ui.gradio_compat.page_assets import PageAssets  # imports Gradio

    application.add_middleware(PageAssets, head=static_files.preloads())
    application.add_middleware(Compression)
    return application


def serve_page(studio: Studio) -> Server:
    """The whole page of a studio."""
    from fastapi import FastAPI

    from studio.ui.page import mount_page  # imports Gradio

    application = FastAPI()
    mount_page(application, studio)
    return Server(as_served(application))
