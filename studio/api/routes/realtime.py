"""WS /v1/realtime: the speech half of OpenAI's Realtime."""

from __future__ import annotations

from fastapi import APIRouter, WebSocket

from studio.api.api_context import context_of
from studio.api.auth import offered_protocols
from studio.api.rates import address_of
from studio.api.realtime.session import RealtimeSession
from studio.api.routes.speech import REALTIME

router = APIRouter(tags=["speech"])


@router.websocket("/v1/realtime")
async def realtime(socket: WebSocket) -> None:
    context = context_of(socket)
    with context.sockets.place(address_of(socket.scope)):
        offered = offered_protocols(socket.headers)
        await socket.accept(next((name for name in offered if name == REALTIME), None))
        model = socket.query_params.get("model", "")[:512]
        await RealtimeSession(socket, context, model).run()
