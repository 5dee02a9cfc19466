"""The official client of MCP lists the tools and calls each."""

import asyncio
import base64
import sys

from mcp import Client
from sounds import recording


async def main() -> None:
    async with Client(f"{sys.argv[1]}/mcp") as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"speak", "list_voices", "design_voice", "clone_voice"}, tools
        listed = await client.call_tool("list_voices", {})
        names = [voice["name"] for voice in listed.structured_content["voices"]]
        assert "clara" in names, names
        spoken = await client.call_tool(
            "speak", {"text": "The train leaves at seven.", "voice": "clara", "format": "wav"}
        )
        sound = spoken.content[0]
        assert (sound.type, sound.mime_type) == ("audio", "audio/wav"), sound.type
        assert base64.b64decode(sound.data)[:4] == b"RIFF"
        me = "data:audio/wav;base64," + base64.b64encode(recording()).decode()
        fields = {"name": "By a tool", "recording": me}
        refused = await client.call_tool("clone_voice", {**fields, "consent": False})
        assert refused.is_error, refused
        cloned = await client.call_tool("clone_voice", {**fields, "consent": True})
        assert not cloned.is_error, cloned
        assert (await client.call_tool("speak", {"text": "Hello.", "voice": "By a tool"})).content
        if listed.structured_content["can_design"]:
            designed = await client.call_tool(
                "design_voice", {"name": "Designed", "description": "A warm, low voice."}
            )
            assert not designed.is_error, designed


asyncio.run(main())
