"""LiveKit's ElevenLabs plugin speaks over multi-stream-input, and is interrupted."""

import asyncio
import sys

from livekit.agents import utils
from livekit.plugins import elevenlabs

TEXT = "The train leaves at seven. Take a book along, please."


async def heard(speech: elevenlabs.TTS, text: str, stop: bool = False) -> int:
    stream = speech.stream()
    for word in text.split():
        stream.push_text(word + " ")
    stream.end_input()
    samples = 0
    async for event in stream:
        samples += event.frame.samples_per_channel
        if stop:
            break
    await stream.aclose()
    return samples


async def main() -> None:
    async with utils.http_context.open():
        speech = elevenlabs.TTS(
            voice_id="clara",
            base_url=f"{sys.argv[1]}/v1",
            api_key="none",
            encoding="pcm_24000",
        )
        assert await heard(speech, TEXT) > 20_000
        assert await heard(speech, TEXT * 10, stop=True)  # somebody interrupts
        assert await heard(speech, TEXT) > 20_000
        await speech.aclose()


asyncio.run(main())
