"""Another process on the same records, forked from one that has loaded everything but Alembic."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from openbell.market.errors import OpenbellError
from openbell.stores.leases import this_process
from openbell.stores.records import leases
from openbell.stores.records import ledger_head_file as heads
from openbell.stores.records.journal import Journal
from openbell.stores.records.postgres import PoolLimits
from openbell.trading.ledger import Head
from tests.stores.records.places import Place, decision

Say = Callable[[object], None]
Job = Callable[..., Coroutine[Any, Any, None]]

_forks = get_context("forkserver")
_forks.set_forkserver_preload([__name__])


class Partner:
    """A process that runs one job after `go`; killed when the block ends."""

    def __init__(self, job: Job, place: Place, *arguments: object) -> None:
        self._pipe, there = _forks.Pipe()
        self._process = _forks.Process(target=_work, args=(there, job, place, *arguments), daemon=True)
        self._process.start()
        there.close()
        assert self.hear() == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.kill()
        self._pipe.close()
        self._process.close()

    def go(self) -> None:
        """Start the job."""
        self._pipe.send("go")

    def hear(self, bound: float = 60.0) -> Any:
        """Its next message. Fails if it exits or takes longer than `bound` seconds."""
        if not self._pipe.poll(bound):
            raise AssertionError(f"nothing in {bound} s")
        try:
            return self._pipe.recv()
        except EOFError as error:
            raise AssertionError("it ended") from error

    def kill(self) -> list[Any]:
        """Kill −9. Returns the messages that were not read yet."""
        self._process.kill()
        self._process.join()
        said = []
        with suppress(EOFError, OSError):
            while True:
                said.append(self._pipe.recv())
        return said

    def resume(self) -> None:
        """Continue it after a stop."""
        assert self._process.pid
        os.kill(self._process.pid, signal.SIGCONT)


def _work(pipe: Connection, job: Job, place: Place, *arguments: object) -> None:
    pipe.send("ready")
    pipe.recv()
    asyncio.run(job(pipe.send, place, *arguments))


async def write(say: Say, place: Place, label: str, times: int) -> None:
    """Write a row so many times, then send `done`."""
    async with place.opened() as records:
        for number in range(times):
            await records.write(lambda journal: journal.put("decision", decision(f"{label}-{number}")))  # noqa: B023
    say("done")


async def forever(say: Say, place: Place, label: str) -> None:
    """Write until killed; send the number of each entry once it is acknowledged."""
    async with place.opened() as records:
        for number in count():
            row = decision(f"{label}-{number}", reasoning="x" * (number % 7) * 999)
            say(await records.write(lambda journal: journal.put("decision", row, new=True)))  # noqa: B023


async def load(say: Say, place: Place) -> None:
    """Open and read; send whether Alembic was imported."""
    async with place.opened() as records:
        await records.read(lambda view: view.connection.exec_driver_sql("SELECT 1"))
    say("alembic" in sys.modules)


async def hold(say: Say, place: Place) -> None:
    """Take the engine's lease for an hour; send its token."""
    async with place.opened() as records:
        taken = await records.write(
            lambda journal: leases.acquire(journal.connection, "engine", this_process("partner"), 3600)
        )
    say(taken.token)
    await asyncio.Event().wait()


async def stall(say: Say, place: Place) -> None:
    """Stop in the middle of a write; once continued, send how it ended."""

    def work(journal: Journal) -> int:
        seq = journal.put("decision", decision("stalled"))
        say("inside")
        os.kill(os.getpid(), signal.SIGSTOP)
        return seq

    async with place.opened(pool=PoolLimits(timeout=0.5)) as records:
        try:
            say(await records.write(work))
        except OpenbellError as error:
            say(type(error).__name__)


MOMENTS = (
    "before it is announced",
    "announced, not yet durable",
    "announced",
    "committed",
    "noted, not yet durable",
    "noted",
)
"""The steps at which a writer may die, in order."""


async def die(say: Say, place: Place, moment: str) -> None:
    """Make one write that is acknowledged, then one in which this process kills itself at a step."""

    def at(name: str) -> None:
        if name == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    async with place.opened() as records:
        say(await records.write(lambda journal: journal.put("decision", decision("before"))))
        head, synchronise = records.head, heads._synchronise
        intend, noting = head.intend, head.note
        doing = ""

        def announced(found: Head, wanted: Head) -> None:
            nonlocal doing
            doing = "announced"
            at("before it is announced")
            intend(found, wanted)
            at("announced")

        def noted(newest: Head) -> None:
            nonlocal doing
            doing = "noted"
            at("committed")
            noting(newest)
            at("noted")

        def synchronised(fd: int) -> None:
            at(f"{doing}, not yet durable")
            synchronise(fd)

        setattr(head, "intend", announced)  # noqa: B010 - a method is replaced
        setattr(head, "note", noted)  # noqa: B010
        setattr(heads, "_synchronise", synchronised)  # noqa: B010
        await records.write(lambda journal: journal.put("decision", decision("killed")))
    say("it lives")


async def note(say: Say, place: Place, first: int, step: int, times: int) -> None:
    """Note heads and check that none is older than the own one, then send `done`."""
    head = place.head
    for seq in range(first, first + step * times, step):
        head.note(Head(seq, f"{seq:064x}"))
        found = head.read()
        assert found
        assert found.seq >= seq
        assert found.hash == f"{found.seq:064x}"
    head.close()
    say("done")
