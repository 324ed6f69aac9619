"""The reason why an order waits: every text, and its agreement with the matcher."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.trading.costs import Costs
from openbell.trading.fills import Fill
from openbell.trading.halt import Halt
from openbell.trading.orders import FINAL, Order, OrderKind, OrderState, Role
from openbell.trading.waiting import Traded, traded, waiting
from tests.trading.matching import match
from tests.trading.samples import BUY, SELL, START, D, limit, minutes, order, stop

COSTS = Costs()
MONDAY, SATURDAY = parse_time("2026-01-05T15:00:00Z"), parse_time("2026-01-10T15:00:00Z")


def reason_of(placed: Order, now: float = START + 90.0, **more: Any) -> str | None:
    return waiting(placed, parse(placed.symbol), now, **more)


def volume(since: float, amount: float = 0.0, most: str = "0") -> Traded:
    return Traded(since, amount, D(most))


def test_a_market_order_names_the_minute_from_which_it_fills() -> None:
    assert reason_of(order(placed_at=START + 30.0)) == (
        "fills at the open of the next minute, from 2025-09-01T00:01:00+00:00 on"
    )
    assert reason_of(order(placed_at=START + 60.0)) == (
        "fills at the open of the next minute, from 2025-09-01T00:01:00+00:00 on"
    )
    partly = order(state=OrderState.PARTIALLY_FILLED, filled="4", updated_at=START + 180.0)
    assert reason_of(partly) == "the remainder fills at the open of the next minute, from 2025-09-01T00:03:00+00:00 on"


@pytest.mark.parametrize(
    ("placed", "words"),
    [
        (limit("a", BUY, "1", "123.40"), "rests until the price trades through 123.4; good till cancelled"),
        (stop("a", SELL, "1", "95"), "rests until the price reaches 95; good till cancelled"),
        (
            order(kind=OrderKind.STOP_LIMIT, stop_price="105", limit_price="106"),
            "rests until the price reaches 105, then until it trades through 106; good till cancelled",
        ),
        (
            order(kind=OrderKind.STOP_LIMIT, stop_price="105", limit_price="106", triggered=True),
            "rests until the price trades through 106; good till cancelled",
        ),
        (
            limit("a", BUY, "1", "99", expires_at=START + 86400.0),
            "rests until the price trades through 99; until 2025-09-02T00:00:00+00:00",
        ),
        (
            limit("a", BUY, "2", "99", state=OrderState.PARTIALLY_FILLED, filled="1"),
            "the remainder rests until the price trades through 99; good till cancelled",
        ),
    ],
)
def test_a_resting_order_names_its_price_and_its_end(placed: Order, words: str) -> None:
    assert reason_of(placed) == words


def test_a_stop_that_was_reached_waits_like_a_market_order() -> None:
    reached = stop("a", SELL, "2", "95", triggered=True, filled="1", updated_at=START + 60.0)
    assert reason_of(reached) == "the remainder fills at the open of the next minute, from 2025-09-01T00:01:00+00:00 on"


@pytest.mark.parametrize(
    ("symbol", "moment", "words"),
    [
        ("AAPL", "2026-01-05T14:29:00Z", "waits for the regular session, which opens at 2026-01-05T14:30:00+00:00"),
        ("AAPL", "2026-01-05T21:00:00Z", "waits for the regular session, which opens at 2026-01-06T14:30:00+00:00"),
        ("AAPL", "2026-01-10T15:00:00Z", "waits for the regular session, which opens at 2026-01-12T14:30:00+00:00"),
        ("AAPL", "2026-01-05T20:59:30Z", "waits for the regular session, which opens at 2026-01-06T14:30:00+00:00"),
        ("EUR/USD", "2026-01-09T22:00:00Z", "waits for the forex market, which opens at 2026-01-11T22:00:00+00:00"),
        ("EUR/USD", "2026-01-11T21:00:00Z", "waits for the forex market, which opens at 2026-01-11T22:00:00+00:00"),
        ("EUR/USD", "2026-07-11T12:00:00Z", "waits for the forex market, which opens at 2026-07-12T21:00:00+00:00"),
    ],
)
def test_while_its_market_is_closed_the_reason_says_when_it_opens(symbol: str, moment: str, words: str) -> None:
    at = parse_time(moment)
    assert reason_of(order(symbol=symbol, placed_at=at), at) == words
    resting = limit("a", BUY, "1", "99", symbol=symbol, placed_at=at, expires_at=at + 86400)
    assert str(reason_of(resting, at)).startswith(f"{words}; rests until the price trades through 99; until 2026-")


@pytest.mark.parametrize(("symbol", "at"), [("AAPL", MONDAY), ("EUR/USD", MONDAY), ("BTC/USD", SATURDAY)])
def test_while_its_market_is_open_the_reason_does_not_mention_it(symbol: str, at: float) -> None:
    assert reason_of(order(symbol=symbol, placed_at=at), at).startswith("fills at the open")  # type: ignore[union-attr]


def test_an_order_of_yesterday_waits_for_todays_session() -> None:
    placed = order(symbol="AAPL", placed_at=MONDAY)
    assert reason_of(placed, SATURDAY) == "waits for the regular session, which opens at 2026-01-12T14:30:00+00:00"


def test_without_volume_the_reason_says_since_when() -> None:
    since = "the minutes since 2025-09-01T00:01:00+00:00 had"
    none, little = volume(START + 60), volume(START + 60, 3.0)
    assert reason_of(order(), traded=none) == f"waits for volume: {since} none"
    assert reason_of(order(), traded=little) == f"waits for volume: {since} too little"
    assert reason_of(limit("a", BUY, "1", "99"), traded=none) == (
        f"waits for volume: {since} none; rests until the price trades through 99; good till cancelled"
    )
    assert "volume" not in str(reason_of(order(), traded=volume(START + 60, 30.0, "3")))


def test_while_trading_is_halted_only_the_opening_part_waits() -> None:
    assert reason_of(order(), halted=Halt("the news")) == "trading is halted: the news; until openbell resume"
    assert "halted" not in str(reason_of(order("a", SELL, opening="0"), halted=Halt("the news")))
    flip = reason_of(order("a", SELL, "10", opening="4"), halted=Halt("the news"))
    assert flip == (
        "what it opens waits: trading is halted: the news; until openbell resume; "
        "fills at the open of the next minute, from 2025-09-01T00:00:00+00:00 on"
    )


def test_while_what_is_held_has_no_price_what_opens_waits_and_what_reduces_does_not() -> None:
    waits = "nothing is opened until what is held has a price: there is none of ETH/USD"
    assert reason_of(order(), unpriced="there is none of ETH/USD") == waits
    assert "price" not in str(reason_of(order("a", SELL, opening="0"), unpriced="there is none of ETH/USD"))
    flip = reason_of(order("a", SELL, "10", opening="4"), unpriced="there is none of ETH/USD")
    assert str(flip).startswith(f"what it opens waits: {waits}; fills at the open of the next minute")
    assert "halted" in str(reason_of(order(), halted=Halt("the news"), unpriced="there is none of ETH/USD"))


def test_while_its_bars_cannot_be_read_it_says_so() -> None:
    assert reason_of(limit("a", BUY, "1", "99"), unread="the disk is gone") == "waits: the disk is gone"


def test_an_exit_is_held_until_its_entry_fills() -> None:
    held = limit("e-tp", SELL, "1", "110", opening="0", role=Role.TAKE_PROFIT, parent="e", state=OrderState.HELD)
    assert reason_of(held, halted=Halt("the news")) == "held until its entry e fills"


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_final_order_has_no_waiting_reason(state: OrderState) -> None:
    assert reason_of(order(state=state)) is None


@pytest.mark.parametrize("state", sorted(set(OrderState) - FINAL))
def test_a_working_order_has_a_waiting_reason_unless_one_is_recorded(state: OrderState) -> None:
    assert reason_of(order(state=state, parent="e"))
    assert reason_of(replace(order(state=state), reason="trading was halted")) is None


def test_at_a_broker_the_reason_says_only_what_this_desk_knows() -> None:
    assert reason_of(order(), on_paper=False, traded=volume(0)) == "waits for the broker to fill it"
    closed = reason_of(order(symbol="AAPL", placed_at=SATURDAY), SATURDAY, on_paper=False)
    assert closed == (
        "waits for the regular session, which opens at 2026-01-12T14:30:00+00:00; waits for the broker to fill it"
    )
    for state in (OrderState.PENDING, OrderState.UNKNOWN, OrderState.CANCELLING):
        assert "broker" in str(reason_of(order(state=state), on_paper=False))


# The volume


def test_only_minutes_in_which_an_order_could_fill_count() -> None:
    bars = minutes([(1.0, 1.0, 1.0, 500.0), (1.0, 1.0, 1.0, 0.0), (1.0, 1.0, 1.0, 0.0)])
    assert traded(order(), bars, COSTS) == Traded(START, 500.0, D(10))
    assert traded(order(placed_at=START + 1.0), bars, COSTS) == volume(START + 60)
    assert traded(order(updated_at=START + 120.0), bars, COSTS) == volume(START + 120)
    assert traded(order(placed_at=START + 121.0), bars, COSTS) is None
    assert traded(order(symbol="EUR/USD"), minutes([(1.0, 1.0, 1.0, 0.0)], "EUR/USD"), COSTS) is None
    early = int(MONDAY) - 3600
    stock = order("a", BUY, "5", symbol="AAPL", placed_at=float(early))
    before_the_session = minutes([(1.0, 1.0, 1.0, 0.0)], "AAPL", early)
    assert traded(stock, before_the_session, COSTS) is None
    nine = minutes([(1.0, 1.0, 1.0, 9.0)] * 3, "AAPL", int(MONDAY))
    assert traded(stock, nine, COSTS) == volume(MONDAY, 27.0)
    assert traded(replace(stock, quantity=D("5.5")), nine, COSTS) == Traded(MONDAY, 27.0, D("0.9"))


@given(
    st.lists(st.sampled_from([0.0, 3.0, 9.0, 10.0, 400.0]), min_size=1, max_size=6),
    st.sampled_from(["AAPL", "BTC/USD", "EUR/USD"]),
    st.sampled_from(["2", "2.5"]),
    st.integers(-90, 400),
)
@settings(deadline=None, max_examples=200)
def test_a_market_order_waits_for_volume_exactly_while_nothing_fills_it(
    volumes: list[float], symbol: str, quantity: str, late: int
) -> None:
    start = int(MONDAY)
    placed = order("a", BUY, quantity, symbol=symbol, placed_at=float(start + late))
    bars = minutes([(100.0, 100.0, 100.0, each) for each in volumes], symbol, start)
    until = start + 60 * len(volumes)
    filled = any(isinstance(each, Fill) for each in match([placed], bars, D(0), until, COSTS))
    reason = reason_of(placed, float(until), traded=traded(placed, bars, COSTS))
    assert reason
    matched = any(time >= placed.placed_at for time in bars.time.tolist())
    assert ("waits for volume" in reason) == (matched and not filled)
