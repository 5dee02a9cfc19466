"""OpenAI's SDK for Realtime speaks a text, is interrupted, and is told what is not offered."""

import asyncio
import base64
import sys

import openai

TEXT = "The train leaves at seven forty-five. Take a book along."


async def say(connection, text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content}
    await connection.conversation.item.create(item=item)
    await connection.response.create()


async def until(connection, kind: str) -> list:
    events = []
    while not events or events[-1].type != kind:
        events.append(await connection.recv())
    return events


def audio(events: list) -> bytes:
    deltas = [each.delta for each in events if each.type == "response.output_audio.delta"]
    return b"".join(map(base64.b64decode, deltas))


async def main() -> None:
    client = openai.AsyncOpenAI(base_url=f"{sys.argv[1]}/v1", api_key="none")
    async with client.realtime.connect(model="gpt-realtime") as connection:
        created = await connection.recv()
        assert created.type == "session.created", created
        output = {"voice": "clara", "format": {"type": "audio/pcm", "rate": 24000}, "speed": 1.0}
        await connection.session.update(
            session={
                "type": "realtime",
                "instructions": "Be kind.",
                "output_modalities": ["audio"],
                "audio": {"output": output},
            }
        )
        (updated,) = await until(connection, "session.updated")
        assert updated.session.audio.output.voice == "clara", updated
        await say(connection, TEXT)
        events = await until(connection, "response.done")
        sound = audio(events)
        assert len(sound) > 48_000, len(sound)
        words = "".join(
            each.delta for each in events if each.type == "response.output_audio_transcript.delta"
        )
        assert words == TEXT, words
        response = events[-1].response
        assert response.status == "completed", response
        assert response.usage.output_tokens > 10, response.usage
        (item,) = response.output
        assert item.content[0].transcript == TEXT, item
        half = len(sound) // 2 * 1000 // 48_000
        await connection.conversation.item.truncate(
            item_id=item.id, content_index=0, audio_end_ms=half
        )
        (cut,) = await until(connection, "conversation.item.truncated")
        assert cut.audio_end_ms == half, cut

        await say(connection, TEXT * 20)
        await until(connection, "response.output_audio.delta")
        await connection.response.cancel()
        assert (await until(connection, "response.done"))[-1].response.status == "cancelled"

        await connection.input_audio_buffer.append(audio="AAAA")
        (error,) = await until(connection, "error")
        assert error.error.code == "not_supported", error

        await connection.response.create(
            response={
                "conversation": "none",
                "metadata": {"topic": "aside"},
                "input": [
                    {
                        "type": "message",
                        "role": "user",
                        "content": [{"type": "input_text", "text": "An aside."}],
                    }
                ],
            }
        )
        events = await until(connection, "response.done")
        assert events[-1].response.metadata == {"topic": "aside"}, events[-1]
        assert len(audio(events)) > 10_000

    # What a server gives to a page: a short-lived key with a session.
    output = {"voice": "clara", "format": {"type": "audio/pcmu"}}
    secret = await client.realtime.client_secrets.create(
        expires_after={"anchor": "created_at", "seconds": 60},
        session={"type": "realtime", "audio": {"output": output}},
    )
    assert secret.value.startswith("ek_"), secret
    assert secret.session.audio.output.voice == "clara", secret
    page = openai.AsyncOpenAI(base_url=f"{sys.argv[1]}/v1", api_key=secret.value)
    async with page.realtime.connect(model="gpt-realtime") as connection:
        created = await connection.recv()
        assert created.session.audio.output.format.type == "audio/pcmu", created
        await say(connection, TEXT)
        assert 8_000 < len(audio(await until(connection, "response.done"))) < 80_000


asyncio.run(main())
