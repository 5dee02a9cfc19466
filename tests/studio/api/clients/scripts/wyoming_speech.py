"""The package wyoming, with which Home Assistant asks: voices, a text, and a text in pieces."""

import asyncio
import sys

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.error import Error
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

TEXT = "The train leaves at seven. Take a book along."


async def hear(client: AsyncClient, last: type) -> bytes:
    sound, started = b"", False
    while (event := await client.read_event()) is not None:
        assert not Error.is_type(event.type), event
        if AudioStart.is_type(event.type):
            start = AudioStart.from_event(event)
            assert (start.rate, start.width, start.channels) == (24_000, 2, 1), start
            started = True
        elif AudioChunk.is_type(event.type):
            sound += AudioChunk.from_event(event).audio
        elif last.is_type(event.type):
            assert started
            return sound
    raise AssertionError("the server hung up")


async def main() -> None:
    async with AsyncClient.from_uri(sys.argv[1]) as client:
        await client.write_event(Describe().event())
        event = await client.read_event()
        (program,) = Info.from_event(event).tts
        assert "clara" in [voice.name for voice in program.voices], program
        assert program.supports_synthesize_streaming
        voice = SynthesizeVoice(name="clara")
        await client.write_event(Synthesize(TEXT, voice=voice).event())
        assert len(await hear(client, AudioStop)) > 40_000
    async with AsyncClient.from_uri(sys.argv[1]) as client:
        await client.write_event(SynthesizeStart(voice=voice).event())
        for word in TEXT.split():
            await client.write_event(SynthesizeChunk(word + " ").event())
        # Home Assistant repeats the whole text for servers that know no pieces.
        await client.write_event(Synthesize(TEXT, voice=voice).event())
        await client.write_event(SynthesizeStop().event())
        assert len(await hear(client, SynthesizeStopped)) > 40_000
    async with AsyncClient.from_uri(sys.argv[1]) as client:
        voice = SynthesizeVoice(name="nobody")
        await client.write_event(Synthesize(TEXT, voice=voice).event())
        event = await client.read_event()
        assert Error.is_type(event.type), event
        assert "nobody" in Error.from_event(event).text


asyncio.run(main())
