"""The process for long calculations: results, errors, and its end in every way in which this one can end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from math import factorial
from pathlib import Path

import psutil
import pytest

from openbell.desk.research.workers import WorkerDied, Workers
from tests.waiting import until, wait_for

PARENT = """
import asyncio, time
from openbell.desk.research.workers import Workers

async def main():
    workers = Workers()
    try:
        await workers.run(abs, -1)
        print("ready", flush=True)
        await workers.run(time.sleep, 600)
    finally:
        workers.close()

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_calls_return_results_and_raise_errors() -> None:
    async def work() -> None:
        workers = Workers()
        try:
            assert await workers.run(factorial, 20) == factorial(20)
            assert await workers.run(os.getpid) != os.getpid()
            with pytest.raises(ValueError, match="factorial"):
                await workers.run(factorial, -1)
        finally:
            workers.close()

    asyncio.run(work())


def test_a_process_that_was_killed_is_replaced() -> None:
    async def work() -> None:
        workers = Workers()
        try:
            first = await workers.run(os.getpid)
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: not _alive(first))
            assert await workers.run(os.getpid) != first
        finally:
            workers.close()

    asyncio.run(work())


def test_a_process_that_was_killed_while_it_was_idle_is_replaced_also_when_prepared() -> None:
    async def work() -> None:
        workers = Workers()
        try:
            first = await workers.run(os.getpid)
            os.kill(first, signal.SIGKILL)
            # The pool knows it a moment later than the system.
            await until(lambda: bool(workers._started[0]._broken), "the pool")
            workers.prepare("json")
            assert await workers.run(os.getpid) != first
        finally:
            workers.close()

    asyncio.run(work())


def test_calls_that_lose_their_process_together_share_the_next_one() -> None:
    async def work() -> None:
        workers = Workers()
        try:
            first = await workers.run(os.getpid)
            others = {each.pid for each in psutil.Process().children()} - {first}
            calls = [asyncio.ensure_future(workers.run(time.sleep, 0.5)) for _ in range(3)]
            await asyncio.sleep(0)
            os.kill(first, signal.SIGKILL)
            assert await asyncio.gather(*calls) == [None, None, None]
            second = await workers.run(os.getpid)
            alive = {each.pid for each in psutil.Process().children() if _alive(each.pid)}
            assert alive - others == {second}
        finally:
            workers.close()

    asyncio.run(work())


def test_work_that_kills_its_process_each_time_is_given_up_and_the_next_call_is_computed() -> None:
    async def work() -> None:
        workers = Workers()
        try:
            with pytest.raises(WorkerDied, match="killed twice"):
                await workers.run(os._exit, 9)
            assert await workers.run(abs, -1) == 1
        finally:
            workers.close()

    asyncio.run(work())


def test_closing_does_not_wait_for_the_work() -> None:
    async def work() -> int:
        workers = Workers(background=True)
        pid = await workers.run(os.getpid)
        assert psutil.Process(pid).nice() == psutil.Process().nice() + 10
        task = asyncio.ensure_future(workers.run(time.sleep, 600))
        await asyncio.sleep(0)
        workers.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return pid

    pid = asyncio.run(work())
    wait_for(lambda: not _alive(pid))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_process_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "parent.py"
    path.write_text(PARENT, encoding="utf-8")
    command, nothing = [sys.executable, str(path)], subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=nothing) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        children = psutil.Process(parent.pid).children(recursive=True)
        assert children
        os.kill(parent.pid, number)
        wait_for(lambda: not any(_alive(each.pid) for each in children))
        parent.kill()


def _alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
