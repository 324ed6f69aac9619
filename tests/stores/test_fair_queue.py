"""The queue of each principal: the order of service, the places that one may take, and callers that give up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from openbell.stores.threads import CALLER, FairQueue, Threads
from tests.waiting import until


class Gate:
    """Work that notes when it begins, and ends when it is let go."""

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue
        self.begun: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}

    def ask(self, name: str) -> asyncio.Task[str]:
        """Queue work of the principal that the name begins with."""
        self._gates[name] = asyncio.Event()

        async def work() -> str:
            self.begun.append(name)
            await self._gates[name].wait()
            return name

        return asyncio.create_task(self._queue.run(name[0], work))

    async def end(self, name: str) -> None:
        """End work, and let whoever is next begin."""
        self._gates[name].set()
        await settled()


async def settled() -> None:
    """Let every task run as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await work()

    asyncio.run(main())


def test_principals_are_served_in_turn_however_much_one_of_them_has_queued() -> None:
    async def work() -> None:
        gate = Gate(FairQueue(1, 1))
        tasks = [gate.ask(f"a{number}") for number in range(1, 6)]
        await settled()
        tasks += [gate.ask(name) for name in ("b1", "b2", "c1")]
        await settled()
        order = ["a1", "a2", "b1", "c1", "a3", "b2", "a4", "a5"]
        for name in order:
            assert gate.begun[-1] == name
            await gate.end(name)
        assert gate.begun == order
        assert [await each for each in tasks] == ["a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1"]

    run(work)


def test_attack_a_flood_of_one_principal_leaves_a_place_for_another() -> None:
    async def work() -> None:
        gate = Gate(FairQueue(3, 2))
        flood = [gate.ask(f"a{number}") for number in range(200)]
        await settled()
        assert gate.begun == ["a0", "a1"], "two of three places"
        other = gate.ask("b0")
        await settled()
        assert gate.begun == ["a0", "a1", "b0"], "it waits for nobody"
        for each in flood:
            each.cancel()
        await gate.end("b0")
        assert await other == "b0"

    run(work)


def test_each_principal_takes_one_place_fewer_while_several_ask() -> None:
    async def work() -> None:
        gate = Gate(FairQueue(4, 2))
        for name in ("a1", "a2", "b1", "b2"):
            gate.ask(name)
        await settled()
        assert gate.begun == ["a1", "a2", "b1"], "the second place of a was taken before"
        for name in ("a3", "a4"):
            gate.ask(name)
        await gate.end("a1")
        assert gate.begun == ["a1", "a2", "b1"]
        await gate.end("a2")
        assert gate.begun == ["a1", "a2", "b1", "a3"]
        await gate.end("b1")
        assert gate.begun[4:] == ["b2"]

    run(work)


def test_the_desks_own_work_waits_as_that_of_any_principal() -> None:
    async def work() -> None:
        queue, done = FairQueue(1, 1), list[int]()

        async def note(number: int) -> None:
            done.append(number)

        await asyncio.gather(*(queue.run("", lambda number=number: note(number)) for number in range(3)))  # type: ignore[misc]
        assert done == [0, 1, 2]

    run(work)


def test_a_caller_that_gives_up_while_it_waits_leaves_the_queue() -> None:
    async def work() -> None:
        gate = Gate(FairQueue(1, 1))
        gate.ask("a1")
        await settled()
        waiting, after = gate.ask("a2"), gate.ask("a3")
        await settled()
        waiting.cancel()
        await gate.end("a1")
        assert gate.begun == ["a1", "a3"]
        await gate.end("a3")
        assert await after == "a3"

    run(work)


def test_a_caller_that_gives_up_keeps_its_place_until_its_work_has_ended() -> None:
    async def work() -> None:
        gate = Gate(FairQueue(1, 1))
        first = gate.ask("a1")
        await settled()
        second = gate.ask("b1")
        first.cancel()
        await settled()
        assert gate.begun == ["a1"], "the thread of the first one still runs"
        await gate.end("a1")
        assert gate.begun == ["a1", "b1"]
        await gate.end("b1")
        assert await second == "b1"

    run(work)


def test_a_place_is_free_again_after_work_that_fails() -> None:
    async def fails() -> None:
        raise ValueError("wrong")

    async def work() -> None:
        queue = FairQueue(1, 1)
        for _ in range(3):
            with pytest.raises(ValueError, match="wrong"):
                await queue.run("a", fails)
        async with queue.place("a"):
            pass
        await queue.drained()

    run(work)


def test_threads_serve_the_callers_of_their_tasks_in_turn_and_finish_all_calls_before_they_close() -> None:
    gate, order = threading.Event(), list[str]()

    def call(name: str) -> None:
        gate.wait(30)
        order.append(name)

    async def work() -> None:
        threads = Threads("test", 1, 1)

        async def ask(name: str) -> None:
            CALLER.set(name[0])
            await threads.run(call, name)

        tasks = [asyncio.create_task(ask(name)) for name in ("a1", "a2", "a3", "b1")]
        await settled()
        closing = asyncio.create_task(threads.close())
        gate.set()
        await closing
        await until(lambda: all(each.done() for each in tasks), "the calls")
        assert order == ["a1", "a2", "b1", "a3"]

    run(work)
