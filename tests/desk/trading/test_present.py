"""The present's accounts: read by other clocks, delayed by a symbol without bars, limited one by one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from openbell.desk.alerts.service import Condition
from openbell.desk.bars.adjustments import described
from openbell.desk.desk import Desk
from openbell.desk.orders.halt_file import HaltFile
from openbell.desk.settings import load
from openbell.desk.trading_desk import TradingDesk
from openbell.market.bars import MINUTE, Bars, make
from openbell.market.clock import iso
from openbell.market.errors import RiskRefused, StoreError
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.records import orders as queries
from openbell.stores.records import progress as stored_troubles
from openbell.trading.accounts import Unauthorized
from openbell.trading.alerts import Type
from openbell.trading.orders import Order, OrderKind, OrderState, Side
from openbell.trading.request import request
from tests.client import run
from tests.clocks import HandClock
from tests.trading.samples import D
from tests.waiting import PATIENCE

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
    """Run work in a process of the present whose system clock is at a minute."""

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
    kind = OrderKind.MARKET if limit is None else OrderKind.LIMIT
    asked = request(instrument, side, kind, quantity, price=limit, client_order_id=key)
    return lambda trading: trading.orders.place(ME, asked)


async def orders(trading: TradingDesk) -> dict[str | None, Order]:
    found = (await trading.orders.listing(ME, open_only=False, limit=99)).orders
    return {each.client_order_id: each for each in found}


def recorded(account: str) -> Callable[[TradingDesk], Awaitable[dict[str | None, Order]]]:
    """An account's orders as they were left: nothing is brought up to date first."""

    async def work(trading: TradingDesk) -> dict[str | None, Order]:
        found = (await trading.records.read(lambda view: queries.listing(view, account, ME, 99, 0, open_only=False)))[0]
        return {each.client_order_id: each for each in found}

    return work


def test_a_partly_filled_order_continues_whatever_other_clocks_have_read(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60, volume=1.0)]
    at(tmp_path, 5, bars, order("one", BTC, Side.BUY, "5"))
    partly = at(tmp_path, 8, bars, orders)["one"]
    assert (partly.state, partly.filled) == (OrderState.PARTIALLY_FILLED, D(3))
    for minute in (6, 7, 5, 8, 2):
        moment = iso(START + minute * MINUTE)
        at(tmp_path, 0, bars, lambda it: it.portfolio.holdings(ME), AS_OF=moment, TRADE="")
        at(tmp_path, 0, bars, orders, AS_OF=moment)
    done = at(tmp_path, 20, bars, orders)["one"]
    assert (done.state, done.filled, done.average_price) == (OrderState.FILLED, D(5), D(100))


def test_reading_a_losing_day_cancels_no_order_of_a_later_day(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 20 + [60.0] * 1500 + [100.0] * 60), bars_of(ETH, [10.0] * 1600)]
    at(tmp_path, 5, bars, order("hold", BTC, Side.BUY, "300"))
    at(tmp_path, 1545, bars, order("later", ETH, Side.BUY, "1", 5))
    losing = iso(START + 60 * MINUTE)
    balance = at(tmp_path, 0, bars, lambda it: it.portfolio.balance(ME), AS_OF=losing, TRADE="")
    assert balance.total == 100_000, "the ledger learned of the fill later than that"
    assert at(tmp_path, 1546, bars, orders)["later"].state is OrderState.OPEN


def step_without(instrument: Instrument, part: str, fault: type[Exception]) -> Callable[[TradingDesk], Awaitable[Any]]:
    """A step of the engine while the bars of one symbol cannot be had; the orders, their reasons, and what is noted."""

    async def work(trading: TradingDesk) -> Any:
        owner: Any = trading._parts.bars().store if part == "read" else trading._parts.bars()
        whole = getattr(owner, part)

        def failing(asked: Instrument | Series, *given: Any) -> Any:
            if getattr(asked, "instrument", asked) == instrument:
                raise fault("its file is damaged")
            return whole(asked, *given)

        setattr(owner, part, failing)
        await trading.engine.once()
        found = await orders(trading)
        return found, await trading.reasons.of(found.values()), await trading.records.read(stored_troubles.all_troubles)

    return work


@pytest.mark.parametrize("fault", [StoreError, ValueError])
@pytest.mark.parametrize("part", ["read", "fill"])
def test_a_symbol_that_cannot_be_read_delays_only_its_own_orders(
    tmp_path: Path, part: str, fault: type[Exception]
) -> None:
    """Whatever is raised: one of our own errors, or an accident in the store or in a feed."""
    bars = [bars_of(BTC, [100.0] * 60), bars_of(ETH, [10.0] * 60)]
    at(tmp_path, 5, bars, order("btc", BTC, Side.BUY, "1"))
    at(tmp_path, 5, bars, order("eth", ETH, Side.BUY, "1"))
    found, reasons, troubles = at(tmp_path, 20, bars, step_without(BTC, part, fault))
    assert {key: each.state for key, each in found.items()} == {"btc": OrderState.OPEN, "eth": OrderState.FILLED}
    assert [name for name in troubles if "BTC/USD" in name]
    (reason,) = [reason for _, reason in troubles.values()]
    why = "its file is damaged" if fault is StoreError else "ValueError; the log has the trace"
    assert reason == f"the bars of BTC/USD cannot be read: {why}", "an unknown message may have a secret"
    assert reasons[found["btc"].id] == f"waits: {reason}"

    async def seen(trading: TradingDesk) -> tuple[dict[str | None, Order], Any]:
        found = await orders(trading)
        return found, await trading.records.read(stored_troubles.all_troubles)

    found, troubles = at(tmp_path, 21, bars, seen)
    assert {key: each.state for key, each in found.items()} == {"btc": OrderState.FILLED, "eth": OrderState.FILLED}
    assert troubles == {}, "what works again is no trouble"


def test_doctor_shows_a_symbol_that_cannot_be_read_until_it_can(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60)]
    at(tmp_path, 5, bars, order("btc", BTC, Side.BUY, "1"))
    at(tmp_path, 20, bars, step_without(BTC, "fill", StoreError))
    told = run(tmp_path, "doctor", FEED="none")
    assert told.returncode == 1
    assert ": the bars of BTC/USD cannot be read: its file is damaged\n" in told.stdout
    at(tmp_path, 21, bars, lambda it: it.engine.once())
    assert "BTC/USD cannot be read" not in run(tmp_path, "doctor", FEED="none").stdout


def test_doctor_names_a_position_that_was_opened_before_a_split(tmp_path: Path) -> None:
    """A dividend, a split of another symbol and a position of after the split are not named."""
    bars = [bars_of(BTC, [100.0] * 60), bars_of(ETH, [10.0] * 60)]
    at(tmp_path, 5, bars, order("btc", BTC, Side.BUY, "2"))
    at(tmp_path, 5, bars, order("eth", ETH, Side.BUY, "3"))
    at(tmp_path, 20, bars, lambda it: it.portfolio.holdings(ME))

    def add(symbol: str, by: float, moment: float) -> None:
        with closing(ParquetStore(tmp_path / "data")) as store, store._buffer.transaction() as db:
            reason = described(Source(Origin.LIVE, "yahoo", "split"), parse(symbol), by)
            db.execute("INSERT INTO problems VALUES (?, ?, ?)", (moment, "AAPL.aside-1", reason))

    for symbol, by, minute in (("ETH/USD", 0.995, 40), ("SOL/USD", 0.5, 40), ("BTC/USD", 0.5, 1)):
        add(symbol, by, START + minute * MINUTE)
    assert "before a split" not in run(tmp_path, "doctor", FEED="none").stdout
    add("BTC/USD", 0.25, START + 40 * MINUTE)
    told = run(tmp_path, "doctor", FEED="none")
    assert told.returncode == 1
    assert told.stdout.count("may be from before a split") == 1
    text = "position of BTC/USD on account paper: the quantity of 2 may be from before a split: yahoo has multiplied"
    assert text in " ".join(told.stdout.split())


def test_an_accident_with_one_account_is_noted_and_the_others_are_filled(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60)]

    async def open_accounts(trading: TradingDesk) -> None:
        for name in ("bad", "good"):
            await trading.accounts.add(name, "paper", D(1000), with_token=False)

    at(tmp_path, 1, bars, open_accounts)
    for name in ("bad", "good"):
        at(tmp_path, 5, bars, order("one", BTC, Side.BUY, "1"), ACCOUNT=name)

    async def step(trading: TradingDesk) -> Any:
        matching: Any = trading.matching
        whole = matching.advance

        async def failing(name: str, *given: Any) -> int:
            if name == "bad":
                raise RuntimeError("an accident")
            return int(await whole(name, *given))

        matching.advance = failing
        await trading.engine.once()
        return await trading.records.read(stored_troubles.all_troubles)

    ((_, reason),) = at(tmp_path, 20, bars, step).values()
    assert reason == "account bad: RuntimeError; the log has the trace", "the message may have a secret"
    assert at(tmp_path, 20, bars, recorded("good"))["one"].state is OrderState.FILLED
    at(tmp_path, 21, bars, lambda it: it.engine.once())
    assert at(tmp_path, 21, bars, recorded("bad"))["one"].state is OrderState.FILLED
    assert at(tmp_path, 21, bars, lambda it: it.records.read(stored_troubles.all_troubles)) == {}


def test_an_order_that_waits_for_the_price_of_a_position_says_so(tmp_path: Path) -> None:
    """What the account has lost is not known meanwhile, and nothing is opened."""
    bars = [bars_of(BTC, [100.0] * 10), bars_of(ETH, [10.0] * 60)]
    at(tmp_path, 5, bars, order("held", BTC, Side.BUY, "1"))
    at(tmp_path, 8, bars, orders)
    at(tmp_path, 9, bars, order("more", ETH, Side.BUY, "1"))

    async def without_bars(trading: TradingDesk) -> Any:
        store: Any = trading._parts.bars().store
        read, tail = store.read, store.tail
        store.read = lambda series, *given: read(series, *given).take(slice(0, 0 if series.instrument == BTC else None))
        store.tail = lambda series, *given: tail(series, *given).take(slice(0, 0 if series.instrument == BTC else None))
        found = await orders(trading)
        return found, await trading.reasons.of(found.values())

    found, reasons = at(tmp_path, 20, bars, without_bars)
    assert found["more"].state is OrderState.OPEN
    assert reasons[found["more"].id] == "nothing is opened until what is held has a price: there is none of BTC/USD"
    assert at(tmp_path, 21, bars, orders)["more"].state is OrderState.FILLED


def test_limits_are_kept_for_every_account_that_is_filled(tmp_path: Path) -> None:
    """The engine's own account is another one: a loss cancels only the orders of its own account."""
    bars = [bars_of(BTC, [100.0] * 20 + [60.0] * 40), bars_of(ETH, [10.0] * 45 + [4.0] * 15)]

    async def open_accounts(trading: TradingDesk) -> None:
        for name in ("loses", "holds"):
            await trading.accounts.add(name, "paper", D(1000), with_token=False)

    at(tmp_path, 1, bars, open_accounts)
    at(tmp_path, 5, bars, order("all-in", BTC, Side.BUY, "9"), ACCOUNT="loses")
    for name in ("loses", "holds"):
        at(tmp_path, 6, bars, order("dip", ETH, Side.BUY, "1", 5), ACCOUNT=name)
    at(tmp_path, 55, bars, lambda it: it.engine.once())
    lost = at(tmp_path, 55, bars, recorded("loses"))["dip"]
    assert lost.state is OrderState.CANCELLED
    assert "lost" in str(lost.reason)
    assert lost.updated_at == START + 21 * MINUTE, "after the minute in which the loss arose, not when somebody looked"
    assert at(tmp_path, 55, bars, recorded("holds"))["dip"].state is OrderState.FILLED


def test_a_halt_ends_what_rests_on_every_account(tmp_path: Path) -> None:
    bars = [bars_of(ETH, [10.0] * 60)]

    async def open_accounts(trading: TradingDesk) -> None:
        for name in ("one", "two"):
            await trading.accounts.add(name, "paper", D(1000), with_token=False)

    at(tmp_path, 1, bars, open_accounts)
    for name in ("one", "two"):
        at(tmp_path, 6, bars, order("dip", ETH, Side.BUY, "1", 5), ACCOUNT=name)
    done = run(tmp_path, "halt", FEED="none")
    assert "2 resting orders that could open a position were cancelled" in done.stdout
    for name in ("one", "two"):
        assert at(tmp_path, 7, bars, recorded(name))["dip"].state is OrderState.CANCELLED


def test_questions_at_the_same_time_share_one_walk(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60)]
    at(tmp_path, 5, bars, order("one", BTC, Side.BUY, "1"))

    async def ask(trading: TradingDesk) -> list[Any]:
        store: Any = trading._parts.bars().store
        read, reads = store.read, []

        def counted(*given: Any) -> Bars:
            reads.append(given)
            return read(*given)  # type: ignore[no-any-return]

        store.read = counted
        await asyncio.gather(*(trading.portfolio.balance(ME) for _ in range(5)), *(orders(trading) for _ in range(5)))
        return reads

    assert len(at(tmp_path, 20, bars, ask)) == 1


def test_what_was_walked_stays_walked_when_the_rest_is_cut_short(tmp_path: Path) -> None:
    """A call has a time-out: a desk that nobody looked at for weeks comes up to date piece by piece, call by call."""
    day = 1440
    bars = [bars_of(BTC, [100.0] * (15 * day))]
    at(tmp_path, 5, bars, order("one", BTC, Side.BUY, "1"))
    at(tmp_path, 5, bars, order("two", BTC, Side.BUY, "1", 50))

    async def cut(trading: TradingDesk) -> None:
        store: Any = trading._parts.bars().store
        read, loop = store.read, asyncio.get_running_loop()
        reached, ending = asyncio.Event(), threading.Event()

        def slow(instrument: Instrument, start: int, end: int) -> Bars:
            if start > START + day * MINUTE:
                loop.call_soon_threadsafe(reached.set)
                ending.wait(PATIENCE)
            return read(instrument, start, end)  # type: ignore[no-any-return]

        store.read = slow
        call = asyncio.create_task(trading.portfolio.balance(ME))
        await asyncio.wait_for(reached.wait(), PATIENCE)
        call.cancel()
        ending.set()
        await asyncio.gather(call, return_exceptions=True)

    at(tmp_path, 14 * day, bars, cut)
    assert at(tmp_path, 14 * day, bars, recorded("paper"))["one"].state is OrderState.FILLED


def test_a_days_loss_is_counted_from_the_day_on_which_an_order_rests(tmp_path: Path) -> None:
    """Not from the day of the last fill: without resting orders the account is not advanced."""
    day = 1440
    falling = [100.0 * (1 - 0.02 * minute / day) for minute in range(4 * day)]
    bars = [bars_of(BTC, falling), bars_of(ETH, [10.0] * (4 * day))]
    at(tmp_path, 10, bars, order("all", BTC, Side.BUY, "900"))
    at(tmp_path, 20, bars, lambda it: it.portfolio.balance(ME))
    at(tmp_path, 3.5 * day, bars, order("later", ETH, Side.BUY, "1", 9))
    assert at(tmp_path, 3.5 * day + 5, bars, orders)["later"].state is OrderState.OPEN, (
        "1 % was lost on that day, 7 % in all"
    )


def test_a_loss_since_the_start_of_the_day_cancels_resting_orders(tmp_path: Path) -> None:
    day = 1440
    rising = [100.0 * (1 + 0.05 * minute / day) for minute in range(3 * day)]
    prices = rising + [115 * (1 - 0.08 * min(1, minute / 720)) for minute in range(day)]
    bars = [bars_of(BTC, prices), bars_of(ETH, [10.0] * (3 * day + 700) + [5.0] * 740)]
    at(tmp_path, 10, bars, order("all", BTC, Side.BUY, "900"))
    at(tmp_path, 20, bars, lambda it: it.portfolio.balance(ME))
    at(tmp_path, 3 * day + 1, bars, order("dip", ETH, Side.BUY, "1", 6))
    found = at(tmp_path, 3 * day + 750, bars, orders)["dip"]
    assert found.state is OrderState.CANCELLED
    assert "today" in str(found.reason)


def test_a_caller_without_the_token_changes_nothing_on_an_account(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60)]

    async def open_account(trading: TradingDesk) -> str:
        return str(await trading.accounts.add("secret", "paper", D(1000), with_token=True))

    token = at(tmp_path, 1, bars, open_account)
    mine = {"ACCOUNT": "secret", "ACCOUNT_TOKEN": token}
    at(tmp_path, 5, bars, order("one", BTC, Side.BUY, "1"), **mine)
    with pytest.raises(Unauthorized):
        at(tmp_path, 20, bars, lambda it: it.portfolio.balance(ME), ACCOUNT="secret", PAPER_FEE="0.5")
    assert at(tmp_path, 21, bars, orders, **mine)["one"].fees == 0


def test_an_old_token_opens_an_account_at_no_clock(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60)]

    async def work(trading: TradingDesk) -> str:
        return str(await trading.accounts.add("rotated", "paper", D(777), with_token=True))

    async def renew(trading: TradingDesk) -> str:
        return str(await trading.accounts.renew_token("rotated"))

    old, new = at(tmp_path, 5, bars, work), at(tmp_path, 10, bars, renew)
    then = {"AS_OF": iso(START + 7 * MINUTE), "TRADE": "", "ACCOUNT": "rotated"}
    with pytest.raises(Unauthorized):
        at(tmp_path, 0, bars, lambda it: it.portfolio.balance(ME), **then, ACCOUNT_TOKEN=old)
    assert at(tmp_path, 0, bars, lambda it: it.portfolio.balance(ME), **then, ACCOUNT_TOKEN=new).cash == 777


def test_halting_first_fills_orders_from_closed_bars(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60)]
    at(tmp_path, 5, bars, order("due", BTC, Side.BUY, "1"))

    async def halt(trading: TradingDesk) -> None:
        await trading.settle_all(trading.halt_file.set("a test", START + 20 * MINUTE))
        await trading.halts.halt("a test")
        await trading.halts.enforce(trading.venue)

    at(tmp_path, 20, bars, halt)
    assert at(tmp_path, 21, bars, orders)["due"].state is OrderState.FILLED


def test_a_repeated_halt_fills_nothing_from_bars_after_the_first(tmp_path: Path) -> None:
    """The first one could not reach the records: it left only its file."""
    bars = [bars_of(BTC, [100.0] * 60)]
    at(tmp_path, 5, bars, order("late", BTC, Side.BUY, "1"))
    file = HaltFile(tmp_path / "halted")
    assert file.set("a test", START + 5.5 * MINUTE) == START + 5.5 * MINUTE
    assert file.set("again", START + 20 * MINUTE) == START + 5.5 * MINUTE

    async def halt(trading: TradingDesk) -> None:
        await trading.settle_all(await trading.halts.since(file.since() or 0.0))
        await trading.halts.halt("again")
        await trading.halts.enforce(trading.venue)

    at(tmp_path, 20, bars, halt)
    file.lift()
    found = at(tmp_path, 21, bars, orders)["late"]
    assert (found.state, found.filled) == (OrderState.CANCELLED, D(0))


def test_an_order_of_a_clock_that_was_ahead_says_until_when_nothing_fills_it(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60)]
    at(tmp_path, 50, bars, order("ahead", BTC, Side.BUY, "1", limit=90.0))

    async def reasons(trading: TradingDesk) -> str | None:
        found = await orders(trading)
        return next(iter((await trading.reasons.of(found.values())).values()))

    said = at(tmp_path, 20, bars, reasons)
    assert said is not None
    assert f"nothing fills it before {iso(START + 50 * MINUTE)}" in said


def test_bars_that_are_imported_late_still_fill(tmp_path: Path) -> None:
    """Without a feed it is not known when a minute is complete: matched minutes are read again."""
    whole = bars_of(BTC, [100.0] * 60)

    async def play() -> OrderState:
        names = {"HOME": str(tmp_path), "FEED": "none", "TRADE": "1", **FREE}
        desk = Desk(load({f"OPENBELL_{name}": value for name, value in names.items()}))
        clock = desk.clock = HandClock(START + 10 * MINUTE)
        desk.store.write([whole.between(0, START + 10 * MINUTE)], Source(Origin.IMPORTED, "x"))
        await order("late", BTC, Side.BUY, "1")(desk.trading)
        clock.advance(2 * MINUTE)
        await desk.trading.engine.step(None)
        desk.store.write([whole.between(0, START + 12 * MINUTE)], Source(Origin.IMPORTED, "x"))
        found = (await orders(desk.trading))["late"].state
        await desk.trading.close()
        return found

    assert asyncio.run(play()) is OrderState.FILLED


def test_nothing_is_opened_beside_a_position_whose_price_is_days_old(tmp_path: Path) -> None:
    bars = [bars_of(BTC, [100.0] * 60), bars_of(ETH, [10.0] * 3000)]
    at(tmp_path, 5, bars, order("held", BTC, Side.BUY, "10"))
    balance = at(tmp_path, 2900, bars, lambda it: it.portfolio.balance(ME))
    assert "newest price of BTC/USD" in str(balance.note)
    with pytest.raises(RiskRefused, match="newest price of BTC/USD"):
        at(tmp_path, 2900, bars, order("more", ETH, Side.BUY, "1"))


def test_an_import_behind_processed_bars_names_the_orders_and_alerts_that_it_may_not_reach(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "late.csv"
    bars = [bars_of(BTC, [100.0] * 30)]
    at(home, 5, bars, order("low", BTC, Side.BUY, "1", limit=50.0))
    at(home, 5, bars, lambda t: t.alerts.set(ME, "BTC/USD", "1m", Condition(Type.PRICE_BELOW, 50.0)))

    def imported(minute: int, symbol: str = "BTC/USD") -> str:
        file.write_text(f"timestamp,open,high,low,close,volume\n{iso(START + minute * MINUTE)},90,90,40,90,1\n")
        result = run(home, "import", str(file), "--symbol", symbol, "-t", "1m", "--replace", FEED="none")
        assert result.returncode == 0, result.stderr
        return str(result.stderr)

    assert "1 paper order and 1 alert on BTC/USD may already be past these bars" in imported(20)
    assert imported(31) == ""
    assert "past these bars" not in imported(20, symbol="ETH/USD")
    assert not list((tmp_path / "home").glob("simulated*"))


def test_nothing_is_opened_while_the_equity_at_midnight_is_not_known(tmp_path: Path) -> None:
    """The daily loss counts from midnight, also for positions that are closed by now."""
    day = 1440
    bars = [bars_of(BTC, [100.0] * (day + 60)), bars_of(ETH, [10.0] * (day + 60))]
    at(tmp_path, 5, bars, order("held", BTC, Side.BUY, "10"))
    at(tmp_path, day + 5, bars, order("sold", BTC, Side.SELL, "10"))
    assert at(tmp_path, day + 10, bars, orders)["sold"].state is OrderState.FILLED

    async def without_midnight(trading: TradingDesk) -> Order:
        store: Any = trading._parts.bars().store
        tail = store.tail

        def failing(instrument: Instrument, count: int, end: int) -> Bars:
            if end == START + day * MINUTE:
                raise StoreError("its file is damaged")
            return tail(instrument, count, end)  # type: ignore[no-any-return]

        store.tail = failing
        return await order("more", ETH, Side.BUY, "1")(trading)

    with pytest.raises(RiskRefused, match="when the day began is not known"):
        at(tmp_path, day + 20, bars, without_midnight)
    assert at(tmp_path, day + 21, bars, order("more", ETH, Side.BUY, "1")).state is OrderState.OPEN, (
        "the id is not used up"
    )


def test_a_problem_of_an_account_ends_whatever_other_accounts_are_called(tmp_path: Path) -> None:
    """Also while an account works whose name is the word that messages begin with."""

    async def work(trading: TradingDesk) -> list[str]:
        await trading.accounts.add("account", "paper", D(100_000), with_token=False)
        name = stored_troubles.trouble_of("paper")
        await trading.records.write(lambda journal: stored_troubles.set_trouble(journal.view, name, 0.0, "it failed"))
        await order("one", BTC, Side.BUY, "1", 5)(trading)
        await trading.engine.once()
        return list(await trading.records.read(stored_troubles.all_troubles))

    bars = [bars_of(BTC, [100.0] * 60)]
    assert at(tmp_path, 5, bars, work, ACCOUNT="account") == []
