"""Clocks that are fixed, earlier than others or ahead of their feed: no order and no alert misses a bar."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from openbell.desk.alerts.alert_engine import AlertEngine
from openbell.desk.alerts.inbox import Inbox
from openbell.desk.alerts.service import AlertService, Condition
from openbell.desk.bars.service import BarService
from openbell.desk.desk import Desk
from openbell.desk.events.hub import Hub
from openbell.desk.orders.prices import Prices, TradedMinutes
from openbell.desk.pictures.indicators import IndicatorService
from openbell.desk.settings import Settings, load
from openbell.desk.settings.principals import Quota
from openbell.desk.trading_desk import TradingDesk
from openbell.market.bars import MINUTE, make
from openbell.market.clock import iso
from openbell.market.errors import Refused, SettingsError
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.records.records import Records
from openbell.stores.records.sqlite import SqliteDatabase
from openbell.trading.alerts import Type
from openbell.trading.orders import Order, OrderKind, OrderState, Side
from openbell.trading.request import request
from tests.clocks import HandClock
from tests.desk.scripted import BTC, ScriptedFeed

T = TypeVar("T")
ME = "local"
START = 1_758_240_000
PRICES = 100.0 + np.arange(120)


def at_minute(home: Path, minute: float, work: Callable[[TradingDesk], Awaitable[T]]) -> T:
    """Run work on a desk whose clock is fixed at a minute; the price of minute n is 100 + n."""

    async def inside() -> T:
        moment = iso(START + minute * MINUTE)
        names = {"HOME": str(home), "FEED": "none", "AS_OF": moment, "TRADE": "1", "PAPER_SLIPPAGE": "0"}
        desk = Desk(load({f"OPENBELL_{name}": value for name, value in names.items()}))
        times = START + MINUTE * np.arange(len(PRICES))
        bars = make(BTC, Timeframe.M1, times, PRICES, PRICES + 0.5, PRICES - 0.5, PRICES, np.full(len(PRICES), 1000.0))
        desk.store.write([bars], Source(Origin.IMPORTED, "x"))
        try:
            return await work(desk.trading)
        finally:
            await desk.trading.close()

    return asyncio.run(inside())


def buy(key: str) -> Callable[[TradingDesk], Awaitable[Order]]:
    asked = request(parse("BTC/USD"), Side.BUY, OrderKind.MARKET, "1", client_order_id=key)
    return lambda trading: trading.orders.place(ME, asked)


async def looked_at(trading: TradingDesk) -> dict[str | None, Order]:
    await trading.catch_up()
    return {order.client_order_id: order for order in (await trading.orders.listing(ME, open_only=False, limit=9))[0]}


def test_an_account_is_not_written_by_an_earlier_clock(tmp_path: Path) -> None:
    """With an earlier clock later positions would be missing, and the risk gate would count too little."""
    at_minute(tmp_path, 50, buy("late"))
    with pytest.raises(Refused, match="has gone on to"):
        at_minute(tmp_path, 20, buy("early"))
    assert at_minute(tmp_path, 50, buy("late")).client_order_id == "late"
    at_minute(tmp_path, 60, looked_at)
    with pytest.raises(Refused, match="has gone on to"):
        at_minute(tmp_path, 50.5, buy("between"))
    assert at_minute(tmp_path, 60, looked_at)["late"].average_price == 150
    with pytest.raises(SettingsError, match="later than this machine's time"):
        at_minute(tmp_path, 60 * 24 * 365 * 40, buy("future"))


def test_a_later_clock_fills_from_the_bars_between(tmp_path: Path) -> None:
    at_minute(tmp_path, 20, buy("one"))
    found = at_minute(tmp_path, 60, looked_at)["one"]
    assert found.state is OrderState.FILLED
    assert found.average_price == 120


def test_an_earlier_clock_sees_what_was_known_then(tmp_path: Path) -> None:
    at_minute(tmp_path, 30.5, buy("one"))
    at_minute(tmp_path, 60, looked_at)
    assert at_minute(tmp_path, 30, looked_at) == {}
    assert at_minute(tmp_path, 31, looked_at)["one"].state is OrderState.OPEN
    assert at_minute(tmp_path, 32, looked_at)["one"].state is OrderState.FILLED
    assert at_minute(tmp_path, 31, lambda it: it.portfolio.holdings(ME)) == []
    assert len(at_minute(tmp_path, 32, lambda it: it.portfolio.holdings(ME))) == 1


async def nothing_due() -> None:
    """Of the present: nothing is done before something is written."""


def test_an_alert_misses_nothing_while_the_feed_is_silent(tmp_path: Path) -> None:
    """The price is reached during the outage and falls again before it ends."""

    async def play() -> list[str]:
        feed, clock = ScriptedFeed(), HandClock(float(START + 10 * MINUTE))
        feed.table[BTC] = {START + n * MINUTE: 100.0 if n != 13 else 200.0 for n in range(30)}
        store = ParquetStore(tmp_path / "data")
        bars = BarService(store, feed, clock)
        records = Records(SqliteDatabase(tmp_path / "records.sqlite"), HeadFile(tmp_path / "head"), clock)
        inbox = Inbox(records, nothing_due, Hub())
        minutes = TradedMinutes(bars, present=True)
        alarms = AlertEngine(records, bars, minutes, IndicatorService(bars, feed), inbox)
        alerts = AlertService(
            records, bars, Prices(bars, 300.0, minutes), nothing_due, Quota.of(Settings(), "quota_alerts")
        )
        await alerts.set(ME, "BTC/USD", "1m", Condition(Type.PRICE_ABOVE, 150.0))
        clock.advance(MINUTE)
        await alarms.step(None, bars.closed_until())
        feed.down = True
        for _ in range(8):
            clock.advance(MINUTE)
            assert await alarms.step(None, bars.closed_until()) == 0
        feed.down = False
        clock.advance(MINUTE)
        await alarms.step(None, bars.closed_until())
        told, _ = await inbox.look(ME)
        await records.close()
        store.close()
        return [each.body["triggered_at"] for each in told]

    assert asyncio.run(play()) == [iso(START + 14 * MINUTE)]
