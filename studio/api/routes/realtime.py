"""WS /v1/realtime: the speech half of OpenAI's Realtime, and short-lived keys for it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, WebSocket

from studio.api.api_context import Shared, context_of
from studio.api.auth import CLIENT_SECRET, IDENTITY, offered_protocols
from studio.api.bodies.json_body import BoundedJson
from studio.api.bodies.realtime_events import Session
from studio.api.client_secrets import ClientSecret, NewSecret
from studio.api.rates import address_of
from studio.api.realtime.response import new_id
from studio.api.realtime.session import RealtimeSession, check_session, session_fields
from studio.api.routes.speech import REALTIME

router = APIRouter(tags=["speech"], route_class=BoundedJson)


@router.websocket("/v1/realtime")
async def realtime(socket: WebSocket) -> None:
    context = context_of(socket)
    with context.sockets.place(address_of(socket.scope)):
        offered = offered_protocols(socket.headers)
        await socket.accept(next((name for name in offered if name == REALTIME), None))
        secret: ClientSecret | None = socket.scope.get(CLIENT_SECRET)
        session = secret.session if secret else Session()
        if model := socket.query_params.get("model", "")[:512]:
            session = session.model_copy(update={"model": model})
        await RealtimeSession(socket, context, session).run()


@router.post("/v1/realtime/client_secrets")
async def client_secrets(body: NewSecret, context: Shared, request: Request) -> dict[str, Any]:
    """A short-lived key for a page, which opens /v1/realtime with this session."""
    await check_session(body.session, context)
    secret = context.secrets.add(body, request.scope[IDENTITY].get("key", ""))
    session = session_fields(body.session, new_id("sess"), context)
    return {"value": secret.value, "expires_at": int(secret.expires_at), "session": session}
