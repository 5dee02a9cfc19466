"""Wyoming by hand: events as they stand on the wire, limits, what is no event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from engine import Clone, Engine, EngineSettings, InvalidSetting, Library
from engine.testing import Costs, FakeEngine
from studio.api import ApiSettings, create_api
from studio.server import wyoming_server
from studio.server.serving import listen
from studio.server.wyoming_server import WithWyoming, wyoming_address
from studio.settings import StudioSettings
from tests.support.serving import wait_until

pytest.importorskip("wyoming")
TEXT = "The morning train was late again."


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, kind: str, payload: bytes = b"", **data: Any) -> None:
        body = json.dumps(data).encode()
        head = {"type": kind, "data_length": len(body), "payload_length": len(payload)}
        self.writer.write(json.dumps(head).encode() + b"\n" + body + payload)

    async def read(self) -> tuple[str, dict[str, Any], bytes]:
        line = await asyncio.wait_for(self.reader.readline(), 20)
        if not line:
            return "closed", {}, b""
        head = json.loads(line)
        data = head.get("data") or {}
        if length := head.get("data_length"):
            data |= json.loads(await self.reader.readexactly(length))
        return head["type"], data, await self.reader.readexactly(head.get("payload_length") or 0)

    async def until(self, last: str) -> tuple[list[str], bytes]:
        """The kinds of events, each once in its order, and the sound."""
        kinds, sound = [], b""
        while not kinds or kinds[-1] != last:
            kind, _, payload = await self.read()
            assert kind != "closed", kinds
            kinds += [kind] if not kinds or kinds[-1] != kind else []
            sound += payload
        return kinds, sound


Open = Callable[[], Awaitable[Wire]]


def talk(
    work: Callable[[Open], Awaitable[None]],
    engine: Engine,
    library: Library,
    settings: ApiSettings | None = None,
) -> None:
    """Run `work` beside a server, as its application's lifespan starts and ends it."""
    api = create_api(engine, library, settings)
    address = listen("127.0.0.1", 0)
    app = WithWyoming(api, api.state.context, address)
    port = address.getsockname()[1]

    async def main() -> None:
        inbox: asyncio.Queue[Any] = asyncio.Queue()
        outbox: asyncio.Queue[Any] = asyncio.Queue()
        running = asyncio.create_task(app({"type": "lifespan"}, inbox.get, outbox.put))
        await inbox.put({"type": "lifespan.startup"})
        assert (await outbox.get())["type"] == "lifespan.startup.complete"
        wires: list[Wire] = []

        async def connect() -> Wire:
            wires.append(Wire(*await asyncio.open_connection("127.0.0.1", port)))
            return wires[-1]

        try:
            await work(connect)
        finally:
            for wire in wires:
                wire.writer.close()
            await inbox.put({"type": "lifespan.shutdown"})
            await running

    with address:
        asyncio.run(main())


def test_it_says_who_speaks(engine: Engine, library: Library) -> None:
    library.save("Ada", Clone(np.ones(16, np.float32)), consent=True)

    async def work(connect: Open) -> None:
        wire = await connect()
        wire.send("ping", text="hello")
        assert await wire.read() == ("pong", {"text": "hello"}, b"")
        wire.send("describe")
        kind, data, _ = await wire.read()
        assert kind == "info"
        (program,) = data["tts"]
        assert program["supports_synthesize_streaming"]
        names = [voice["name"] for voice in program["voices"]]
        assert {"vivian", "Ada"} <= {*names}
        assert "alloy" not in names
        assert "en" in program["voices"][0]["languages"]

    talk(work, engine, library)


def test_a_text_and_its_pieces_are_spoken(engine: Engine, library: Library) -> None:
    async def work(connect: Open) -> None:
        wire = await connect()
        for _ in range(2):  # one connection may ask again
            wire.send("synthesize", text=TEXT, voice={"name": "vivian"})
            kinds, whole = await wire.until("audio-stop")
            assert kinds == ["audio-start", "audio-chunk", "audio-stop"]
            assert len(whole) > 10_000
        wire.send("synthesize-start", voice={"name": "vivian"})
        for word in TEXT.split():
            wire.send("synthesize-chunk", text=word + " ")
        wire.send("synthesize", text=TEXT, voice={"name": "vivian"})  # repeats them
        wire.send("synthesize-stop")
        kinds, sound = await wire.until("synthesize-stopped")
        assert kinds == ["audio-start", "audio-chunk", "audio-stop", "synthesize-stopped"]
        assert len(sound) > 10_000
        wire.send("synthesize-start")
        wire.send("synthesize-stop")  # nothing was said
        assert (await wire.read())[0] == "synthesize-stopped"

    talk(work, engine, library)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"text": TEXT, "voice": {"name": "nobody"}}, "voice_not_found"),
        ({"text": TEXT, "voice": {"language": "xx"}}, "unknown_language"),
        ({"text": TEXT, "text_format": "ssml"}, "invalid_value"),
        ({"text": ""}, "invalid_text"),
        ({}, "invalid_event"),
        ({"text": 1}, "invalid_event"),
        ({"text": "x" * 100_000}, "invalid_text"),
    ],
)
def test_what_cannot_be_is_told_and_left(
    engine: Engine, library: Library, data: dict[str, Any], code: str
) -> None:
    async def work(connect: Open) -> None:
        wire = await connect()
        wire.send("synthesize", **data)
        kind, printed, _ = await wire.read()
        assert (kind, printed["code"]) == ("error", code)
        assert printed["text"]
        assert (await wire.read())[0] == "closed"
        again = await connect()
        again.send("synthesize", text=TEXT)
        await again.until("audio-stop")

    with_limit = ApiSettings()
    talk(work, engine, library, with_limit)


@pytest.mark.parametrize(
    "raw",
    [
        b"\n",
        b"[]\n",
        b"{}\n",
        b'{"type": 1}\n',
        b'{"type": "describe", "data": []}\n',
        b'{"type": "describe", "data_length": -1}\n',
        b'{"type": "describe", "data_length": 99999999999}\n',
        b'{"type": "describe", "payload_length": "1"}\n',
        b'{"type": "describe", "data_length": 3}\n{{{',
        b"[" * 5000 + b"\n",
        b"x" * 40_000,
        b"\xff\xfe\n",
    ],
)
def test_what_is_no_event_is_told(engine: Engine, library: Library, raw: bytes) -> None:
    async def work(connect: Open) -> None:
        wire = await connect()
        wire.writer.write(raw)
        kind, printed, _ = await wire.read()
        assert kind == "error", printed
        assert printed["code"] in ("invalid_event", "invalid_json", "too_deep")

    talk(work, engine, library)


def test_unknown_events_are_left_out(engine: Engine, library: Library) -> None:
    async def work(connect: Open) -> None:
        wire = await connect()
        wire.send("select-program", name="timbre")
        wire.send("audio-chunk", b"\x00" * 1000, rate=16000)
        wire.send("synthesize-chunk", text="before any start")
        wire.send("describe")
        assert (await wire.read())[0] == "info"

    talk(work, engine, library)


def test_limits_are_those_of_every_socket(engine: Engine, library: Library) -> None:
    settings = ApiSettings(sockets=1, idle_timeout=0.2, address_rate="1/minute")

    async def work(connect: Open) -> None:
        first = await connect()
        first.send("ping")
        assert (await first.read())[0] == "pong"
        second = await connect()
        assert (await second.read())[1]["code"] == "too_many_sockets"
        assert (await second.read())[0] == "closed"
        first.send("synthesize", text=TEXT)
        await first.until("audio-stop")
        first.send("synthesize", text=TEXT)
        assert (await first.read())[1]["code"] == "rate_limit"
        while (await first.read())[0] != "closed":
            pass
        silent = await connect()
        silent.writer.write(b'{"type": "descr')  # and no more
        assert (await silent.read())[1]["code"] == "idle_timeout"

    talk(work, engine, library, settings)


def test_who_leaves_frees_the_slot(library: Library) -> None:
    with FakeEngine(costs=Costs(step=0.01), settings=EngineSettings(max_num_seqs=4)) as slow:

        async def work(connect: Open) -> None:
            wire = await connect()
            wire.send("synthesize-start")
            wire.send("synthesize-chunk", text="A word. " * 50)
            assert (await wire.read())[0] == "audio-start"
            wire.writer.transport.abort()
            await asyncio.to_thread(wait_until, lambda: slow.stats().running == 0)

        talk(work, slow, library)


def test_where_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    def at(**fields: Any) -> tuple[str, int]:
        return wyoming_address(StudioSettings(**fields))

    assert at(wyoming="10200") == ("127.0.0.1", 10200)
    assert at(wyoming="10200", host="0.0.0.0") == ("0.0.0.0", 10200)
    keys = ApiSettings(keys=("secret",))
    assert at(wyoming="10200", host="0.0.0.0", api=keys) == ("127.0.0.1", 10200)
    assert at(wyoming="0.0.0.0:10200", api=keys) == ("0.0.0.0", 10200)
    assert at(wyoming="[::1]:10200") == ("::1", 10200)
    for wrong in ("x", "0", "70000", "host:", ":"):
        with pytest.raises(InvalidSetting, match="port"):
            at(wyoming=wrong)
    with pytest.raises(InvalidSetting, match="visitors"):
        at(wyoming="10200", guests=True)
    monkeypatch.setattr(wyoming_server.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match="requirements-wyoming"):
        at(wyoming="10200")
