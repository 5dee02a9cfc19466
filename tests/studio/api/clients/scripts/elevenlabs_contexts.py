"""ElevenLabs' multi-stream-input, in the types of its SDK, which has no call for it."""

import asyncio
import base64
import json
import sys

import websockets
from elevenlabs.types import (
    AudioOutputMulti,
    CloseContext,
    CloseSocket,
    FinalOutputMulti,
    FlushContext,
    InitializeConnectionMulti,
    KeepContextAlive,
    SendTextMulti,
)

URL = sys.argv[1].replace("http", "ws") + "/v1/text-to-speech/clara/multi-stream-input"
TEXT = "The train leaves at seven. "


async def main() -> None:
    sound: dict[str, int] = {}
    letters: dict[str, str] = {}
    async with websockets.connect(f"{URL}?output_format=pcm_24000") as socket:

        async def send(message) -> None:
            await socket.send(json.dumps(message.dict(exclude_none=True)))

        await send(InitializeConnectionMulti(text=" ", context_id="answer"))
        await send(SendTextMulti(text=TEXT, context_id="answer"))
        await send(KeepContextAlive(text="", context_id="answer"))
        await send(SendTextMulti(text="Twice over. ", context_id="beside", flush=True))
        await send(FlushContext(context_id="answer", text="And now. ", flush=True))
        for name in ("answer", "beside"):
            await send(CloseContext(context_id=name, close_context=True))
        await send(CloseSocket(close_socket=True))
        final = []
        async for message in socket:
            read = json.loads(message)
            if read["isFinal"]:
                final.append(FinalOutputMulti(**read).context_id)
                continue
            piece = AudioOutputMulti(**read)
            name = piece.context_id
            sound[name] = sound.get(name, 0) + len(base64.b64decode(piece.audio))
            if piece.alignment:
                letters[name] = letters.get(name, "") + "".join(piece.alignment.chars)
    assert sorted(final) == ["answer", "beside"], final
    assert letters == {"answer": f"{TEXT}And now. ", "beside": "Twice over. "}, letters
    assert all(size > 20_000 for size in sound.values()), sound


asyncio.run(main())
