"""Settings of a Gradio page that have no public argument, and its login sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.requests import HTTPConnection

if TYPE_CHECKING:  # a server without a page asks who is logged in, too
    import gradio as gr

COOKIES = ("access-token", "access-token-unsecure")


@contextmanager
def without_application() -> Iterator[None]:
    """While a page's components are made: Gradio makes an application of 83 routes when it is
    begun and another when it is finished, which nobody sees. The queue makes the one it uses."""
    from gradio.routes import App

    kind: Any = App
    make = vars(App)["create_app"]
    kind.create_app = staticmethod(lambda *_, **__: None)
    try:
        yield
    finally:
        kind.create_app = make


def refuse_unsent_files(blocks: gr.Blocks) -> None:
    """Have Gradio refuse files that no visitor has uploaded; it does so only after a launch."""
    blocks.has_launched = True


def run_loads_at_once(blocks: gr.Blocks) -> None:
    """Run the page's load events outside of the queue.

    Gradio's client closes its event stream after the last of these events; a press of Speak at
    that moment would get no answer.
    """
    for event in blocks.fns.values():
        if any(name == "load" for _, name in event.targets):
            event.queue = False


def mounted(application: FastAPI) -> Any:
    """Gradio's application, which `gr.mount_gradio_app` has mounted last."""
    return application.routes[-1].app  # type: ignore[attr-defined]


def is_logged_in(page: Any, connection: HTTPConnection) -> bool:
    """Whether a request has a session of this application of Gradio's."""
    cookies = connection.cookies
    tokens = (cookies.get(f"{kind}-{page.cookie_id}") for kind in COOKIES)
    return any(token in page.tokens for token in tokens if token)


def outbox(component: gr.components.Component) -> Path:
    """The folder from which Gradio serves files that a handler returns for a component."""
    return Path(component.GRADIO_CACHE)
