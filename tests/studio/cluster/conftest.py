"""Two replicas of a twin behind Ray Serve, started once for all tests of this folder."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import Library
from studio.cli.app_context import AppContext
from studio.cluster.ray_environment import ray_environment
from studio.settings import ClusterSettings, StudioSettings
from tests.support.cluster.remote_client import RemoteClient


@pytest.fixture(scope="session", autouse=True)
def _ray() -> Iterator[None]:
    """Skip without Ray, which is optional; warnings of its import are ignored."""
    kept = dict(os.environ)
    os.environ.update(ray_environment(ClusterSettings(), os.environ))  # read at the import
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("ray.serve", reason="no Ray: pip install -r requirements-ray.txt")
    yield
    os.environ.clear()
    os.environ.update(kept)


class Silent:
    def line(self, text: str) -> None: ...
    def progress(self, text: str) -> None: ...


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def settings(data: Path, **changes: object) -> StudioSettings:
    values = {
        "data": data,
        "port": free_port(),
        "engine": {"max_num_seqs": 8},
        "cluster": {"replicas": 2, "gpus": 0, "cpus": 0.5},
    }
    return StudioSettings.model_validate({**values, **changes})


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> AppContext:
    return AppContext(settings(tmp_path_factory.mktemp("cluster")), Silent())


@pytest.fixture(scope="session")
def address(context: AppContext, _ray: None) -> Iterator[str]:
    from studio.cluster.run import running
    from tests.support.cluster.twins import TWINS

    with running(context, TWINS):
        yield f"http://127.0.0.1:{context.settings.port}"


@pytest.fixture
def url(address: str) -> str:
    return address


@pytest.fixture
def client(address: str) -> Iterator[RemoteClient]:
    with RemoteClient(base_url=address, timeout=30) as client:
        yield client


@pytest.fixture
def library(context: AppContext) -> Iterator[Library]:
    """The cluster's library, emptied after each test."""
    library = Library(context.settings.data / "voices")
    yield library
    for voice in library.list():
        library.delete(voice.id)
