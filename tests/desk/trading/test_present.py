"""The present's accounts: looked at by other clocks, delayed by a bad symbol, kept within limits one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.desk.trading.desk import TradingDesk
from openbell.market.bars import MINUTE, Bars, make
from openbell.market.clock import iso
from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.records import marks
from openbell.trading.orders import Kind, Order, Side, State
from openbell.trading.request import request
from tests.clocks import HandClock
from tests.trading.samples import D

T = TypeVar("T")
ME = "local"
START = 1_758_240_000
BTC, ETH = parse("BTC/USD"), parse("ETH/USD")
FREE = {"PAPER_SLIPPAGE": "0", "PAPER_FEE": "0", "PAPER_VOLUME_SHARE": "1", "RISK_COLLAR": "0"}
FREE |= {"RISK_ORDER_SHARE": "0", "RISK_SYMBOL_SHARE": "0"}


def bars_of(instrument: Instrument, prices: list[float], volume: float = 1e6) -> Bars:
    values = np.asarray(prices)
    times = START + MINUTE * np.arange(len(values))
    return make(instrument, Timeframe.M1, times, values, values, values, values, np.full(len(values), volume))


def at(home: Path, minute: float, bars: list[Bars], work: Callable[[TradingDesk], Awaitable[T]], **settings: str) -> T:
    """Do something as a process of the present, whose machine shows a minute."""

    async def inside() -> T:
        names = {"HOME": str(home), "FEED": "none", "TRADE": "1", **FREE, **settings}
        desk = Desk(load({f"OPENBELL_{name}": value for name, value in names.items()}))
        if "AS_OF" not in settings:
            desk.clock = HandClock(START + minute * MINUTE)
        desk.store.write(bars, Source(Origin.IMPORTED, "x"))
        try:
            return await work(desk.trading)
        finally:
            await desk.trading.close()

    return asyncio.run(inside())


def order(
    key: str, instrument: Instrument, side: Side, quantity: str, limit: float | None = None
) -> Callable[[TradingDesk], Awaitable[Order]]:
    kind = Kind.MARKET if limit is None else Kind.LIMIT
    asked = request(instrument, side, kind, quantity, price=limit, client_order_id=key)
    return lambda trading: trading.orders.place(ME, asked)


async def orders(trading: TradingDesk) -> dict[str | None, Order]:
    found, _ = await trading.orders.listing(ME, open_only=False, limit=99)
    return {each.client_order_id: each for each in found}


def test_a_partly_filled_order_goes_on_whatever_clocks_have_looked_meanwhile(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60, volume=1.0)]
    at(tmp_path, 5, bars, order("one", BTC, Side.BUY, "5"))
    partly = at(tmp_path, 8, bars, orders)["one"]
    assert (partly.state, partly.filled) == (State.PARTIALLY_FILLED, D(3))
    for minute in (6, 7, 5, 8, 2):
        moment = iso(START + minute * MINUTE)
        at(tmp_path, 0, bars, lambda it: it.portfolio.holdings(ME), AS_OF=moment, TRADE="")
        at(tmp_path, 0, bars, orders, AS_OF=moment)
    done = at(tmp_path, 20, bars, orders)["one"]
    assert (done.state, done.filled, done.average_price) == (State.FILLED, D(5), D(100))


def test_a_look_at_a_losing_day_ends_no_order_of_a_later_one(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 20 + [60.0] * 1500 + [100.0] * 60), bars_of(ETH, [10.0] * 1600)]
    at(tmp_path, 5, bars, order("hold", BTC, Side.BUY, "300"))
    at(tmp_path, 1545, bars, order("later", ETH, Side.BUY, "1", 5))
    losing = iso(START + 60 * MINUTE)
    balance = at(tmp_path, 0, bars, lambda it: it.portfolio.balance(ME), AS_OF=losing, TRADE="")
    assert balance.total == 100_000, "the ledger learned of the fill later than that"
    assert at(tmp_path, 1546, bars, orders)["later"].state is State.OPEN


@pytest.mark.parametrize("broken", ["read", "feed"])
def test_a_symbol_that_cannot_be_read_delays_only_its_own_orders(tmp_path: Path, broken: str) -> None:
    bars = [bars_of(BTC, [100.0] * 60), bars_of(ETH, [10.0] * 60)]
    at(tmp_path, 5, bars, order("btc", BTC, Side.BUY, "1"))
    at(tmp_path, 5, bars, order("eth", ETH, Side.BUY, "1"))

    async def with_a_bad_symbol(trading: TradingDesk) -> Any:
        store: Any = trading._desk.store if broken == "read" else trading._desk.bars
        name = "read" if broken == "read" else "fill"
        whole = getattr(store, name)

        def failing(instrument: Instrument, *given: Any) -> Any:
            if instrument == BTC:
                raise StoreError("its file is damaged")
            return whole(instrument, *given)

        setattr(store, name, failing)
        await trading.engine.once()
        return await trading.records.read(marks.troubled)

    troubles = at(tmp_path, 20, bars, with_a_bad_symbol)
    assert [name for name in troubles if "BTC/USD" in name]
    assert "its file is damaged" in next(iter(troubles.values()))[1]

    async def seen(trading: TradingDesk) -> tuple[dict[str | None, Order], Any]:
        found = await orders(trading)
        return found, await trading.records.read(marks.troubled)

    found, troubles = at(tmp_path, 21, bars, seen)
    assert {key: each.state for key, each in found.items()} == {"btc": State.FILLED, "eth": State.FILLED}
    assert troubles == {}, "what works again is no trouble"


def test_limits_are_kept_for_every_account_that_is_filled(tmp_path: Path) -> None:
    """The engine's own account is another one: the loss of each ends its own orders, and no others."""
    bars = [bars_of(BTC, [100.0] * 20 + [60.0] * 40), bars_of(ETH, [10.0] * 45 + [4.0] * 15)]

    async def open_accounts(trading: TradingDesk) -> None:
        for name in ("loses", "holds"):
            await trading.accounts.add(name, "paper", D(1000), with_token=False)

    at(tmp_path, 1, bars, open_accounts)
    at(tmp_path, 5, bars, order("all-in", BTC, Side.BUY, "9"), ACCOUNT="loses")
    for name in ("loses", "holds"):
        at(tmp_path, 6, bars, order("dip", ETH, Side.BUY, "1", 5), ACCOUNT=name)
    at(tmp_path, 55, bars, lambda it: it.engine.once())
    lost = at(tmp_path, 55, bars, orders, ACCOUNT="loses")["dip"]
    assert lost.state is State.CANCELLED
    assert "lost" in str(lost.reason)
    assert lost.updated_at == START + 21 * MINUTE, "after the minute in which the loss arose, not when somebody looked"
    assert at(tmp_path, 55, bars, orders, ACCOUNT="holds")["dip"].state is State.FILLED
