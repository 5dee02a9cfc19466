"""What the studio believes of the inside of Gradio; a failure names what has changed."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fastapi
import gradio as gr
import pytest
from gradio.blocks import BlocksConfig
from gradio.context import Context, LocalContext
from gradio.routes import App
from gradio.utils import LRUCache

from studio.ui.gradio_compat import events, pages, scripts
from tests.test_walls import name_of, sources, tree

TOP = Path(__file__).parents[4]
FRONTEND = Path(gr.__file__).parent / "templates" / "frontend" / "assets"


def in_loop(work: Callable[[], Any]) -> Any:
    """Without a loop around it Gradio makes some, and leaves them."""

    async def run() -> Any:
        return work()

    return asyncio.run(run())


def some_blocks() -> gr.Blocks:
    with gr.Blocks(analytics_enabled=False) as made:
        button = gr.Button("Press")
        box = gr.Textbox()
        made.load(lambda: "", None, box)
        button.click(lambda: "", None, box)
    return made


@pytest.fixture(scope="module")
def blocks() -> Any:
    return in_loop(some_blocks)


def frontend(*needles: str) -> bool:
    """Whether one of Gradio's scripts has all of these texts."""
    texts = (path.read_text(encoding="utf-8") for path in FRONTEND.glob("*.js"))
    return any(all(needle in text for needle in needles) for text in texts)


def test_gradio_is_the_minor_version_that_was_looked_into() -> None:
    requirements = (TOP / "requirements.txt").read_text(encoding="utf-8")
    pinned = re.search(r"^gradio>=(\d+\.\d+)(?:\.\d+)?,<(\d+\.\d+)$", requirements, re.MULTILINE)
    assert pinned, "requirements.txt does not pin gradio to a minor version"
    low, high = (tuple(map(int, each.split("."))) for each in pinned.groups())
    assert high == (low[0], low[1] + 1)
    assert version("gradio").startswith(f"{pinned[1]}."), "another Gradio is installed"


def test_only_this_room_knows_more_of_gradio_than_its_public_face() -> None:
    found = []
    for path in sources("studio"):
        if "gradio_compat" in path.parts or path.name == "page_request.py":
            continue
        for node in ast.walk(tree(path)):
            inside = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradio.")
            if inside and node.module not in PUBLIC:
                found.append(f"{name_of(path)} imports {node.module}")
    assert found == []


PUBLIC = ("gradio.components", "gradio.i18n")


def test_what_a_script_sends_with_an_event_is_its_data() -> None:
    assert events.detail(gr.EventData(None, {"do": "hear"})) == {"do": "hear"}
    assert events.detail(gr.EventData(None, None)) == {}


def test_custom_events_are_found_in_the_text_of_on_load() -> None:
    def build() -> Any:
        with gr.Blocks(analytics_enabled=False):
            html = gr.HTML(js_on_load=scripts.on_load("static/takes.js", ("again",)))
            with pytest.raises(AttributeError):
                html.another  # noqa: B018
            return events.on([html.again], lambda: None, None, None)

    assert in_loop(build) is not None, "a custom event is no partial any more: see events.on"


def test_on_load_is_a_function_of_these_names() -> None:
    names = "`element`,`trigger`,`props`,`server`,`upload`,`watch`"
    assert frontend(f"Function({names}"), "gr.HTML calls js_on_load with other names"


def test_the_page_under_construction_and_its_load_event_are_known() -> None:
    def build() -> None:
        with gr.Blocks(analytics_enabled=False) as made:
            assert Context.root_block is made
            assert events.page_load() is not None
            with gr.Tabs(), gr.Tab("Outer"), gr.Row():
                assert [tab.label for tab in events.tabs_around()] == ["Outer"]

    assert events.page_load() is None
    in_loop(build)


def test_the_request_of_a_running_event_is_known() -> None:
    token = LocalContext.request.set(SimpleNamespace(headers={"accept-language": "zh"}))  # type: ignore[arg-type]
    try:
        assert events.request_language() == "zh"
    finally:
        LocalContext.request.reset(token)
    assert events.request_language() == ""


def test_loads_can_be_taken_out_of_the_queue(blocks: gr.Blocks) -> None:
    pages.run_loads_at_once(blocks)
    queued = {name: event.queue for event in blocks.fns.values() for _, name in event.targets}
    assert queued["load"] is False
    assert queued["click"] is not False


def test_files_that_were_not_uploaded_are_refused_after_a_launch() -> None:
    source = inspect.getsource(gr.processing_utils) + inspect.getsource(gr.blocks)
    assert "has_launched" in source, "Gradio decides otherwise which files it gives out"


def test_the_mounted_application_knows_sessions(blocks: gr.Blocks) -> None:
    page = in_loop(
        lambda: pages.mounted(gr.mount_gradio_app(fastapi.FastAPI(), blocks, "/", ssr_mode=False))
    )
    assert isinstance(page, App)
    page.tokens["secret"] = "somebody"
    for kind in pages.COOKIES:
        cookie = f"{kind}-{page.cookie_id}=secret"
        connection = SimpleNamespace(cookies=dict([cookie.split("=")]))
        assert pages.is_logged_in(page, connection)  # type: ignore[arg-type]
    assert not pages.is_logged_in(page, SimpleNamespace(cookies={}))  # type: ignore[arg-type]
    source = inspect.getsource(gr.routes)
    assert all(f"{kind}-{{" in source for kind in pages.COOKIES), "the cookies have other names"


def test_sessions_are_kept_where_we_bound_them(blocks: gr.Blocks) -> None:
    assert isinstance(blocks.state_session_capacity, int)
    assert isinstance(blocks._queue.pending_messages_per_session, LRUCache)
    assert isinstance(blocks.default_config, BlocksConfig)
    assert callable(blocks.default_config.config_for_block)


def test_a_component_has_a_folder_of_files_to_give_out() -> None:
    assert in_loop(lambda: pages.outbox(gr.File())).is_absolute()


def test_the_browsers_half_uses_these_routes_and_words() -> None:
    """fetch.js, connection.js and event_streams.js look for them."""
    assert frontend("queue/data"), "the stream of answers has another route"
    assert frontend("queue/join"), "presses have another route"
    for word in ("process_completed", "close_stream", "event_id"):
        assert frontend(word), f"{word} is no message of the stream any more"
    assert frontend("vite:preloadError"), "a script that did not come is told otherwise"


def test_a_menu_shows_what_is_listed_at_a_key() -> None:
    """voice_search.js presses Home, and accessible.js mends these names."""
    assert frontend("upload-container"), "the upload button has another class"
