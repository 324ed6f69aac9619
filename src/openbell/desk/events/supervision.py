"""Supervises background work: everything that runs beside the calls of a process, such as the collector and the engine.

Each piece of work is a coroutine function with a name and a status. The status is a `WorkState`, which health, `openbell
doctor` and the live view show, and a text for people. Work that ends with an unexpected exception is logged with its trace,
shown as failed, and started again after a pause that doubles up to a minute. It never ends in silence, and never ends other
work.

Inside a piece of work, `FailingUnits` keeps the units (an alert, an order, a symbol, a strategy) that fail while the
others go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextvars import Context
from dataclasses import dataclass, field
from enum import StrEnum

from openbell.market.errors import OpenbellError
from openbell.stores.threads import own_context

log = logging.getLogger(__name__)

FIRST_PAUSE = 1.0
"""Seconds before work starts again after its first failure; each further one doubles them."""
_DOUBLINGS = 64
"""The pause doubles no further: after a night of failures the power would be too large for a float."""
LONGEST_PAUSE = 60.0
"""The longest pause in seconds. Work that ran for so long before it failed has a first failure again."""


class WorkState(StrEnum):
    """What background work does now."""

    STARTING = "starting"
    """It prepares its work."""
    WORKING = "working"
    IDLE = "idle"
    """There is nothing to do."""
    STANDING_BY = "standing by"
    """Another process does the work."""
    WAITING = "waiting"
    """Something that it needs fails; it tries again."""
    FAILED = "failed"
    """It has raised an unexpected exception, and starts again after a pause."""
    OFF = "off"
    """This process does not do the work."""


_FAILING = frozenset({WorkState.WAITING, WorkState.FAILED})


@dataclass(slots=True)
class WorkStatus:
    """The state of a piece of work, for displays."""

    state: WorkState = WorkState.STARTING
    detail: str = ""
    """The state in words; empty if the name of the state says all."""

    @property
    def fails(self) -> bool:
        """True if the work cannot be done now."""
        return self.state in _FAILING

    def become(self, state: WorkState, detail: str = "") -> None:
        """Set the state and its text together."""
        self.state, self.detail = state, detail

    def __str__(self) -> str:
        return self.detail or str(self.state)


class Supervisor:
    """Runs the background work of a process."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[None], tuple[str, WorkStatus]] = {}

    def background(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        status: WorkStatus | None = None,
        *,
        fatal: tuple[type[Exception], ...] = (),
        context: Context | None = None,
    ) -> asyncio.Task[None]:
        """Run `work` until it returns or the task is cancelled; returns the task.

        `work` sets a `status` that is passed; otherwise it counts as working while it runs. Errors in `fatal` are not
        retried: they end the task, whose owner must await it. The task serves the whole desk, unless `context` is passed.
        """
        shown = WorkStatus() if status is None else status
        task = asyncio.create_task(
            self._run(name, work, shown, fatal, sets_status=status is not None),
            name=name,
            context=context or own_context(),
        )
        self._running[task] = name, shown
        task.add_done_callback(self._running.pop)
        return task

    def statuses(self) -> dict[str, WorkStatus]:
        """Returns the status of running work by name; of several tasks with one name that of one that fails, if any does."""
        found: dict[str, WorkStatus] = {}
        for name, status in self._running.values():
            if name not in found or status.fails:
                found[name] = status
        return found

    async def close(self) -> None:
        """End all work."""
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        status: WorkStatus,
        fatal: tuple[type[Exception], ...],
        *,
        sets_status: bool,
    ) -> None:
        failures = 0
        loop = asyncio.get_running_loop()
        while True:
            status.become(WorkState.STARTING if sets_status else WorkState.WORKING)
            began = loop.time()
            try:
                await work()
            except fatal:
                raise
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                failures = 0 if loop.time() - began >= LONGEST_PAUSE else failures
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, _DOUBLINGS))
                # The message of an unknown exception may contain a secret: only the log has it.
                again = f"failed with {type(error).__name__}; starts again after {pause:g} s; the log has the trace"
                log.exception("%s %s", name, again)
                status.become(WorkState.FAILED, again)
            else:
                return
            failures += 1
            await asyncio.sleep(pause)


def _is_cancelled() -> bool:
    """Returns True if the running task was cancelled, and not only something that it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def first_failure(*tasks: asyncio.Task[None]) -> None:
    """Wait until one of some tasks fails, and raise its error; a task that returns does not end the others."""
    ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in ended:
        await task


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a unit fails."""

    error: type[BaseException]
    text: str


@dataclass(slots=True)
class FailingUnits:
    """The units of some work that fail now, by kind and name.

    A unit is logged when it begins to fail, when it fails with another kind of error, and when it works again: not each
    time that it is tried.
    """

    _failing: dict[tuple[str, str], _Failure] = field(default_factory=dict)

    def failed(self, kind: str, name: str, error: BaseException) -> None:
        """Note that a unit fails."""
        known, unit = self._failing.get((kind, name)), f"{kind} {name}".strip()
        expected = isinstance(error, OpenbellError)
        text = f"{error}" if expected else f"{type(error).__name__}; the log has the trace"
        self._failing[kind, name] = _Failure(type(error), f"{unit} fails: {text}")
        if known is not None and known.error is type(error):
            return
        if expected:
            log.warning("%s waits: %s", unit, error)
        else:
            log.error("%s fails; the others go on", unit, exc_info=error)

    def works(self, kind: str, name: str) -> None:
        """Note that a unit has done its work."""
        if self._failing.pop((kind, name), None) is not None:
            log.info("%s %s works again", kind, name)

    def keep(self, kind: str, names: Collection[str]) -> None:
        """Forget the units of a kind that no longer exist; `names` are those that do."""
        for unit in [unit for unit in self._failing if unit[0] == kind and unit[1] not in names]:
            del self._failing[unit]

    def faults(self) -> Iterator[str]:
        """Yields what is wrong with units that fail with an unexpected exception."""
        return (each.text for each in self._failing.values() if not issubclass(each.error, OpenbellError))
