"""What the suites of bar stores share: a test module defines `open_store`, the tests get the opened store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from openbell.stores.port import BarStore


class StoreSuite:
    """The fixtures of a suite that every bar store must pass."""

    def open_store(self, folder: Path) -> BarStore:
        """Open the store of a folder; it is created the first time."""
        raise NotImplementedError

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "data"

    @pytest.fixture
    def store(self, folder: Path) -> Iterator[BarStore]:
        with closing(self.open_store(folder)) as store:
            yield store
