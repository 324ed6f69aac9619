"""A receiver on loopback, and both places of records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.receivers import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of the records' place."""
    return {"DATABASE_URL": request.getfixturevalue("database")} if request.param == "postgresql" else {}
