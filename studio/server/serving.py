"""Serves an application with uvicorn."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from engine import InvalidSetting
from studio.server.connections import BoundedSocket, bounded_protocol
from studio.server.process.gc_freeze import settle
from studio.server.process.log_limits import bounded_log
from studio.server.process.shutdown import DrainingServer

GRACE = 3  # seconds for open connections at shutdown
# Connections that wait to be accepted, and are accepted at once: with more, a crowd of them can
# take all file handles before the first of them is looked at.
BACKLOG = 256
# Seconds that a connection may stay silent. Clients keep theirs for 5 to 60 s: the side that closes
# first loses a request that is on its way, so it should not be us.
KEPT = 75

log = logging.getLogger("timbre")


def listen(host: str, port: int) -> socket.socket:
    """Bind the address, before models are loaded. Raises InvalidSetting."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        address = socket.create_server((host, port), family=family)
        # Connections inherit it. Without, an answer in two writes waits 40 ms for the client's
        # delayed ACK; asyncio sets it for sockets that it has made itself only.
        address.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return address
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        why = str(error.strerror).partition(" (while ")[0]  # Python names the address once more
        reason = "is taken by another program" if in_use else f"cannot be used: {why}"
        raise InvalidSetting(
            "{host}:{port} {reason}. Choose another --port or --host.",
            host=host,
            port=port,
            reason=reason,
        ) from error


def serve(
    application: ASGIApp,
    address: socket.socket,
    drain: Callable[[float], object] = lambda seconds: None,
    proxies: Sequence[str] = (),
    grace: float = 20.0,
    debug: bool = False,
) -> None:
    """Serve until Ctrl-C, or SIGTERM and `drain`: `grace` seconds later the process is gone."""
    settings = configure(_telling(application), proxies)
    settle()
    with address, bounded_log(debug), suppress(KeyboardInterrupt):
        DrainingServer(settings, drain, grace).run(sockets=[address])


def _telling(application: ASGIApp) -> ASGIApp:
    """The application; why it does not start is told by our log, since uvicorn's is cut short."""

    async def reported(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await application(scope, receive, send)
        except Exception:
            if scope["type"] == "lifespan":
                log.exception("The application did not start, or did not end well.")
            raise

    return reported


def configure(application: ASGIApp, proxies: Sequence[str] = ()) -> uvicorn.Config:
    """Uvicorn's configuration. Forwarded addresses are believed from `proxies` only."""
    return uvicorn.Config(
        application,
        http=bounded_protocol(),
        ws=BoundedSocket,
        ws_ping_timeout=None,  # a ping waits behind audio that is not read yet; stall_timeout holds
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        log_config=None,  # studio/server/process/log_limits.py has it
        log_level="warning",
        access_log=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=KEPT,
    )
