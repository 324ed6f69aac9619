"""The records on both databases: one suite."""

from __future__ import annotations

import pytest

from tests.counts import runs
from tests.stores.records.contract import RecordsContract
from tests.stores.records.places import Place


class TestSqlite(RecordsContract):
    @pytest.fixture
    def place(self, on_sqlite: Place) -> Place:
        return on_sqlite


class TestPostgres(RecordsContract):
    kills = runs(4, soak=200)

    @pytest.fixture
    def place(self, on_postgres: Place) -> Place:
        return on_postgres
