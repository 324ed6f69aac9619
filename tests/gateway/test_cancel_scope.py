"""A block that another task interrupts ends without an error; a cancellation by others is passed on."""

from __future__ import annotations

import asyncio

import pytest

from openbell.gateway.cancel_scope import Interruption


async def waiting(interruption: Interruption, begun: asyncio.Event) -> str:
    with interruption:
        begun.set()
        await asyncio.Event().wait()
    await asyncio.sleep(0)  # the task can go on waiting
    return "went on"


async def started(interruption: Interruption) -> asyncio.Task[str]:
    begun = asyncio.Event()
    task = asyncio.create_task(waiting(interruption, begun))
    await begun.wait()
    return task


def test_an_interrupted_block_ends_and_its_task_goes_on() -> None:
    async def main() -> None:
        interruption = Interruption()
        task = await started(interruption)
        interruption()
        interruption()
        assert await task == "went on"
        assert interruption.happened
        assert task.cancelling() == 0

    asyncio.run(main())


def test_a_cancelled_task_is_cancelled_even_if_it_is_interrupted_too() -> None:
    async def main() -> None:
        for order in ("cancelled", "cancelled, then interrupted", "interrupted, then cancelled"):
            interruption = Interruption()
            task = await started(interruption)
            for each in order.split(", then "):
                if each == "cancelled":
                    task.cancel()
                else:
                    interruption()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not interruption.happened

    asyncio.run(main())


def test_an_interruption_that_comes_too_late_changes_nothing() -> None:
    async def main() -> None:
        interruption = Interruption()
        with interruption:
            await asyncio.sleep(0)
        interruption()
        await asyncio.sleep(0)
        assert not interruption.happened

    asyncio.run(main())


def test_an_error_of_an_interrupted_block_is_raised() -> None:
    async def main() -> None:
        interruption = Interruption()
        asyncio.get_running_loop().call_soon(interruption)
        with pytest.raises(ValueError, match="in the end"), interruption:
            try:
                await asyncio.Event().wait()
            finally:
                raise ValueError("in the end")
        assert not interruption.happened
        await asyncio.sleep(0)

    asyncio.run(main())
