"""Starts a cluster on this machine, or on one that is there, and stops it again."""

from __future__ import annotations

import logging
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import ray
from ray import serve as ray_serve

from engine import EngineError, InvalidSetting
from studio.cli.app_context import AppContext
from studio.cli.serve import greet
from studio.cluster import shared_rates
from studio.cluster.deployments import LOGGING, PREFIXES, Engines, build
from studio.server import serving
from studio.settings import StudioSettings

OBJECT_BYTES: Final = 200 << 20  # shared memory for what is larger than a message: recordings
OUR_ERROR: Final = re.compile(r"^[\w.]*\berrors\.\w+: (.+)", re.MULTILINE)
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def serve(context: AppContext) -> None:
    """Serve until Ctrl-C or SIGTERM. Raises InvalidSetting or EngineError."""
    stop = threading.Event()
    with running(context), _signals(stop):
        greet(context)
        stop.wait()
        context.tell.line("Stopping: who is spoken to hears the end.")


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """Set `stop` at a signal. Entered once Ray has started, which sets a handler of its own."""
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)


@contextmanager
def running(context: AppContext, engines: Engines = Engines()) -> Iterator[None]:  # noqa: B008
    """A cluster that serves. At the end its applications are drained and removed."""
    settings = context.settings
    serving.listen(
        settings.host, settings.port
    ).close()  # a taken address is reported before anything is started
    context.tell.line("Starting Ray …")
    joined, dashboard = connect(settings.cluster.address)
    try:
        ray_serve.start(
            proxy_location="EveryNode",
            http_options={
                "host": settings.host,
                "port": settings.port,
                "keep_alive_timeout_s": serving.KEPT,
            },
            logging_config=LOGGING,
        )
        context.tell.line(f"Loading {settings.cluster.replicas} × {', '.join(context.models())} …")
        applications = build(_linked(settings, dashboard), engines)
        for name, application in applications.items():
            start(application, name, PREFIXES[name])
        yield
    finally:
        for name in reversed(PREFIXES):
            ray_serve.delete(name)
        shared_rates.forget(settings.api)
        if not joined:
            ray_serve.shutdown()
        ray.shutdown()


def start(application: Any, name: str, prefix: str) -> None:
    """Raises EngineError: why no replica of it could start."""
    try:
        ray_serve.run(application, name=name, route_prefix=prefix)
    except RuntimeError as error:  # which names the deployment alone
        raise EngineError("The cluster cannot start. {reason}", reason=_reason(name)) from error


def _reason(name: str) -> str:
    """What replicas of an application have failed with last: the end of a traceback."""
    deployments = ray_serve.status().applications[name].deployments.values()
    told = "\n".join(each.message for each in deployments).strip()
    ours = OUR_ERROR.findall(told)
    return ours[-1] if ours else told.splitlines()[-1]


def _linked(settings: StudioSettings, dashboard: str) -> StudioSettings:
    if settings.cluster.dashboard or not dashboard:
        return settings
    cluster = settings.cluster.model_copy(update={"dashboard": dashboard})
    return settings.model_copy(update={"cluster": cluster})


def connect(address: str) -> tuple[bool, str]:
    """Connect to Ray: whether it is a cluster that was there, else its dashboard's address.

    Raises InvalidSetting.
    """
    options: dict[str, Any] = {
        "namespace": "timbre",
        "log_to_driver": False,
        "logging_level": logging.WARNING,
    }
    if not address:
        started = ray.init(object_store_memory=OBJECT_BYTES, **options)
        return False, f"http://{started.dashboard_url}" if started.dashboard_url else ""
    try:
        ray.init(address, **options)
    except ConnectionError as error:
        raise InvalidSetting(
            "No Ray cluster answers at '{address}'. Start one with `ray start --head`, and have "
            "its token here (docs/cluster.md), or leave --ray-address out.",
            address=address,
        ) from error
    return True, ""
