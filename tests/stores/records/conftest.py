"""A SQLite file or a PostgreSQL schema for every test; one server for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.stores.records.places import Place
from tests.stores.records.postgres_server import NotHere, PostgresServer

_numbers = count()


@pytest.fixture(scope="session")
def _server() -> Iterator[PostgresServer | str]:
    try:
        server = PostgresServer()
    except NotHere as error:
        yield str(error)
        return
    yield server
    server.close()


@pytest.fixture
def server(_server: PostgresServer | str) -> PostgresServer:
    if isinstance(_server, str):
        pytest.skip(f"NOT TESTED: {_server}")
    return _server


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Place:
    return Place(tmp_path / "home")


@pytest.fixture
def on_postgres(tmp_path: Path, server: PostgresServer) -> Place:
    return Place(tmp_path / "home", server.url, f"test {next(_numbers)}")


@pytest.fixture(params=["on_sqlite", "on_postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Place)
    return found
