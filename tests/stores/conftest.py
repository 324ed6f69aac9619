"""A folder for many small files, and the end of an InfluxDB that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.stores.influx_server import close_shared


@pytest.fixture(scope="module", autouse=True)
def _end_influx() -> Iterator[None]:
    yield
    close_shared()


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if there is one: killing a process does not lose the system's page cache."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    with TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)
