"""A message is stored as JSON and comes back as it was; what a stranger wrote is no message."""

from __future__ import annotations

import json

import pytest

from engine import Message

INNER = Message("{seconds:.1f} s are {what}", seconds=2.25, what=Message("too short {sic}"))
MESSAGES = (
    Message("plain"),
    Message("with {braces} and no values"),
    Message("{count:,} of {all}", count=1_200, all="many"),
    Message("{hertz:,.0f} Hz, {share:.1%}, {db:+.0f} dB", hertz=1e4, share=0.1, db=-3.0),
    Message("U+{code:04X}, {ratio:g}", code=0xAD, ratio=0.25),
    Message("Left out: {why}", why=INNER),
    Message.listed([INNER, "text", Message("end")]),
)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_comes_back_with_its_values(message: Message) -> None:
    again = Message.restored(json.loads(json.dumps(message.stored)))
    assert (again, again.key) == (message, message.key)
    assert _whole(again) == _whole(message)
    assert Message.restored(message) is message


def _whole(message: Message) -> object:
    """Its values, each with its type: messages among them are translated."""
    return {
        name: (type(value), _whole(value) if isinstance(value, Message) else value)
        for name, value in message.values.items()
    }


@pytest.mark.parametrize(
    "stored",
    [
        None,
        1,
        ["a"],
        {},
        {"key": "a"},
        {"key": 1, "values": {}},
        {"key": "{b}", "values": {"a": 1}},
        {"key": "{a.__class__}", "values": {"a": 1}},
        {"key": "{a[0]}", "values": {"a": "x"}},
        {"key": "{0}", "values": {"0": 1}},
        {"key": "{}", "values": {"a": 1}},
        {"key": "{a:{a}}", "values": {"a": 1}},
        {"key": "{a:999999999999}", "values": {"a": 1}},
        {"key": "{a:99999999}", "values": {"a": 1}},
        {"key": "{a:.999999f}", "values": {"a": 1.5}},
        {"key": "{a:.0f}", "values": {"a": "x"}},
        {"key": "{a:.0f}", "values": {"a": 10**400}},
        {"key": "{a:c}", "values": {"a": 1 << 40}},
        {"key": "{a}" * 300, "values": {"a": {"key": "{a}" * 300, "values": {"a": "many"}}}},
        {"key": "{a}", "values": {"a": None}},
        {"key": "{a}", "values": {"a": [1]}},
        {"key": "{a}", "values": {"a": {"key": "{b}", "values": {"a": 1}}}},
    ],
)
def test_what_fits_no_message_is_refused(stored: object) -> None:
    with pytest.raises(ValueError, match=r"key|message|value|code"):
        Message.restored(stored)
