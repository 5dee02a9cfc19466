"""A fake engine behind the API: in process for plain requests, on a real port for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from engine import Engine, EngineSettings, Library
from engine.testing import Costs, FakeEngine
from studio.api import create_api
from tests.support.serving import serving


@pytest.fixture
def client(engine: Engine, library: Library) -> Iterator[TestClient]:
    with TestClient(create_api(engine, library)) as client:
        yield client


Serve = Callable[[FastAPI], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Runs an application on a port of its own; returns its address."""
    with ExitStack() as running:
        yield lambda app: running.enter_context(serving(app))


@pytest.fixture
def url(engine: Engine, library: Library, serve: Serve) -> str:
    return serve(create_api(engine, library))


@pytest.fixture
def slow() -> Iterator[FakeEngine]:
    """An engine that takes 10 ms a step."""
    with FakeEngine(costs=Costs(step=0.01), settings=EngineSettings(max_num_seqs=4)) as engine:
        yield engine
