"""A folder for many small files."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if there is one: killing a process does not lose the system's page cache."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    with TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)
