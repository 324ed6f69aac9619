"""A folder for the files of each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.desk.importing.files import Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for tests that write many files, one after the other."""
    return tmp_path_factory.mktemp("files")
