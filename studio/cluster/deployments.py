"""The two deployments: replicas that speak, with the API in them, and the studio in front.

    /v1   SpeechReplica × N   an engine, and the API on it: audio takes one hop, to the proxy
    /     Front × 1           the page, and the whole API on a `RemoteEngine`

All share a data folder. Knows Serve's deployments and no way to start Ray.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import anyio.to_thread
import ray
from ray import serve
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from engine import (
    Parts,
    RemoteEngine,
    Replica,
    Replicas,
    Sequence,
    SpeechEngine,
    load_profile,
    open_cluster,
)
from studio.cli.app_context import AppContext
from studio.cli.own_process import process_ahead
from studio.cli.serve import build_application, stores_of
from studio.cluster.proxy_retry import REPLICA
from studio.cluster.serve_replicas import ServeReplicas
from studio.cluster.shared_rates import SharedRates
from studio.retention import Retention
from studio.server.process.data_lock import data_lock
from studio.settings import ClusterSettings, StudioSettings

SPEECH, STUDIO = "timbre-speech", "timbre-studio"  # the applications
REPLICAS: Final = "SpeechReplica"
PREFIXES: Final = {SPEECH: "/v1", STUDIO: "/"}
# HAProxy spreads what it takes by itself, and then Serve wants no router of ours.
ROUTING: Final = {
    "request_router_config": {"request_router_class": f"{__package__}.router:SpeechRouter"}
}

REQUEST_ID: Final = b"x-request-id"
LOGGING: Final = {"enable_access_log": False}
HEALTH_SECONDS: Final = 5.0  # between two health checks
BURST: Final = 256  # requests that each proxy may be looking a replica for
TARGET: Final = 0.75  # share of the slots that autoscaling aims at
UP_SECONDS: Final = 5.0  # of load until another replica is started
LOOK_SECONDS: Final = 12.0  # over which load is averaged; it is reported every ten

OpenEngine: TypeAlias = Callable[[AppContext], SpeechEngine]
OpenFront: TypeAlias = Callable[[AppContext, Replicas, str], RemoteEngine]


def open_replica(context: AppContext) -> SpeechEngine:
    """In a process of its own where an engine has one. Its end is the replica's: Serve starts
    another one, and who has heard nothing yet is taken on by the others."""
    with process_ahead(context.settings) as booted:
        return context.engine(booted, partial(os._exit, 1))


def open_front(context: AppContext, replicas: Replicas, device: str) -> RemoteEngine:
    """The front's engine. `device`: where the replicas are, which decides the profile."""
    settings = context.settings
    return open_cluster(
        context.models(), replicas, device, settings.profile, **settings.engine_changes()
    )


@dataclass(frozen=True)
class Engines:
    """How engines are opened, in replicas and in front of them; others in tests."""

    replica: OpenEngine = open_replica
    front: OpenFront = open_front


class Quiet:
    """A reporter that prints nothing: a replica has no terminal."""

    def line(self, text: str) -> None: ...
    def progress(self, text: str) -> None: ...


class SpeechReplica:
    """One engine, and the API on it."""

    def __init__(self, settings: StudioSettings, open_engine: OpenEngine) -> None:
        self._held, self._proxies = ExitStack(), settings.proxies
        context = AppContext(settings, Quiet())
        self._held.enter_context(data_lock(settings.data, shared=True))
        self._engine = self._held.enter_context(open_engine(context))
        self._replica = Replica(own_name(), self._engine)
        rates = SharedRates(settings.decided_api())
        self._application = build_application(context, self._engine, rates=rates)

    def __serve_build_asgi_app__(self) -> ASGIApp:  # Serve's name
        return at_root(self._application, own_name(), self._proxies)

    async def speak(
        self, key: str, sequence: Sequence, avoid: frozenset[str] = frozenset()
    ) -> Parts:
        """`avoid` is for the router alone."""
        async for part in self._replica.speak(key, sequence):
            yield part

    async def ask(self, method: str, *arguments: Any) -> Any:
        return await anyio.to_thread.run_sync(self._replica.ask, method, *arguments)

    async def check_health(self) -> None:
        """Serve replaces a replica whose engine has ended."""
        if self._engine.ended:
            raise RuntimeError("the engine has ended")

    def __del__(self) -> None:
        self._held.close()


class Front:
    """The page, and the whole API for what is not under /v1."""

    def __init__(self, settings: StudioSettings, open_front: OpenFront, device: str) -> None:
        self._held, self._proxies = ExitStack(), settings.proxies
        context = AppContext(settings, Quiet())
        self._held.enter_context(data_lock(settings.data, shared=True))
        handle = serve.get_deployment_handle(REPLICAS, SPEECH)
        replicas = ServeReplicas(handle, settings.cluster.dashboard)
        engine = self._held.enter_context(open_front(context, replicas, device))
        studio, rates = stores_of(context, engine), SharedRates(settings.decided_api())
        self._application = build_application(
            context, engine, studio if settings.page else None, rates
        )
        Retention(settings, context.library(), studio.takes, studio.scripts).start()

    def __serve_build_asgi_app__(self) -> ASGIApp:  # Serve's name
        return at_root(self._application, own_name(), self._proxies)

    def __del__(self) -> None:
        self._held.close()


def own_name() -> str:
    """The name of the replica that runs in this process."""
    name: str = serve.get_replica_context().replica_tag
    return name


def at_root(application: ASGIApp, name: str, proxies: Iterable[str] = ()) -> ASGIApp:
    """The application as Serve's proxies take it.

    Paths are as they are written, whatever prefix Serve has routed by, and the id of a request is
    left to Serve, which sends the same one. Every answer names the replica. Only `proxies` are
    believed when they say who is behind them.
    """
    replica = (REPLICA, name.encode())
    if proxies:
        behind: Any = application
        application = ProxyHeadersMiddleware(behind, list(proxies))  # type: ignore[assignment]

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [each for each in message["headers"] if each[0].lower() != REQUEST_ID]
                message = {**message, "headers": [*kept, replica]}
            await send(message)

        await application({**scope, "root_path": ""}, receive, tell)

    return run


def build(settings: StudioSettings, engines: Engines = Engines()) -> Mapping[str, Any]:
    """The applications by name, for Serve to run under PREFIXES. Ray must be connected."""
    settings = StudioSettings.model_validate(
        settings.model_dump(exclude_unset=True)
    )  # without app.py's subclass
    gpus, cpus = share(settings.cluster)
    device = settings.device if settings.device != "auto" else "cuda" if gpus else "cpu"
    profile = settings.profile or ("cpu" if device == "cpu" else None)
    slots = load_profile(profile, **settings.engine_changes()).max_num_seqs
    speech = serve.deployment(
        serve.ingress()(SpeechReplica),
        name=REPLICAS,
        ray_actor_options={"num_gpus": gpus, "num_cpus": cpus},
        max_ongoing_requests=2 * slots,
        max_queued_requests=BURST,
        backpressure_config={"status_code": 429, "retry_after_s": 5},
        graceful_shutdown_timeout_s=max(settings.grace, settings.cluster.grace),
        health_check_period_s=HEALTH_SECONDS,
        logging_config=LOGGING,
        **({} if settings.cluster.haproxy else ROUTING),
        **_scale(settings.cluster, slots),
    )
    front = serve.deployment(
        serve.ingress()(Front),
        name="Front",
        num_replicas=1,
        ray_actor_options={"num_cpus": 0},
        max_ongoing_requests=10_000,
        graceful_shutdown_timeout_s=settings.grace,
        health_check_period_s=HEALTH_SECONDS,
        logging_config=LOGGING,
    )
    return {
        SPEECH: speech.bind(settings, engines.replica),
        STUDIO: front.bind(settings, engines.front, device),
    }


def share(cluster: ClusterSettings) -> tuple[float, float]:
    """GPUs and cores of a replica."""
    there = ray.cluster_resources()
    gpus = cluster.gpus if cluster.gpus is not None else float(there.get("GPU", 0) > 0)
    if cluster.cpus is not None or gpus:
        return gpus, cluster.cpus or 1.0
    most = max(1, cluster.replicas, cluster.max_replicas)
    return gpus, max(0.1, there.get("CPU", 1.0) / most)


def _scale(cluster: ClusterSettings, slots: int) -> dict[str, Any]:
    first = max(1, cluster.replicas)
    if cluster.max_replicas <= first and cluster.least is None:
        return {"num_replicas": first}
    scaling = {
        "min_replicas": first if cluster.least is None else min(first, cluster.least),
        "initial_replicas": first,
        "max_replicas": max(first, cluster.max_replicas),
        "target_ongoing_requests": max(1.0, TARGET * slots),
        "upscale_delay_s": UP_SECONDS,
        "look_back_period_s": LOOK_SECONDS,
    }
    return {"autoscaling_config": scaling}
