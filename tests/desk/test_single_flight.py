"""Single flight: who shares a task, and who is cancelled with it."""

from __future__ import annotations

import asyncio

import pytest

from openbell.desk.bars.single_flight import SingleFlight
from tests.servers.desks import awaited


@awaited
async def test_a_caller_that_comes_while_the_task_of_a_cancelled_one_ends_starts_its_own() -> None:
    flights, hold = SingleFlight(), asyncio.Event()

    async def wait() -> str:
        await hold.wait()
        return "first"

    async def answer() -> str:
        return "second"

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await flights.run("key", wait)
    # The first task is being cancelled: the event loop has not run since.
    assert await flights.run("key", answer) == "second"


@awaited
async def test_a_task_goes_on_while_one_of_its_callers_waits() -> None:
    flights, hold = SingleFlight(), asyncio.Event()

    async def wait() -> str:
        await hold.wait()
        return "first"

    callers = [asyncio.create_task(flights.run("key", wait)) for _ in range(2)]
    await asyncio.sleep(0)
    callers[0].cancel()
    await asyncio.wait([callers[0]])
    hold.set()
    assert await callers[1] == "first"
