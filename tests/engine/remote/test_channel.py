"""Calls over a socket: in order, whoever posts, however little the other side reads."""

from __future__ import annotations

import errno
import os
import random
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import pytest

from engine.remote.channel import Channel

if sys.platform == "win32":
    pytest.skip("an engine's own process is for POSIX", allow_module_level=True)

PATIENCE = 60.0
LARGE = 1 << 21  # bytes, more than a socket holds


class Listener:
    """What is called. `may_go`: held to stop it after its first call."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, int, int]] = []  # who, number, bytes
        self.may_go = threading.Event()
        self.may_go.set()

    def hear(self, who: int, number: int, data: bytes) -> None:
        self.heard.append((who, number, len(data)))
        assert self.may_go.wait(PATIENCE)


@contextmanager
def pair(listener: Listener) -> Iterator[tuple[Channel, threading.Thread]]:
    """A channel to post on, and the thread that receives for the listener until the end."""
    here, there = socket.socketpair()
    near, far = Channel(here.detach()), Channel(there.detach())

    def listen() -> None:
        for _ in far.receive(listener):
            pass
        far.close()

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield near, thread
    finally:
        listener.may_go.set()
        near.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_calls_of_many_threads_arrive_in_their_order() -> None:
    listener, sizes = Listener(), random.Random(5)
    made = {who: [sizes.choice((0, 10, 9_000, 300_000)) for _ in range(60)] for who in range(6)}

    def post(near: Channel, who: int) -> None:
        for number, size in enumerate(made[who]):
            near.post(Listener.hear, who, number, b"x" * size)

    with pair(listener) as (near, _):
        threads = [threading.Thread(target=post, args=(near, who)) for who in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    for who, lengths in made.items():
        assert [call[1:] for call in listener.heard if call[0] == who] == list(enumerate(lengths))


def test_posting_never_waits_and_what_was_posted_is_written_before_the_end() -> None:
    listener = Listener()
    listener.may_go.clear()
    with pair(listener) as (near, _):
        for number in range(5):  # the other side reads none of it now
            near.post(Listener.hear, 0, number, b"x" * LARGE)
        assert len(listener.heard) <= 1
        listener.may_go.set()
    assert listener.heard == [(0, number, LARGE) for number in range(5)]


def test_a_small_call_is_written_by_who_posts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the channel's thread, which would be one more hop on a chunk's way."""
    writers: SimpleQueue[str] = SimpleQueue()
    send = Channel._send_first

    def noted(self: Channel) -> bool:
        writers.put(threading.current_thread().name)
        return send(self)

    monkeypatch.setattr(Channel, "_send_first", noted)
    listener = Listener()
    with pair(listener) as (near, _):
        near.post(Listener.hear, 0, 0, b"x")
    assert writers.get() == threading.current_thread().name
    assert writers.empty()


class PostsAgain:
    """Posts while it is pickled or freed, as a finaliser may at any moment."""

    def __init__(self, near: Channel) -> None:
        self._near = near

    def __del__(self) -> None:
        self._near.post(Listener.hear, 0, 1, b"")


def test_a_finaliser_may_post_while_its_thread_is_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    listener, send, again = Listener(), Channel._send_first, list[PostsAgain]()

    def freeing(self: Channel) -> bool:
        again.clear()  # the lock is held here
        return send(self)

    with pair(listener) as (near, _):
        again.append(PostsAgain(near))
        monkeypatch.setattr(Channel, "_send_first", freeing)
        near.post(Listener.hear, 0, 0, b"")
    assert listener.heard == [(0, 0, 0), (0, 1, 0)]


def test_calls_to_nobody_are_dropped() -> None:
    here, there = socket.socketpair()
    near = Channel(here.detach())
    near.post(Listener.hear, 0, 0, b"x" * LARGE)  # waits in part for a reader who never comes
    there.close()
    while not near.gone:
        near.post(Listener.hear, 0, 1, b"")
    near.post(Listener.hear, 0, 2, b"")
    assert not list(near.receive(Listener()))
    near.close()


def test_after_a_call_that_could_not_be_written_neither_side_waits_for_the_other() -> None:
    """As where the system has no memory for it. Requests would wait for ever for a process that
    hears nothing and says that it is well."""
    listener = Listener()

    def full(self: Channel) -> bool:
        raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))

    with pair(listener) as (near, thread), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Channel, "_send_first", full)
        near.post(Listener.hear, 0, 0, b"")
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert not list(near.receive(Listener()))


def test_a_socket_is_not_closed_while_somebody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may be another file's a moment later, which would get what is written."""
    here, there = socket.socketpair()
    near, numbers = Channel(here.detach()), list[int]()
    writing, closed, join = threading.Event(), threading.Event(), near._writer.join

    def write(self: Channel) -> bool:
        writing.set()
        closed.wait(0.2)  # it waits for this call
        numbers.append(self._socket.fileno())
        self._outgoing.popleft()
        return True

    post = threading.Thread(target=near.post, args=(Listener.hear, 0, 0, b""))

    def ended() -> None:
        join()
        post.start()
        assert writing.wait(PATIENCE)

    monkeypatch.setattr(Channel, "_send_first", write)
    monkeypatch.setattr(near._writer, "join", ended)
    near.close()
    closed.set()
    post.join(PATIENCE)
    there.close()
    assert numbers[0] >= 0
