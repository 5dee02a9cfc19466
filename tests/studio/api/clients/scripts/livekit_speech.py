"""LiveKit's OpenAI plugin streams an utterance."""

import asyncio
import sys

from livekit.agents import utils
from livekit.plugins import openai


async def main() -> None:
    async with utils.http_context.open():
        speech = openai.TTS(
            model="tts-1", voice="clara", base_url=f"{sys.argv[1]}/v1", api_key="none"
        )
        samples = 0
        async with speech.synthesize("The train leaves at seven.") as stream:
            async for event in stream:
                samples += event.frame.samples_per_channel
        assert samples > 10_000, samples
        await speech.aclose()


asyncio.run(main())
