"""Backtests on bars of a desk: in this process or at a service, with the same answers, and without blocking."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openbell.backtest.errors import BacktestTimeout
from openbell.backtest.jobs import BacktestJob
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Progress
from openbell.desk.desk import Desk
from openbell.desk.research.backtester import GrpcBacktester, LocalBacktester, make_backtester
from openbell.desk.settings import load
from openbell.market.errors import InvalidParameter, SettingsError
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.strategies import evaluation
from openbell.strategies.compiled import compiled
from openbell.strategies.library import canonical
from tests.backtest.sample_jobs import image, jobs
from tests.client import run
from tests.gateway.services import Service, free_port, long_job
from tests.waiting import until

AT = "2026-03-02T15:00:00Z"
STRATEGY = compiled(canonical()["MACD_CROSSOVER"])
COMBINATIONS = [{"fastPeriod": fast} for fast in (6, 12)]


class Endless:
    """A job without an end, that shows whether it runs."""

    def __init__(self) -> None:
        self.steps = 0
        self.ended = threading.Event()

    def run(self, progress: Progress | None = None) -> None:
        try:
            while True:
                self.steps += 1
                if progress:
                    progress(self.steps, 10**9)
        finally:
            self.ended.set()


# In this process


def test_the_settings_choose_the_backtester(tmp_path: Path) -> None:
    home = {"OPENBELL_HOME": str(tmp_path)}
    assert isinstance(make_backtester(load(home)), LocalBacktester)
    assert isinstance(make_backtester(load({**home, "OPENBELL_BACKTESTER": "host:50051"})), GrpcBacktester)
    for wrong in (
        {"BACKTESTER": "host"},
        {"BACKTESTER": "http://host:1"},
        {"BACKTESTER_TLS_CERT": "a", "BACKTESTER_TLS_CA": "b"},
        {"BACKTESTER_TLS_CERT": "a", "BACKTESTER_TLS_KEY": "b"},
        {"POOL_BACKTESTER_CONNECTIONS": "0"},
        {"POOL_BACKTESTER_KEEPALIVE": "0.5"},
    ):
        with pytest.raises(SettingsError):
            load({**home, **{f"OPENBELL_{name}": value for name, value in wrong.items()}})


def test_a_job_in_this_process_is_that_job_and_reports_progress_in_the_event_loop() -> None:
    async def main() -> None:
        backtester, seen = LocalBacktester(0), []
        for job in jobs().values():
            assert image(await backtester.run(job)) == image(job.run())
        job, here = jobs()["walk-forward"], threading.get_ident()
        await backtester.run(job, lambda *each: seen.append((*each, threading.get_ident())))
        await asyncio.sleep(0)
        assert [done for done, _, _ in seen] == list(range(1, 30))
        assert {thread for _, _, thread in seen} == {here}
        await backtester.close()

    asyncio.run(main())


def test_a_job_in_this_process_stops_when_its_caller_is_cancelled_or_too_slow_or_the_desk_closes() -> None:
    async def main() -> None:
        backtester, job = LocalBacktester(0), Endless()
        task = asyncio.create_task(backtester.run(job))
        await until(lambda: job.steps > 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(job.ended.is_set, "the job to end")

        limited, slow = LocalBacktester(0.2), Endless()
        with pytest.raises(BacktestTimeout, match=r"longer than 0\.2 s"):
            await limited.run(slow)
        await until(slow.ended.is_set, "the job to end")

        last = Endless()
        task = asyncio.create_task(backtester.run(last))
        await until(lambda: last.steps > 0)
        await backtester.close()
        await until(last.ended.is_set, "the job to end")
        await asyncio.wait([task])
        assert task.exception() is not None

    asyncio.run(main())


def test_a_backtest_that_took_too_long_computes_no_further_indicator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would keep one of the two threads until its end."""
    computed, whole, released = [0], evaluation._computed, threading.Event()

    def slowly(*given: Any) -> Any:
        computed[0] += 1
        assert released.wait(60)
        return whole(*given)

    async def main() -> None:
        backtester, given = LocalBacktester(0.05), jobs()["backtest"]
        assert isinstance(given, BacktestJob)
        job = replace(given, strategy=compiled(canonical()["SMA_RSI"]))
        assert len(job.strategy.steps) > 1
        monkeypatch.setattr(evaluation, "_computed", slowly)
        with pytest.raises(BacktestTimeout):
            await backtester.run(job)
        released.set()
        await backtester._threads.close()
        assert computed[0] == 1

    asyncio.run(main())


def test_a_timeout_inside_of_a_job_is_not_reported_as_that_of_backtests() -> None:
    class TimesOut:
        def run(self, _progress: Progress | None = None) -> None:
            raise TimeoutError("a socket")

    async def main() -> None:
        backtester = LocalBacktester(60)
        with pytest.raises(TimeoutError, match="a socket"):
            await backtester.run(TimesOut())
        await backtester.close()

    asyncio.run(main())


def test_a_job_in_this_process_does_not_block_the_event_loop() -> None:
    async def main() -> float:
        backtester, longest, last = LocalBacktester(0), 0.0, time.monotonic()
        task = asyncio.create_task(backtester.run(long_job(20)))
        while not task.done():
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        await backtester.close()
        return longest

    assert asyncio.run(main()) < 1.0


# On bars of a desk


def answers(settings: Any) -> list[Any]:
    """What a desk answers: a backtest, a walk-forward test, simulations and errors."""

    async def main() -> list[Any]:
        async with Desk(settings) as desk:
            series, setup = Series(await desk.bars.find("BTC/USD"), Timeframe.D1), Setup()
            found = await desk.backtests.run(STRATEGY, series, setup)
            walked = await desk.backtests.walk_forward(STRATEGY.spec, series, COMBINATIONS, setup)
            drawn = await desk.backtests.monte_carlo(found, setup.cash, seed=7)
            other = Series(await desk.bars.find("AAPL"), Timeframe.D1)
            account = await desk.backtests.portfolio([(STRATEGY, series, 0.5), (STRATEGY, other, 0.3)], setup)
            errors = []
            for start in (desk.bars.closed_until(), desk.bars.closed_until() - 10 * 86400):
                with pytest.raises(InvalidParameter) as caught:
                    await desk.backtests.walk_forward(STRATEGY.spec, series, COMBINATIONS, setup, start)
                errors.append(caught.value.message)
            return [found, walked, drawn, account, errors]

    return asyncio.run(main())


def test_a_desk_answers_the_same_with_a_service_and_without(tmp_path: Path) -> None:
    home = tmp_path / "home"
    alone = answers(load({"OPENBELL_HOME": str(home)}, as_of=AT))
    found, walked, drawn, account, errors = alone
    assert len(found.bars) == 1250
    assert [len(each.train) for each in walked.windows] == [552] * 5, "four fifths of each window"
    assert [len(each.test) for each in walked.windows] == [138] * 5
    assert walked.out_of_sample.bars.time[-1] == found.bars.time[-1]
    assert drawn.trades == found.metrics.trades
    coin, stock = (each.bars for each in account.parts)
    assert len(coin) == 1250
    assert 0 < stock.time[0] - coin.time[0] < 5 * 86400, "both begin at the same time, stocks at the next session"
    assert account.metrics.trades == sum(each.metrics.trades for each in account.parts)
    assert account.parts[0].run.equity.tolist() == pytest.approx((found.run.equity / 2).tolist())
    assert errors == ["the start must be before the end", "9 bars are too few for 5 windows"]
    with Service(home, workers=1) as service:
        assert image(answers(service.settings(as_of=AT))) == image(alone)


def test_the_command_uses_the_service(tmp_path: Path) -> None:
    home = tmp_path / "home"
    words = ("backtest", "MACD_CROSSOVER", "BTC/USD", "--from", "2024", "--trades", "--as-of", AT)
    alone = run(home, *words)
    assert (alone.returncode, alone.stderr) == (0, "")
    with Service(home, workers=1) as service:
        there = run(home, *words, BACKTESTER=service.address)
        checked = run(home, "doctor", BACKTESTER=service.address)
    assert (there.returncode, there.stderr) == (0, "")
    assert there.stdout.splitlines()[0] == f"{alone.stdout.splitlines()[0]}, computed remotely"
    assert there.stdout.splitlines()[1:] == alone.stdout.splitlines()[1:]
    assert f"the backtester at {service.address} computes" in checked.stdout
    checked = run(home, "doctor", BACKTESTER=service.address, POOL_BACKTESTER_CONNECT="0.3")
    assert checked.returncode == 1
    port = service.address.rpartition(":")[2]
    assert f"→ openbell backtester --port {port}, or unset OPENBELL_BACKTESTER" in checked.stdout
    port = free_port()
    gone = run(home, *words, BACKTESTER=f"127.0.0.1:{port}", POOL_BACKTESTER_CONNECT="0.3")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr.startswith("openbell: cannot connect to the backtester at 127.0.0.1:")
    assert gone.stderr.endswith(f": start it with openbell backtester --port {port}\n")
    assert len(gone.stderr.splitlines()) == 1
