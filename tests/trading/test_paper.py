"""Fills on paper: never better than a real order would have got."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.bars import Bars
from openbell.market.sessions import StockSession, session_on
from openbell.trading.costs import Costs
from openbell.trading.evidence import bar_hash
from openbell.trading.fills import Fill
from openbell.trading.matcher import Change
from openbell.trading.orders import RESTING, Force, Order, OrderKind, OrderState, Role, Side, end_exits, exits_of
from tests.trading.matching import match
from tests.trading.samples import BUY, SELL, START, D, Row, limit, look, minutes, order, stop

EXACT = Costs(fee=D(0), slippage=D(0), volume_share=D(1))
PLENTY = 1e6
LATER = START + 10**7


def row(opened: float, high: float | None = None, low: float | None = None, volume: float = PLENTY) -> Row:
    return (opened, opened if high is None else high, opened if low is None else low, volume)


def run(
    orders: Sequence[Order],
    rows: Sequence[Row] | Bars,
    position: str = "0",
    costs: Costs = EXACT,
    until: float | None = None,
    **more: Any,
) -> list[Change]:
    bars = rows if isinstance(rows, Bars) else minutes(rows)
    end = int(bars.time[-1]) + 60 if len(bars) else START
    return match(orders, bars, D(position), end if until is None else until, costs, **more)


def fills(changes: Sequence[Change], order_id: str | None = None) -> list[tuple[Any, ...]]:
    """Returns price and quantity of each fill."""
    return [
        look(each, "price quantity") for each in changes if isinstance(each, Fill) and order_id in {None, each.order_id}
    ]


def last(changes: Sequence[Change], order_id: str = "a") -> Order:
    return [each for each in changes if isinstance(each, Order) and each.id == order_id][-1]


# Market orders


def test_a_market_order_fills_at_the_next_bars_open() -> None:
    changes = run([order("a", BUY, "2")], [row(100, 110, 90), row(200)])
    assert fills(changes) == [(100, 2)]
    assert look(last(changes), "state filled paid updated_at") == (OrderState.FILLED, 2, 200, START + 60)


def test_slippage_makes_every_price_worse() -> None:
    costs = replace(EXACT, slippage=D("0.0005"))
    assert fills(run([order("a", BUY, "1")], [row(100)], costs=costs)) == [(D("100.05"), 1)]
    assert fills(run([order("a", SELL, "1")], [row(100)], costs=costs)) == [(D("99.95"), 1)]
    odd = replace(EXACT, slippage=D("0.0000000000001"))
    assert fills(run([order("a", BUY, "1")], [row(1)], costs=odd)) == [(D("1.000000000001"), 1)]
    assert fills(run([order("a", SELL, "1")], [row(1)], costs=odd)) == [(D("0.999999999999"), 1)]


@pytest.mark.parametrize(
    ("late", "price"), [(-90.0, 100), (0.0, 100), (0.001, 101), (59.9, 101), (60.0, 101), (60.1, 102)]
)
def test_no_order_fills_from_a_bar_that_opened_before_it_was_placed(late: float, price: int) -> None:
    changes = run([order(placed_at=START + late)], [row(100), row(101), row(102)])
    assert fills(changes) == [(price, 10)]


def test_a_fill_names_its_bar_and_has_the_time_of_its_close() -> None:
    bars = minutes([row(100), row(101)])
    (found,) = [each for each in run([order(placed_at=START + 1)], bars) if isinstance(each, Fill)]
    assert look(found, "id order_id bar at") == (f"a-{START + 60}", "a", START + 60, START + 120.0)
    assert found.bar_hash == bar_hash(bars, 1)
    assert look(found, "account principal symbol side") == ("paper", "me", "BTC/USD", BUY)


def test_fees_are_rounded_up() -> None:
    costs = replace(EXACT, fee=D("0.001"))
    (found,) = [e for e in run([order("a", BUY, "0.00001")], [row(0.5)], costs=costs) if isinstance(e, Fill)]
    assert found.fee == D("0.00000001")
    changes = run([order("a", BUY, "3")], [row(100, volume=2), row(100)], costs=costs)
    assert [each.fee for each in changes if isinstance(each, Fill)] == [D("0.2"), D("0.1")]
    assert last(changes).fees == D("0.3")


# Limits


def test_a_limit_fills_only_when_the_price_trades_through_it() -> None:
    assert fills(run([limit("a", BUY, "1", "95")], [row(100, 100, 95)])) == []
    assert fills(run([limit("a", BUY, "1", "95")], [row(100, 100, 94.99)])) == [(95, 1)]
    assert fills(run([limit("a", SELL, "1", "105")], [row(100, 105, 100)])) == []
    assert fills(run([limit("a", SELL, "1", "105")], [row(100, 105.01, 100)])) == [(105, 1)]


def test_an_open_exactly_at_the_limit_does_not_fill() -> None:
    assert fills(run([limit("a", BUY, "1", "95")], [row(95, 96, 95)])) == []
    assert fills(run([limit("a", BUY, "1", "95")], [row(95, 96, 94)])) == [(95, 1)]
    assert fills(run([limit("a", SELL, "1", "95")], [row(95, 95, 94)])) == []


def test_a_gap_fills_a_limit_at_the_open_without_slippage() -> None:
    costs = replace(EXACT, slippage=D("0.01"))
    assert fills(run([limit("a", BUY, "1", "95")], [row(100), row(90, 99, 80)], costs=costs)) == [(90, 1)]
    assert fills(run([limit("a", SELL, "1", "105")], [row(100), row(110, 120, 101)], costs=costs)) == [(110, 1)]
    assert fills(run([limit("a", BUY, "1", "95")], [row(100, 100, 90)], costs=costs)) == [(95, 1)]


# Stops


@pytest.mark.parametrize(
    ("side", "bar", "price"),
    [
        (BUY, row(100, 104.99, 90), None),
        (BUY, row(100, 105, 90), 105),
        (BUY, row(105, 106, 90), 105),
        (BUY, row(107, 108, 90), 107),
        (SELL, row(110, 120, 105.01), None),
        (SELL, row(110, 120, 105), 105),
        (SELL, row(103, 120, 100), 103),
    ],
)
def test_a_stop_fills_where_it_is_reached_or_at_the_gap(side: Side, bar: Row, price: int | None) -> None:
    assert fills(run([stop("a", side, "1", "105")], [bar])) == ([] if price is None else [(price, 1)])


def test_a_stop_pays_slippage() -> None:
    costs = replace(EXACT, slippage=D("0.01"))
    assert fills(run([stop("a", BUY, "1", "105")], [row(100, 106, 100)], costs=costs)) == [(D("106.05"), 1)]
    assert fills(run([stop("a", SELL, "1", "95")], [row(100, 100, 90)], costs=costs)) == [(D("94.05"), 1)]


def test_the_rest_of_a_triggered_stop_fills_at_the_next_open() -> None:
    changes = run([stop("a", SELL, "3", "95")], [row(100, 100, 90, volume=1), row(120, 120, 119)])
    assert fills(changes) == [(95, 1), (120, 2)]
    assert last(changes).triggered


def stop_limit(side: Side, at: str, price: str) -> Order:
    return order("a", side, "1", kind=OrderKind.STOP_LIMIT, stop_price=at, limit_price=price)


@pytest.mark.parametrize(
    ("side", "at", "price", "bars", "expected"),
    [
        (BUY, "105", "106", [row(100, 104, 90)], []),
        (BUY, "105", "106", [row(100, 110, 99)], [(105, 1)]),
        (BUY, "105", "106", [row(105.5, 110, 99)], [(D("105.5"), 1)]),
        (BUY, "105", "106", [row(108, 110, 107)], []),
        (BUY, "105", "106", [row(108, 110, 107), row(107, 107, 105.5)], [(106, 1)]),
        (BUY, "105", "106", [row(108, 110, 105)], [(106, 1)]),
        (BUY, "105", "105", [row(100, 110, 99)], []),
        (BUY, "105", "105", [row(100, 110, 99), row(104)], [(104, 1)]),
        (BUY, "105", "103", [row(100, 110, 99)], []),
        (SELL, "95", "94", [row(100, 100, 96)], []),
        (SELL, "95", "94", [row(100, 101, 90)], [(95, 1)]),
        (SELL, "95", "94", [row(90, 93, 89), row(92, 94.5, 92)], [(94, 1)]),
        (SELL, "95", "97", [row(100, 101, 90)], []),
        (SELL, "95", "97", [row(100, 101, 90), row(98)], [(98, 1)]),
    ],
)
def test_a_stop_limit_becomes_a_limit_once_its_stop_is_reached(
    side: Side, at: str, price: str, bars: list[Row], expected: list[tuple[Any, ...]]
) -> None:
    assert fills(run([stop_limit(side, at, price)], bars)) == expected


def test_a_stop_limit_pays_slippage_up_to_its_limit() -> None:
    costs = replace(EXACT, slippage=D("0.01"))
    assert fills(run([stop_limit(BUY, "105", "120")], [row(100, 110, 99)], costs=costs)) == [(D("106.05"), 1)]
    assert fills(run([stop_limit(BUY, "105", "106")], [row(100, 110, 99)], costs=costs)) == [(106, 1)]
    assert fills(run([stop_limit(SELL, "95", "94.5")], [row(100, 101, 90)], costs=costs)) == [(D("94.5"), 1)]


def test_a_triggered_stop_limit_stays_triggered() -> None:
    changes = run([stop_limit(BUY, "105", "106")], [row(108, 110, 107)])
    assert look(last(changes), "triggered state updated_at") == (True, OrderState.OPEN, START + 60)
    assert fills(run([replace(last(changes), updated_at=0.0)], [row(50)])) == [(50, 1)], "in the next bars"


# Volume


def test_an_order_gets_a_share_of_a_bars_volume_and_the_rest_waits() -> None:
    costs = replace(EXACT, volume_share=D("0.1"))
    bars = [row(100, volume=30), row(101, volume=25.5), row(102, volume=0), row(103, volume=1000)]
    changes = run([order("a", BUY, "10")], bars, costs=costs)
    assert fills(changes) == [(100, 3), (101, D("2.55")), (103, D("4.45"))]
    states = [each.state for each in changes if isinstance(each, Order)]
    assert states == [OrderState.PARTIALLY_FILLED, OrderState.PARTIALLY_FILLED, OrderState.FILLED]


@pytest.mark.parametrize("volume", [0.0, 2.0, PLENTY])
def test_forex_fills_are_not_limited_by_volume(volume: float) -> None:
    """The volume column of forex bars is a count of ticks, or zero."""
    costs = replace(EXACT, volume_share=D("0.1"))
    bars = minutes([row(1.1, volume=volume)], "EUR/USD")
    both = [order("a", BUY, "70000", symbol="EUR/USD"), order("b", BUY, "0.5", symbol="EUR/USD")]
    assert fills(run(both, bars, costs=costs)) == [(D("1.1"), 70000), (D("1.1"), D("0.5"))]


@pytest.mark.parametrize("symbol", ["BTC/USD", "AAPL"])
def test_stocks_and_crypto_wait_while_there_is_no_volume(symbol: str) -> None:
    start = session("2025-09-02").open
    bars = minutes([row(100, volume=0)] * 3, symbol, start)
    assert run([order("a", BUY, "1", symbol=symbol)], bars) == []


def test_the_share_is_exact() -> None:
    costs = replace(EXACT, volume_share=D("0.29"))
    assert fills(run([order("a", BUY, "50", symbol="AAPL")], stock_bars([row(1, volume=100)]), costs=costs)) == [
        (1, 29)
    ]


def test_an_absurdly_large_volume_raises_nothing() -> None:
    assert fills(run([order("a", BUY, "999999999999999")], [row(1, volume=1.7e308)])) == [(1, 999999999999999)]


def test_orders_share_a_bars_volume_in_the_order_of_time() -> None:
    late, early = order("a", BUY, "5", placed_at=START - 1.0), order("b", BUY, "5", placed_at=START - 2.0)
    changes = run([late, early], [row(100, volume=7), row(101, volume=7)])
    assert fills(changes, "b") == [(100, 5)]
    assert fills(changes, "a") == [(100, 2), (101, 3)]


# Stocks


def stock_bars(rows: Sequence[Row], start: int | None = None) -> Bars:
    return minutes(rows, "AAPL", session("2025-09-02").open if start is None else start)


def session(day: str) -> StockSession:
    found = session_on(date.fromisoformat(day))
    assert found
    return found


def test_orders_for_whole_shares_fill_in_whole_shares() -> None:
    costs = replace(EXACT, volume_share=D("0.1"))
    bars = stock_bars([row(100, volume=29), row(101, volume=9), row(102, volume=1000)])
    assert fills(run([order("a", BUY, "5", symbol="AAPL")], bars, costs=costs)) == [(100, 2), (102, 3)]
    changes = run([order("a", BUY, "5.5", symbol="AAPL")], bars, costs=costs)
    assert fills(changes) == [(100, D("2.9")), (101, D("0.9")), (102, D("1.7"))]
    assert fills(run([order("a", BUY, "5")], minutes([row(100, volume=29)]), costs=costs)) == [(100, D("2.9"))]


@pytest.mark.parametrize("day", ["2025-09-02", "2025-11-28", "2025-07-03", "2025-03-10"])
def test_stocks_fill_in_regular_hours_only(day: str) -> None:
    today = session(day)
    times = [today.premarket, today.open - 60, today.open, today.close - 60, today.close, today.end - 60]
    for number, time in enumerate(times):
        bars = minutes([row(100)], "AAPL", times=[time])
        changes = run([order("a", BUY, "1", symbol="AAPL", placed_at=0.0)], bars)
        assert bool(fills(changes)) == (number in {2, 3})
        assert fills(run([order("a", BUY, "1", placed_at=0.0)], minutes([row(100)], times=[time])))


def test_on_half_days_stocks_fill_until_the_early_close() -> None:
    assert session("2025-11-28").close - session("2025-11-28").open == 3.5 * 3600


def test_an_order_of_the_evening_fills_at_the_next_sessions_open() -> None:
    friday, monday = session("2025-08-29"), session("2025-09-02")
    times = [friday.close, friday.end - 60, monday.premarket, monday.open, monday.open + 60]
    bars = minutes([row(100 + number) for number in range(5)], "AAPL", times=times)
    changes = run([order("a", BUY, "1", symbol="AAPL", placed_at=float(friday.close))], bars)
    assert fills(changes) == [(103, 1)]


# Ends


def test_a_day_order_ends_with_its_day() -> None:
    today, tomorrow = session("2025-09-02"), session("2025-09-03")
    placed = limit("a", BUY, "1", "90", symbol="AAPL", expires_at=float(today.close), placed_at=float(today.open))
    bars = minutes([row(100), row(80)], "AAPL", times=[today.close - 60, tomorrow.open])
    changes = run([placed], bars)
    assert fills(changes) == []
    assert look(last(changes), "state reason updated_at") == (OrderState.EXPIRED, "its day is over", float(today.close))
    assert fills(run([placed], minutes([row(80)], "AAPL", today.close - 60))) == [(80, 1)]


def test_a_day_order_ends_without_any_bar() -> None:
    placed = limit("a", BUY, "1", "90", expires_at=START + 600.0)
    assert run([placed], [], until=START + 599) == []
    assert last(run([placed], [], until=START + 600)).state is OrderState.EXPIRED
    assert last(run([placed], [], until=LATER)).updated_at == START + 600
    assert run([replace(placed, expires_at=None)], [], until=LATER) == []


def test_orders_expire_in_the_order_of_their_expiry() -> None:
    placed = [
        limit("a", BUY, "1", "90", expires_at=START + 200.0),
        limit("b", BUY, "1", "90", expires_at=START + 100.0),
    ]
    changes = run(placed, [], until=LATER)
    assert [each.id for each in changes] == ["b", "a"]


@pytest.mark.parametrize("state", sorted(set(OrderState) - RESTING | {OrderState.CANCELLING}))
def test_only_open_and_partially_filled_orders_fill(state: OrderState) -> None:
    assert run([replace(order(), state=state)], [row(100)]) == []


# Reducing


def test_an_order_that_only_reduces_is_cut_to_the_position() -> None:
    changes = run([order("a", SELL, "10", opening="0")], [row(100), row(101)], position="6")
    assert fills(changes) == [(100, 6)]
    assert look(last(changes), "state filled reason") == (OrderState.CANCELLED, 6, "nothing is left to reduce")
    short = run([order("a", BUY, "10", opening="0")], [row(100)], position="-6")
    assert fills(short) == [(100, 6)]


@pytest.mark.parametrize("position", ["0", "-5"])
def test_an_order_with_nothing_to_reduce_is_cancelled(position: str) -> None:
    changes = run([order("a", SELL, "10", opening="0")], [row(100)], position=position)
    assert fills(changes) == []
    assert last(changes).state is OrderState.CANCELLED
    resting = run([limit("a", SELL, "10", "150", opening="0")], [row(100)], position=position)
    assert resting == []


def test_two_orders_that_reduce_stop_at_the_position() -> None:
    placed = [order("a", SELL, "4", opening="0"), order("b", SELL, "4", opening="0")]
    changes = run(placed, [row(100)], position="6")
    assert (fills(changes, "a"), fills(changes, "b")) == ([(100, 4)], [(100, 2)])


@pytest.mark.parametrize("volume", [PLENTY, 4.0, 1.0])
@pytest.mark.parametrize("position", ["6", "3", "0", "-2", "9"])
def test_a_flip_opens_no_more_than_judged_though_the_position_has_changed(position: str, volume: float) -> None:
    """The order was judged as six to reduce and four to open."""
    placed = order("a", SELL, "10", opening="4")
    changes = run([placed], [row(100, volume=volume)] * 15, position=position)
    sold = sum(quantity for _, quantity in fills(changes))
    assert sold == min(10, max(0, int(position)) + 4)
    assert last(changes).final
    assert last(changes).state is (OrderState.FILLED if sold == 10 else OrderState.CANCELLED)


def test_while_halted_orders_only_reduce() -> None:
    flip, fresh = order("a", SELL, "10", opening="4"), order("b", BUY, "1", symbol="BTC/USD")
    changes = run([flip], [row(100), row(101)], position="6", halted=True)
    assert fills(changes) == [(100, 6)]
    assert last(changes).state is OrderState.PARTIALLY_FILLED
    assert run([fresh], [row(100)], halted=True) == []
    assert fills(run([replace(last(changes), updated_at=0.0)], [row(99)])) == [(99, 4)], "in the next bars"


# Brackets


def bracket(side: Side = BUY, quantity: str = "10", **changes: Any) -> list[Order]:
    """Returns a market entry with a target and a stop, each 10 away from 100, and its exits."""
    far, near = ("110", "90") if side is BUY else ("90", "110")
    entry = order("e", side, quantity, role=Role.ENTRY, **{"take_profit": far, "stop_loss": near} | changes)
    return [entry, *exits_of(entry)]


def test_exits_are_held_only_reduce_and_are_good_till_cancelled() -> None:
    entry, target, guard = bracket(client_order_id="mine", expires_at=5.0, time_in_force=Force.DAY, broker_id="e")
    for each in (target, guard):
        assert look(each, "side parent opening state") == (SELL, "e", 0, OrderState.HELD)
        assert look(each, "client_order_id expires_at time_in_force broker_id") == (None, None, Force.GTC, None)
        assert look(each, "take_profit stop_loss") == (None, None)
    assert look(target, "id role kind limit_price stop_price") == ("e-tp", Role.TAKE_PROFIT, OrderKind.LIMIT, 110, None)
    assert look(guard, "id role kind limit_price stop_price") == ("e-sl", Role.STOP_LOSS, OrderKind.STOP, None, 90)
    assert exits_of(replace(entry, take_profit=None, stop_loss=None)) == []


def test_a_fill_of_the_entry_opens_the_exits() -> None:
    changes = run(bracket(), [row(100)])
    for name in ("e-tp", "e-sl"):
        assert look(last(changes, name), "state quantity updated_at") == (OrderState.OPEN, 10, START + 60)


def test_the_exits_are_as_large_as_the_open_part_of_the_entry() -> None:
    changes = run(bracket(), [row(100, volume=4), row(100, volume=3)])
    sizes = [each.quantity for each in changes if isinstance(each, Order) and each.id == "e-sl"]
    assert sizes == [4, 7]
    changes = run(bracket(), [row(100, volume=4), row(100, 111, 100, volume=1)])
    assert fills(changes, "e-tp") == [(110, 1)]
    assert look(last(changes, "e-sl"), "quantity remaining") == (3, 3)
    assert look(last(changes, "e-tp"), "quantity remaining") == (4, 3)


@pytest.mark.parametrize(
    ("side", "bar", "exit_id", "price"),
    [
        (BUY, row(100, 111, 91), "e-tp", 110),
        (BUY, row(115, 115, 91), "e-tp", 115),
        (BUY, row(100, 109, 90), "e-sl", 90),
        (BUY, row(85, 109, 80), "e-sl", 85),
        (SELL, row(100, 109, 89), "e-tp", 90),
        (SELL, row(100, 110, 91), "e-sl", 110),
    ],
)
def test_one_exit_closes_the_position_and_cancels_the_other(side: Side, bar: Row, exit_id: str, price: int) -> None:
    changes = run(bracket(side), [row(100), bar, row(100, 150, 50)])
    assert fills(changes)[1:] == [(price, 10)]
    assert fills(changes, exit_id) == [(price, 10)]
    other = "e-sl" if exit_id == "e-tp" else "e-tp"
    assert look(last(changes, other), "state reason") == (OrderState.CANCELLED, "the other exit closed the position")


@pytest.mark.parametrize("side", Side)
def test_within_one_bar_the_stop_comes_before_the_target(side: Side) -> None:
    changes = run(bracket(side), [row(100), row(100, 150, 50)])
    assert [name for name in ("e-sl", "e-tp") if fills(changes, name)] == ["e-sl"]


def test_an_exit_cancels_the_rest_of_its_entry() -> None:
    entry, *exits = bracket(kind=OrderKind.LIMIT, limit_price="100")
    changes = run([entry, *exits], [row(99, 99, 99, volume=4), row(89, 89, 89, volume=4), row(95)])
    assert fills(changes, "e") == [(99, 4)]
    assert fills(changes, "e-sl") == [(89, 4)]
    assert look(last(changes, "e"), "state filled reason") == (OrderState.CANCELLED, 4, "its exit was reached")


def test_exits_work_without_their_entry_which_has_ended() -> None:
    """Final orders are not passed to the next match."""
    changes = run(bracket(), [row(100)])
    working = [last(changes, "e-tp"), last(changes, "e-sl")]
    later = run(working, minutes([row(100, 100, 80, volume=4), row(80)], start=START + 60), position="25")
    assert fills(later) == [(90, 4), (80, 6)]
    assert look(last(later, "e-tp"), "state quantity") == (OrderState.CANCELLED, 6)


def test_in_the_entrys_bar_the_target_is_only_reached_if_the_entry_was_at_the_open() -> None:
    assert fills(run(bracket(), [row(100, 111, 95)])) == [(100, 10), (110, 10)]
    resting = bracket(kind=OrderKind.LIMIT, limit_price="100")
    assert fills(run(resting, [row(105, 111, 95)])) == [(100, 10)]
    assert fills(run(resting, [row(99, 111, 95)])) == [(99, 10), (110, 10)]
    assert fills(run(resting, [row(105, 111, 95), row(111)])) == [(100, 10), (111, 10)]


def test_in_the_entrys_bar_the_stop_fills_however_the_entry_filled() -> None:
    assert fills(run(bracket(), [row(100, 111, 90)])) == [(100, 10), (90, 10)]
    assert fills(run(bracket(kind=OrderKind.LIMIT, limit_price="100"), [row(105, 111, 90)])) == [(100, 10), (90, 10)]


@pytest.mark.parametrize(("side", "entry", "expected"), [(BUY, "105", [105, 90]), (SELL, "95", [95, 110])])
def test_a_stop_in_the_bar_of_a_late_entry_does_not_fill_at_the_open_before_it(
    side: Side, entry: str, expected: list[int]
) -> None:
    placed = bracket(side, kind=OrderKind.STOP, stop_price=entry)
    bar = row(80, 112, 79) if side is BUY else row(120, 121, 88)
    assert [price for price, _ in fills(run(placed, [bar]))] == expected


def test_a_stop_beyond_a_late_entry_fills_at_the_entrys_price() -> None:
    placed = bracket(kind=OrderKind.STOP_LIMIT, stop_price="100", limit_price="105", stop_loss="103")
    assert fills(run(placed, [row(99, 101, 98)])) == [(100, 10), (100, 10)]


def test_an_exit_fills_at_most_once_in_a_bar() -> None:
    """The entry fills fractions and its exits whole shares, so that some volume of the bar remains after them."""
    placed = [
        replace(each, symbol="AAPL", placed_at=0.0)
        for each in bracket(quantity="3.5", kind=OrderKind.LIMIT, limit_price="100")
    ]
    bars = stock_bars([row(99, 99, 99, volume=3), row(100, 100, 85, volume=2.9)])
    changes = run(placed, bars)
    ids = [each.id for each in changes if isinstance(each, Fill)]
    assert len(set(ids)) == len(ids)
    assert fills(changes, "e-sl") == [(90, 2)]


def test_an_entry_that_ends_unfilled_cancels_its_exits() -> None:
    placed = bracket(kind=OrderKind.LIMIT, limit_price="50", stop_loss="40", expires_at=START + 60.0)
    changes = run(placed, [row(100)])
    assert [each.state for each in changes if isinstance(each, Order)] == [
        OrderState.EXPIRED,
        OrderState.CANCELLED,
        OrderState.CANCELLED,
    ]
    assert last(changes, "e-sl").reason == "its entry opened nothing"


def test_an_entry_that_ends_partly_filled_keeps_its_exits() -> None:
    placed = bracket(kind=OrderKind.LIMIT, limit_price="100", expires_at=START + 60.0)
    changes = run(placed, [row(99, volume=4), row(100), row(120)])
    assert last(changes, "e").state is OrderState.EXPIRED
    assert fills(changes) == [(99, 4), (120, 4)]


def test_exits_are_cancelled_with_an_entry_only_if_they_have_nothing_to_close() -> None:
    entry, *held = bracket()
    ended = entry.to(OrderState.CANCELLED, 1.0)
    working = [each.to(OrderState.OPEN, 1.0) for each in held]
    assert [each.state for each in end_exits(ended, held, 2.0)] == [OrderState.CANCELLED] * 2
    assert end_exits(entry, held, 2.0) == []
    assert end_exits(replace(ended, filled=D(4)), working, 2.0) == []
    assert len(end_exits(replace(ended, filled=D(4)), held, 2.0)) == 2
    assert end_exits(ended, [replace(each, parent="f") for each in held], 2.0) == []


def test_the_exits_of_a_flip_are_as_large_as_the_opened_part() -> None:
    placed = bracket(opening="4")
    changes = run(placed, [row(100, volume=5), row(100, volume=3), row(100)], position="-6")
    sizes = [each.quantity for each in changes if isinstance(each, Order) and each.id == "e-sl"]
    assert sizes == [2, 4]
    only = run(bracket(opening="0"), [row(100)], position="-10")
    assert look(last(only, "e"), "state filled") == (OrderState.FILLED, 10)
    assert [last(only, name).state for name in ("e-tp", "e-sl")] == [OrderState.CANCELLED] * 2


def test_exits_stop_at_the_position_and_the_bracket_ends_with_it() -> None:
    entry, *exits = bracket(quantity="20", kind=OrderKind.LIMIT, limit_price="100")
    changes = run([entry, *exits], [row(99, volume=10)])
    working = [last(changes, name) for name in ("e", "e-tp", "e-sl")]
    sold = run(working, minutes([row(101, 101, 101), row(89, 89, 89)], start=START + 60), position="4")
    assert fills(sold, "e-sl") == [(89, 4)]
    assert [last(sold, name).state for name in ("e", "e-tp", "e-sl")] == [OrderState.CANCELLED] * 3
    gone = run(working, minutes([row(89, 89, 89), row(95)], start=START + 60), position="0")
    assert fills(gone) == []
    assert [last(gone, name).state for name in ("e", "e-tp", "e-sl")] == [OrderState.CANCELLED] * 3


def test_exits_fill_while_trading_is_halted() -> None:
    changes = run(bracket(), [row(100)])
    working = [last(changes, name) for name in ("e-tp", "e-sl")]
    later = run(working, minutes([row(89)], start=START + 60), position="10", halted=True)
    assert fills(later) == [(89, 10)]


# Any orders in any bars

price = st.integers(85, 115).map(D)
COSTS = Costs(fee=D("0.001"), slippage=D("0.0005"), volume_share=D("0.3"))


@st.composite
def some_bars(draw: st.DrawFn) -> Bars:
    rows = []
    for _ in range(draw(st.integers(1, 8))):
        low, high = sorted((draw(st.integers(80, 120)), draw(st.integers(80, 120))))
        rows.append(
            (
                float(draw(st.integers(low, high))),
                float(high),
                float(low),
                draw(st.sampled_from([0, 11, 40, 1000, 1000, 1000])),
            )
        )
    symbol = draw(st.sampled_from(["BTC/USD", "AAPL"]))
    return minutes(rows, symbol, session("2025-09-02").close - 240)


@st.composite
def some_orders(draw: st.DrawFn, symbol: str) -> list[Order]:
    start, found = float(session("2025-09-02").close - 240), list[Order]()
    for number in range(draw(st.integers(1, 5))):
        kind, side = draw(st.sampled_from([OrderKind.MARKET, *OrderKind])), draw(st.sampled_from(Side))
        quantity = draw(st.sampled_from([D(1), D(7), D("2.5"), D(20)]))
        entry = order(
            f"o{number}",
            side,
            quantity,
            symbol=symbol,
            kind=kind,
            limit_price=draw(price) if kind in {OrderKind.LIMIT, OrderKind.STOP_LIMIT} else None,
            stop_price=draw(price) if kind in {OrderKind.STOP, OrderKind.STOP_LIMIT} else None,
            opening=draw(st.sampled_from([quantity, quantity, D(0), D(1)])),
            placed_at=start + draw(st.sampled_from([-60.0, 0.0, 30.0, 120.0])),
            expires_at=draw(st.sampled_from([None, None, start + 120, start + 600])),
        )
        found.append(entry)
        if draw(st.booleans()):
            far, near = sorted((draw(price), draw(price)))
            far, near = (near, far) if side is BUY else (far, near)
            found[-1] = replace(entry, role=Role.ENTRY, take_profit=far, stop_loss=near)
            found += exits_of(found[-1])
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Order], Bars, Decimal, bool]:
    bars = draw(some_bars())
    orders = draw(some_orders(bars.instrument.symbol))
    return (
        orders,
        bars,
        draw(st.sampled_from([D(0), D(5), D(-5), D("2.5"), D(30)])),
        draw(st.sampled_from([False, False, True])),
    )


def held_after(position: Decimal, changes: Sequence[Change]) -> Decimal:
    return position + sum((each.signed for each in changes if isinstance(each, Fill)), D(0))


@given(cases())
@settings(deadline=None, max_examples=150)
def test_no_fill_is_better_than_its_bar_or_larger_than_allowed(
    case: tuple[list[Order], Bars, Decimal, bool],
) -> None:
    orders, bars, position, halted = case
    changes = match(orders, bars, position, float(bars.time[-1]) + 60, COSTS, halted=halted)
    known = {each.id: each for each in orders}
    index = {int(time): number for number, time in enumerate(bars.time)}
    opened, taken, done = (
        defaultdict[str, Decimal](Decimal),
        defaultdict[int, Decimal](Decimal),
        defaultdict[str, Decimal](Decimal),
    )
    ids, held = set[str](), position
    for each in changes:
        if isinstance(each, Order):
            before = known[each.id]
            assert before.to(each.state, 0.0).state is each.state
            assert each.filled == done[each.id] <= each.quantity
            known[each.id] = each
            continue
        order_ = known[each.order_id]
        assert each.bar is not None
        assert each.id not in ids
        ids.add(each.id)
        at = index[each.bar]
        assert each.bar >= order_.placed_at
        assert order_.expires_at is None or each.bar < order_.expires_at
        assert not order_.final
        slip = COSTS.slippage + D("1e-9")
        assert D(bars.low[at]) * (1 - slip) <= each.price <= D(bars.high[at]) * (1 + slip)
        if order_.limit_price is not None:
            assert (each.price - order_.limit_price) * each.side.sign <= 0
        assert each.fee >= each.quantity * each.price * COSTS.fee
        taken[each.bar] += each.quantity
        done[each.order_id] += each.quantity
        reducing = min(each.quantity, max(D(0), -held * each.side.sign))
        opened[each.order_id] += each.quantity - reducing
        held += each.signed
    for bar, quantity in taken.items():
        assert quantity <= D(bars.volume[index[bar]]) * COSTS.volume_share
    for each in orders:
        assert opened[each.id] <= (D(0) if halted else each.opening)
        ended = known[each.id]
        if each.role is Role.ENTRY and ended.final and not ended.filled:
            assert all(other.final for other in known.values() if other.parent == each.id)
        if each.role.exit and each.parent:
            left = sum((other.filled for other in known.values() if other.parent == each.parent), D(0))
            assert left <= opened[each.parent]


@given(cases(), st.integers(0, 8))
@settings(deadline=None, max_examples=120)
def test_bars_in_two_parts_give_the_same_as_in_one(case: tuple[list[Order], Bars, Decimal, bool], cut: int) -> None:
    orders, bars, position, halted = case
    end = float(bars.time[-1]) + 60
    middle = float(bars.time[cut]) if cut < len(bars) else end
    whole = match(orders, bars, position, end, COSTS, halted=halted)
    first = match(orders, bars.take(slice(0, cut)), position, middle, COSTS, halted=halted)
    known = {each.id: each for each in orders} | {each.id: each for each in first if isinstance(each, Order)}
    # Final orders are not among the working orders.
    working = [each for each in known.values() if not each.final]
    then = match(working, bars.take(slice(cut, None)), held_after(position, first), end, COSTS, halted=halted)
    assert first + then == whole


@given(cases())
@settings(deadline=None, max_examples=30)
def test_the_order_in_which_orders_are_given_does_not_matter(case: tuple[list[Order], Bars, Decimal, bool]) -> None:
    orders, bars, position, halted = case
    end = float(bars.time[-1]) + 60
    assert match(orders[::-1], bars, position, end, COSTS, halted=halted) == match(
        orders, bars, position, end, COSTS, halted=halted
    )


def test_closing_by_hand_cancels_the_exits() -> None:
    entry = order("e", BUY, "5", role=Role.ENTRY, take_profit="200", stop_loss="50")
    first = run([entry, *exits_of(entry)], [row(100)])
    working = [last(first, "e-tp"), last(first, "e-sl")]
    assert {each.state for each in working} == {OrderState.OPEN}
    close = order("c", SELL, "5", opening="0", placed_at=float(START + 60))
    changes = run([*working, close], minutes([row(100)], start=START + 60), position="5")
    ended = {each.id: each.state for each in changes if isinstance(each, Order)}
    assert ended == {"c": OrderState.FILLED, "e-tp": OrderState.CANCELLED, "e-sl": OrderState.CANCELLED}
