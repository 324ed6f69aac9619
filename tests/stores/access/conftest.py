"""A SQLite file or a PostgreSQL schema for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stores.access.places import AccessPlace


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> AccessPlace:
    if request.param == "sqlite":
        return AccessPlace(tmp_path / "home")
    return AccessPlace(tmp_path / "home", request.getfixturevalue("database"), "openbell_access")
