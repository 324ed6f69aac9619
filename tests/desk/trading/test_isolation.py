"""The engine's steps: what fails in one alert, order, symbol or step keeps no other from its turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.alerts.service import Condition
from openbell.desk.desk import Desk
from openbell.desk.events.hub import Hub
from openbell.desk.events.supervision import WorkState
from openbell.desk.orders.engine import Engine
from openbell.market.bars import MINUTE
from openbell.market.errors import StoreError
from openbell.stores.port import Lease
from openbell.trading.alerts import Type
from tests.clocks import HandClock
from tests.desk.trading.test_alert_engine import ME, SOURCE, START, desk_at, flat
from tests.waiting import until

ABOVE = Condition(Type.PRICE_ABOVE, 150.0)


def played(home: Path, work: Callable[[Desk, HandClock], Awaitable[None]]) -> None:
    """Run work on a desk whose two symbols stand at 100."""

    async def main() -> None:
        clock = HandClock(START + 60 * MINUTE)
        desk = desk_at(home, clock)
        desk.store.write([flat("BTC/USD", [100.0] * 60), flat("ETH/USD", [100.0] * 60)], SOURCE)
        try:
            await work(desk, clock)
        finally:
            await desk.close()

    asyncio.run(main())


def rises(desk: Desk, clock: HandClock, *symbols: str) -> None:
    """Let one minute pass in which symbols rise to 200."""
    start = int(clock.epoch())
    desk.store.write([flat(each, [200.0], start) for each in symbols or ("BTC/USD", "ETH/USD")], SOURCE)
    clock.advance(MINUTE)


async def fired(desk: Desk) -> set[str]:
    found, _ = await desk.trading.inbox.look(ME, limit=100)
    return {each.body["alert_id"] for each in found}


async def renamed(desk: Desk, alert_id: str, **changes: object) -> None:
    """Change a stored alert, as an upgrade that renames an indicator or a symbol would leave it behind."""
    alert = next(each for each in await desk.trading.alerts.listing(ME) if each.id == alert_id)
    await desk.trading.records.write(lambda journal: journal.put("alert", replace(alert, **changes)))  # type: ignore[arg-type]


def test_an_alert_that_cannot_be_checked_keeps_no_other_from_firing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(desk: Desk, clock: HandClock) -> None:
        alerts, engine = desk.trading.alerts, desk.trading.engine
        signal = Condition(Type.INDICATOR_SIGNAL, None, "rsi", "rsi_oversold")
        old = await alerts.set(ME, "BTC/USD", "1m", signal)
        gone = await alerts.set(ME, "ETH/USD", "1m", Condition(Type.PRICE_BELOW, 1.0))
        same, other = await alerts.set(ME, "BTC/USD", "1m", ABOVE), await alerts.set(ME, "ETH/USD", "1m", ABOVE)
        await renamed(desk, old.id, indicator="an indicator of last year")
        await renamed(desk, gone.id, symbol="no symbol at all")
        caplog.clear()
        for _ in range(3):
            rises(desk, clock)
            await engine.step(None)
        assert await fired(desk) == {same.id, other.id}
        about = [each.getMessage() for each in caplog.records if old.id in each.getMessage()]
        assert len(about) == 1, "reported once, not each minute"
        late = await alerts.set(ME, "BTC/USD", "1m", ABOVE)
        rises(desk, clock)
        await engine.step(None)
        assert late.id in await fired(desk)
        assert engine.status.through == int(clock.epoch()), "the other steps ran"

    played(tmp_path, work)


def test_bars_that_cannot_be_read_at_once_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(desk: Desk, clock: HandClock) -> None:
        set_ = [await desk.trading.alerts.set(ME, each, "1m", ABOVE) for each in ("BTC/USD", "ETH/USD")]
        await desk.trading.engine.step(None)
        real = desk.store.tail

        def broken(*_given: Any, **_more: Any) -> Any:
            raise RuntimeError("a bug in the bulk read")

        def not_of_eth(series: Any, *given: Any) -> Any:
            if series.instrument.symbol == "ETH/USD":
                raise RuntimeError("a bug with one symbol")
            return real(series, *given)

        with monkeypatch.context() as patched:
            patched.setattr(desk.store.versions, "new_bars", broken)
            patched.setattr(desk.store, "tail", not_of_eth)
            rises(desk, clock)
            await desk.trading.engine.step(None)
            assert await fired(desk) == {set_[0].id}
        await desk.trading.engine.step(None)
        assert await fired(desk) == {each.id for each in set_}

    played(tmp_path, work)


def test_a_firing_that_cannot_be_recorded_keeps_no_other_from_being_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(desk: Desk, clock: HandClock) -> None:
        bad = await desk.trading.alerts.set(ME, "BTC/USD", "1m", ABOVE)
        good = await desk.trading.alerts.set(ME, "BTC/USD", "1m", Condition(Type.PRICE_ABOVE, 160.0))
        deliver = desk.trading.inbox.deliver

        def not_this(journal: Any, alert: Any, *given: Any) -> None:
            if alert.id == bad.id:
                raise OverflowError("a value that no notification can hold")
            deliver(journal, alert, *given)

        with monkeypatch.context() as patched:
            patched.setattr(desk.trading.inbox, "deliver", not_this)
            rises(desk, clock)
            await desk.trading.engine.step(None)
            assert await fired(desk) == {good.id}
            assert any(bad.id in each for each in desk.trading.failing.faults())
        await desk.trading.engine.step(None)
        assert await fired(desk) == {bad.id, good.id}
        assert not list(desk.trading.failing.faults())

    played(tmp_path, work)


def test_a_step_that_fails_keeps_no_other_from_running(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(desk: Desk, clock: HandClock) -> None:
        ran, fails = [0], [True]

        async def bad(_lease: Lease | None, _until: int) -> int:
            if fails[0]:
                raise ZeroDivisionError
            return 1

        async def good(_lease: Lease | None, _until: int) -> int:
            ran[0] += 1
            return 1

        engine = Engine(desk.trading.records, clock, lambda: 60, {"bad": bad, "good": good}, Hub())
        caplog.set_level(logging.INFO)
        assert [await engine.step(None) for _ in range(3)] == [1, 1, 1]
        assert (ran[0], engine.status.through) == (3, 0)
        assert sum("the engine's step for bad fails" in each.getMessage() for each in caplog.records) == 1
        assert list(engine.status.failing.faults()) != []
        fails[0] = False
        assert await engine.step(None) == 2
        assert engine.status.through == 60
        assert "the engine's step for bad works again" in caplog.text

    played(tmp_path, work)


def test_bars_that_cannot_be_read_do_not_cost_the_engine_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database of bars that is away is not shown as one of the records, which work."""

    async def work(desk: Desk, clock: HandClock) -> None:
        await desk.trading.alerts.set(ME, "BTC/USD", "1m", ABOVE)
        await desk.trading.engine.step(None)
        tried = 0

        def away(*_given: Any, **_more: Any) -> Any:
            nonlocal tried
            tried += 1
            raise StoreError("the database of bars cannot be reached")

        for name in ("tail", "read", "resampled"):
            monkeypatch.setattr(desk.store, name, away)
        for name in ("new_bars", "of", "changed"):
            monkeypatch.setattr(desk.store.versions, name, away)
        desk.trading.start()
        engine = desk.trading.engine
        await until(lambda: engine.status.state is WorkState.WORKING, "the lease")
        clock.advance(MINUTE)
        await until(lambda: tried > 3, "the attempts")
        assert engine.status.state is WorkState.WORKING

        monkeypatch.undo()
        rises(desk, clock)
        await until(lambda: engine.status.through == int(clock.epoch()), "the next step")
        assert await fired(desk) != set()

    played(tmp_path, work)
