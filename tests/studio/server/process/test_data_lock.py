"""One server a data folder; a refusal names its owner, and a killed process holds nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engine import InvalidSetting
from studio.layout import ROOT
from studio.server.process.data_lock import NAME, data_lock

HOLD = """
import sys
from pathlib import Path
from studio.server.process.data_lock import data_lock
with data_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_server_is_told_who_has_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    command = [sys.executable, "-c", HOLD, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InvalidSetting) as refused, data_lock(folder):
            pytest.fail("two servers")
        message = str(refused.value)
        assert f"process {holder.pid} on {socket.gethostname()}, since 20" in message
        with data_lock(tmp_path / "another"):
            pass
        holder.send_signal(signal.SIGKILL)  # nothing is cleaned up
        holder.wait()
    assert (folder / NAME).is_file()
    with data_lock(folder):
        assert f'"pid": {os.getpid()}' in (folder / NAME).read_text()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"pid": {}}', b"\xff" * 5000])
def test_what_the_file_says_is_not_trusted(tmp_path: Path, text: bytes) -> None:
    with data_lock(tmp_path):
        (tmp_path / NAME).write_bytes(text)
        with pytest.raises(InvalidSetting, match="in use by another server"), data_lock(tmp_path):
            pytest.fail("two servers")
    with data_lock(tmp_path):
        pass


def test_through_a_link_it_is_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with (
        data_lock(tmp_path / "data"),
        pytest.raises(InvalidSetting),
        data_lock(tmp_path / "link"),
    ):
        pytest.fail("two servers")


def test_a_folder_that_cannot_be_written_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with data_lock(tmp_path):
        pass


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_folder_that_cannot_be_there_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InvalidSetting, match="--data"), data_lock(tmp_path / name):
        pytest.fail("it cannot be served")


def test_the_processes_of_a_cluster_share_the_folder(tmp_path: Path) -> None:
    with data_lock(tmp_path, shared=True), data_lock(tmp_path, shared=True):
        pass


@pytest.mark.parametrize("cluster_first", [True, False])
def test_a_cluster_and_a_server_do_not(tmp_path: Path, cluster_first: bool) -> None:
    first, second = data_lock(tmp_path, cluster_first), data_lock(tmp_path, not cluster_first)
    with first, pytest.raises(InvalidSetting), second:
        pytest.fail("a server beside a cluster")
