"""Large project files: streamed to disk under limits of their own, opened once, else gone."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient

from engine import RequestError
from studio.imports.projects import project_uploads
from studio.imports.projects.project_uploads import PATH, WAITING, ProjectUploads

FILE = bytes(range(256)) * 20_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "uploads"


@pytest.fixture
def uploads(folder: Path) -> ProjectUploads:
    return ProjectUploads(folder, most=len(FILE))


@pytest.fixture
def client(uploads: ProjectUploads) -> TestClient:
    app = FastAPI()
    app.include_router(uploads.router())
    return TestClient(app)


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def receive(uploads: ProjectUploads, body: AsyncIterator[bytes], length: int) -> str:
    return asyncio.run(uploads.receive(body, length, "::1"))


def test_a_file_is_there_once_and_whole(client: TestClient, uploads: ProjectUploads) -> None:
    token = client.post(f"/{PATH}", content=FILE).json()["token"]
    with uploads.opened(token) as path:
        assert path.read_bytes() == FILE
        assert path.suffix == ".zip"
    assert not path.exists()
    with pytest.raises(RequestError, match="Choose the file again"), uploads.opened(token):
        pass


@pytest.mark.parametrize("token", ["", "../project", "0" * 32])
def test_a_token_is_no_path(uploads: ProjectUploads, token: str) -> None:
    with pytest.raises(RequestError), uploads.opened(token):
        pass


def test_too_large_and_unknown_lengths_are_refused_unread(client: TestClient, folder: Path) -> None:
    assert client.post(f"/{PATH}", content=FILE + b"x").status_code == 413
    assert client.post(f"/{PATH}", content=iter([FILE])).status_code == 411
    assert client.post(f"/{PATH}", content=b"").status_code == 400
    assert not folder.exists()


@pytest.mark.parametrize("parts", [(FILE[:100],), (), (FILE, b"more")])
def test_a_body_of_another_length_leaves_nothing(
    uploads: ProjectUploads, folder: Path, parts: tuple[bytes, ...]
) -> None:
    with pytest.raises(HTTPException):
        receive(uploads, pieces(*parts), len(FILE))
    assert list(folder.iterdir()) == []
    assert receive(uploads, pieces(FILE), len(FILE))  # the address may try again


def test_one_upload_of_an_address_and_few_in_all(uploads: ProjectUploads) -> None:
    async def crowd() -> None:
        held = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield FILE[:100]
            await held.wait()
            yield FILE[100:]

        tasks = [asyncio.create_task(uploads.receive(slow(), len(FILE), str(n))) for n in range(4)]
        await asyncio.sleep(0)
        for address in ("0", "another"):
            with pytest.raises(HTTPException) as refused:
                await uploads.receive(pieces(FILE), len(FILE), address)
            assert refused.value.status_code == 429
        held.set()
        assert len(set(await asyncio.gather(*tasks))) == 4

    asyncio.run(crowd())


def test_what_nobody_imports_makes_room(uploads: ProjectUploads, folder: Path) -> None:
    tokens = [receive(uploads, pieces(FILE), len(FILE)) for _ in range(WAITING + 2)]
    assert len(list(folder.iterdir())) == WAITING
    with pytest.raises(RequestError), uploads.opened(tokens[0]):
        pass
    with uploads.opened(tokens[-1]) as path:
        assert path.read_bytes() == FILE


def test_a_slow_sender_is_left(
    uploads: ProjectUploads, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield FILE[:100]
        await asyncio.Event().wait()

    monkeypatch.setattr(project_uploads, "PATIENCE", 0.05)
    with pytest.raises(HTTPException, match="broke off"):
        receive(uploads, silent(), len(FILE))
    assert list(folder.iterdir()) == []


def test_a_full_disk_is_told(
    uploads: ProjectUploads, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    real = shutil.disk_usage(folder.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: real._replace(free=len(FILE)))
    with pytest.raises(HTTPException, match="not enough space"):
        receive(uploads, pieces(FILE), len(FILE))


def test_what_a_killed_server_left_goes(folder: Path) -> None:
    folder.mkdir()
    (folder / "old.zip").write_bytes(FILE)
    ProjectUploads(folder)
    assert not folder.exists()
