"""What tests of several rooms share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# jsonschema loads it for IRIs alone, which no schema here has: it compiles grammars for a second in every process.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# Before any test imports them: their assertions explain themselves like those of a test module.
pytest.register_assert_rewrite(
    "tests.stores.contract",
    "tests.stores.native_contract",
    "tests.stores.samples",
    "tests.stores.model",
    "tests.stores.records.contract",
)

from tests import measured  # noqa: E402

# The lines of a module run when it is first imported: nothing of the package may be imported earlier.
measured.begin()

from openbell.cli.process_memory import collector_paused  # noqa: E402
from tests.searches import bars_unseen, search_few_bars, search_only  # noqa: E402
from tests.servers.desks import fresh_database  # noqa: E402
from tests.stores.influx_server import InfluxServer, own_server  # noqa: E402
from tests.stores.records.postgres_server import NotHere, PostgresServer  # noqa: E402

pytest_plugins = ["tests.failed_tests", "tests.markers"]

_MEMORY = Path("/dev/shm")
_ENOUGH = 4 * 2**30
"""Bytes that must be free there; the tests use a part of this at any time."""
_DISK = "TESTS_DISK"
"""The variable with the folder for temporary files that is not in memory, if others are; processes of tests inherit it."""
_LONG = (
    "operations/outages/test_outages.py",
    "gateway/clients/test_clients.py",
    "operations/test_day.py",
    "servers/test_nothing_later.py",
    "operations/test_guide.py",
    "test_makefile.py",
    "feeds/test_first_questions.py",
    "cli/test_killed_commands.py",
    "cli/test_backup.py",
    "gateway/conformance/test_conformance.py",
    "gateway/test_backtester.py",
    "test_bench.py",
)
"""Modules that take longest, or wait longest in one test. A process that began one of them last would end alone."""

# How long an example takes depends on what else the machine does.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


def _default_signals() -> None:
    """Stop ignoring what a background shell or nohup ignores: processes of tests inherit it, and some are told to end so."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure() -> None:
    """Puts temporary files into memory if there is enough: killing a process does not lose the system's page cache."""
    _default_signals()
    if "TMPDIR" in os.environ or not _MEMORY.is_dir() or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return
    if shutil.disk_usage(_MEMORY).free >= _ENOUGH:
        os.environ[_DISK] = tempfile.gettempdir()
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None  # read again from the environment


def pytest_unconfigure() -> None:
    """Writes what this process has measured, if it has."""
    measured.write()


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A temporary folder on a disk: writing a file takes long enough there to kill the process meanwhile."""
    with tempfile.TemporaryDirectory(dir=os.environ.get(_DISK)) as folder:
        yield Path(folder)


@pytest.fixture
def quick_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches two strategies in this process: for tests of what a search writes, not of what it finds."""
    search_only(monkeypatch, "MACD_CROSSOVER", "SMA_RSI")


@pytest.fixture
def unseen_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars from before a submission count as evidence for it."""
    bars_unseen(monkeypatch)


@pytest.fixture
def short_search(quick_search: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches with few bars too."""
    search_few_bars(monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    """Collects the tests without garbage collections. Later ones are rarer than by default and do not scan the tests."""
    gc.set_threshold(20_000, 20, 20)
    with collector_paused():
        _compile_part(session.config)
        return (yield)


def _compile_part(config: pytest.Config) -> None:
    """Import some of the tests first, if several processes collect all of them: each compiles another part.

    In a new checkout they would otherwise all compile all tests at the same time, 14 s of the processor each.
    """
    given: dict[str, Any] = getattr(config, "workerinput", {})
    if not given or config.args != config.getini("testpaths"):
        return
    tests = Path(__file__).parent
    number, processes = int(given["workerid"].removeprefix("gw")), given["workercount"]
    for module in sorted(tests.rglob("test_*.py"))[number::processes]:
        with suppress(Exception):  # collecting it will report the error
            import_module(".".join(module.relative_to(tests.parent).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the long modules first: in each part of the list, if several processes get an equal part each."""
    tests = Path(__file__).parent
    modules: dict[Path, list[pytest.Item]] = {tests / name: [] for name in _LONG}
    others: list[pytest.Item] = []
    for item in items:
        modules.get(item.path, others).append(item)
    processes: int = getattr(config, "workerinput", {}).get("workercount", 1)
    size = len(items) // processes
    first = [[item for module in list(modules.values())[at::processes] for item in module] for at in range(processes)]
    rest = iter(others)
    items[:] = [item for long in first for item in (*long, *islice(rest, max(0, size - len(long))))]
    items.extend(rest)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL, one for each process that runs tests; each test makes a database of its own on it."""
    try:
        made = PostgresServer()
    except NotHere as missing:
        pytest.skip(f"NOT TESTED: {missing}")
    yield made
    made.close()


@pytest.fixture(scope="module")
def influx() -> Iterator[InfluxServer]:
    """A real InfluxDB for the tests of a module."""
    with own_server() as made:
        yield made


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The address of a new, empty database."""
    return fresh_database(postgres)
