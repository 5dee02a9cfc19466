"""Pipecat's OpenAI service speaks in a pipeline."""

import asyncio
import sys

from pipecat.frames.frames import EndFrame, ErrorFrame, TTSAudioRawFrame, TTSSpeakFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.tts import OpenAITTSService


class Heard(FrameProcessor):
    samples = 0

    async def process_frame(self, frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        assert not isinstance(frame, ErrorFrame), frame
        if isinstance(frame, TTSAudioRawFrame):
            self.samples += len(frame.audio) // 2
        await self.push_frame(frame, direction)


async def main() -> None:
    speech = OpenAITTSService(
        api_key="none", base_url=f"{sys.argv[1]}/v1", voice="alloy", model="tts-1"
    )
    heard = Heard()
    task = PipelineTask(
        Pipeline([speech, heard]), params=PipelineParams(audio_out_sample_rate=24000)
    )
    await task.queue_frames([TTSSpeakFrame("The train leaves at seven."), EndFrame()])
    await PipelineRunner().run(task)
    assert heard.samples > 10_000, heard.samples


asyncio.run(main())
