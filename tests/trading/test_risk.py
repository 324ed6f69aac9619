"""The risk rules: when each one refuses, what always passes, and the largest size that passes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.trading.book import Book, replay
from openbell.trading.halt import Halt
from openbell.trading.orders import EXPOSED, Order, OrderKind, OrderState, Role, Side
from openbell.trading.risk import Proposal, RiskLimits, Situation, Verdict, judge, reducible
from tests.trading.samples import BUY, SELL, D, fill, limit, look, order, stop

BTC, ETH, EUR = "BTC/USD", "ETH/USD", "EUR/USD"
PRICES = {BTC: D(100), ETH: D(10), "AAPL": D(50), EUR: D(100)}
FREE = RiskLimits(order_share=D(0), symbol_share=D(0), positions=0, daily_loss=D(0), collar=D(0), short=True)
"""Limits of which only the balance applies."""


def flat(cash: str = "10000") -> Book:
    return Book(D(cash))


def holding(signed: str, cash: str = "10000", symbol: str = BTC) -> Book:
    side = BUY if D(signed) > 0 else SELL
    return replay(D(cash), [fill(side, abs(D(signed)), "100", symbol=symbol)])


def verdict(
    quantity: str | Decimal = "1",
    side: Side = BUY,
    *,
    book: Book | None = None,
    limits: RiskLimits = FREE,
    symbol: str = BTC,
    price: str | None = None,
    is_limit: bool = True,
    reduce_only: bool = False,
    **situation: Any,
) -> Verdict:
    proposal = Proposal(symbol, side, D(quantity), None if price is None else D(price), is_limit, reduce_only)
    return judge(proposal, Situation(book or flat(), PRICES, **situation), limits)


def refused(rule: str, *words: str, **case: Any) -> Verdict:
    found = verdict(**case)
    assert (found.valid, found.rule, found.risk_score) == (False, rule, D(1))
    for word in words:
        assert word in found.reason
    return found


def test_an_order_within_all_limits_passes() -> None:
    found = verdict("1", limits=RiskLimits())
    assert found == Verdict(True, "", "", D(10), D("0.1"), D(1))


# Rules that no size passes


def test_nothing_opens_while_trading_is_halted() -> None:
    found = refused("halt", "halted: by the operator", "only reducing", halted=Halt("by the operator"))
    assert found.max_size == 0


def test_only_allowed_symbols_are_opened() -> None:
    only = replace(FREE, symbols=frozenset({ETH}))
    assert refused("symbols", BTC, "OPENBELL_RISK_SYMBOLS", limits=only).max_size == 0
    assert verdict(symbol=ETH, limits=only).valid


def test_nothing_opens_on_a_stale_price() -> None:
    found = refused("stale_price", stale="the price of BTC/USD is 7 minutes old")
    assert look(found, "reason max_size") == ("the price of BTC/USD is 7 minutes old", 0)


@pytest.mark.parametrize(
    ("price", "valid"), [("95", True), ("105", True), ("94.999999999999", False), ("105.01", False)]
)
@pytest.mark.parametrize("side", Side)
def test_a_price_must_be_near_the_last(price: str, valid: bool, side: Side) -> None:
    narrow = replace(FREE, collar=D("0.05"))
    found = verdict(price=price, side=side, limits=narrow, symbol=EUR)
    assert (found.valid, found.rule) == (valid, "" if valid else "collar")
    if not valid:
        assert "OPENBELL_RISK_COLLAR" in found.reason
        assert price in found.reason
    assert verdict(price=price, side=side, limits=FREE, symbol=EUR).valid
    assert verdict(side=side, limits=narrow, symbol=EUR).valid


def test_only_so_many_positions_are_open_or_being_opened() -> None:
    two = replace(FREE, positions=2)
    book = replay(D(10000), [fill(BUY, "1", "100"), fill(SELL, "1", "10", symbol=ETH)])
    refused("positions", "2 positions", "OPENBELL_RISK_POSITIONS", symbol="AAPL", book=book, limits=two)
    assert verdict(symbol=ETH, book=book, limits=two).valid
    resting = (limit("a", BUY, "1", "9", symbol=ETH),)
    refused("positions", symbol="AAPL", book=holding("1"), orders=resting, limits=two)
    assert verdict(symbol=ETH, book=holding("1"), orders=resting, limits=two).valid
    reducing = (limit("a", BUY, "1", "9", symbol=ETH, opening="0"),)
    assert verdict(symbol="AAPL", book=holding("1"), orders=reducing, limits=two).valid


@pytest.mark.parametrize(("start", "valid"), [("10526.3", True), ("10526.4", False), ("10000", True), ("9000", True)])
def test_after_the_daily_loss_nothing_opens(start: str, valid: bool) -> None:
    careful = replace(FREE, daily_loss=D("0.05"))
    found = verdict(day_start=D(start), limits=careful)
    assert (found.valid, found.rule) == (valid, "" if valid else "daily_loss")
    if not valid:
        assert "OPENBELL_RISK_DAILY_LOSS" in found.reason
    assert verdict(day_start=D(start), limits=FREE).valid


def test_the_daily_loss_is_reached_exactly() -> None:
    careful = replace(FREE, daily_loss=D("0.05"))
    refused("daily_loss", "5", book=flat("9500"), day_start=D(10000), limits=careful)
    assert verdict(book=flat("9500.00000001"), day_start=D(10000), limits=careful).valid


@pytest.mark.parametrize("start", ["0", "-100"])
@pytest.mark.parametrize("cash", ["0", "-100", "100"])
def test_a_day_that_starts_without_equity_raises_nothing(start: str, cash: str) -> None:
    found = verdict(book=flat(cash), day_start=D(start), limits=replace(FREE, daily_loss=D("0.05")))
    assert found.rule == ("" if D(cash) > 0 else "equity")
    assert 0 <= found.risk_score <= 1


def test_without_equity_nothing_opens() -> None:
    assert refused("equity", "no equity", book=flat("0")).max_size == 0
    refused("equity", side=SELL, symbol=EUR, book=replay(D(100), [fill(SELL, "10", "90", symbol=EUR)]))


def test_rules_without_size_are_checked_in_order() -> None:
    worst = replace(FREE, symbols=frozenset({ETH}), collar=D("0.01"), positions=1, daily_loss=D("0.01"), short=False)
    book = replay(D(-5), [fill(BUY, "1", "10", symbol=ETH)])
    case: dict[str, Any] = {"halted": Halt("so"), "stale": "old", "day_start": D(100), "price": "200", "book": book}
    case |= {"side": SELL, "symbol": EUR}
    found = []
    for mended in (
        {},
        {"halted": None},
        {"limits": replace(worst, symbols=frozenset())},
        {"limits": replace(worst, symbols=frozenset(), short=True)},
        {"stale": None},
        {"price": None},
        {"limits": replace(worst, symbols=frozenset(), short=True, positions=0)},
        {"day_start": None},
    ):
        case = {"limits": worst} | case | mended
        found.append(verdict(**case).rule)
    assert found == ["halt", "symbols", "short", "stale_price", "collar", "positions", "daily_loss", "equity"]


@pytest.mark.parametrize(("symbol", "words"), [(EUR, "OPENBELL_RISK_SHORT"), (BTC, "spot crypto cannot be sold short")])
def test_a_symbol_that_is_not_held_cannot_be_sold(symbol: str, words: str) -> None:
    case: dict[str, Any] = {"side": SELL, "symbol": symbol, "limits": replace(FREE, short=False)}
    assert refused("short", f"0 of {symbol} is held", words, **case).max_size == 0
    long = holding("0.81", symbol=symbol)
    assert refused("short", f"0.81 of {symbol} is held", words, quantity="2", book=long, **case).max_size == D("0.81")
    assert verdict("0.81", book=long, **case) == Verdict(True, "", "", D("0.81"), D(0), D(0))
    assert refused("short", book=holding("-2", symbol=symbol), **case).max_size == 0


def test_a_quantity_that_resting_orders_sell_cannot_be_sold_again() -> None:
    case: dict[str, Any] = {"side": SELL, "book": holding("10"), "orders": (limit("a", SELL, "4", "100", opening="0"),)}
    found = refused("short", "10 of BTC/USD is held, of which resting orders sell 4", quantity="6.1", **case)
    assert found.max_size == 6
    assert verdict("6", **case).valid
    assert verdict("10", fills_cut_to_position=True, **case).valid, (
        "fills are cut to the position: two orders cannot sell it twice"
    )


@pytest.mark.parametrize("cut", [False, True])
def test_shorts_are_opened_only_where_they_are_allowed_and_never_of_spot_crypto(cut: bool) -> None:
    assert verdict(side=SELL, symbol="AAPL", limits=FREE, fills_cut_to_position=cut).valid
    assert verdict(side=SELL, symbol=EUR, limits=FREE, fills_cut_to_position=cut).valid
    assert refused("short", side=SELL, symbol=BTC, limits=FREE, fills_cut_to_position=cut).max_size == 0
    assert not RiskLimits().short


def test_a_short_may_be_bought_back_and_flipped_whatever_the_setting() -> None:
    long_only = replace(FREE, short=False)
    assert verdict("12", BUY, symbol=EUR, book=holding("-10", symbol=EUR), limits=long_only).opening == 2


# Rules by size


def test_an_order_needs_enough_balance() -> None:
    found = refused("balance", "10,000.01 USD", "10,000.00 USD is available", quantity="100.0001")
    assert found.max_size == 100
    assert verdict("100").valid
    assert verdict("100").risk_score == 1


def test_the_fee_is_reserved() -> None:
    found = verdict("100", limits=replace(FREE, fee=D("0.001")))
    assert (found.rule, found.max_size) == ("balance", D("99.9000999"))


def test_leverage_allows_more_and_the_fee_is_of_the_whole_value() -> None:
    assert verdict("1", limits=replace(FREE, leverage=D(3))).max_size == 300
    assert verdict("1", limits=replace(FREE, leverage=D(2), fee=D("0.01"))).max_size == D("196.07843137")


def test_the_largest_value_of_an_order() -> None:
    small = replace(FREE, order_share=D("0.1"))
    assert refused("order", "1,000.00 USD", "OPENBELL_RISK_ORDER_SHARE", quantity="10.1", limits=small).max_size == 10
    plain = replace(FREE, order_notional=D(250))
    assert refused("order", "OPENBELL_RISK_ORDER_NOTIONAL", quantity="2.51", limits=plain).max_size == D("2.5")
    assert verdict("2.5", limits=plain).valid


def test_the_largest_value_of_a_symbol_includes_positions_and_orders() -> None:
    share = replace(FREE, symbol_share=D("0.25"))
    case: dict[str, Any] = {"book": holding("10"), "orders": (limit("a", BUY, "5", "100"),), "limits": share}
    assert refused("symbol", BTC, "OPENBELL_RISK_SYMBOL_SHARE", quantity="10.1", **case).max_size == 10
    assert verdict("10", **case).valid
    assert verdict("50", symbol="AAPL", **case).valid
    plain = replace(FREE, symbol_notional=D(1500))
    found = refused("symbol", "OPENBELL_RISK_SYMBOL_NOTIONAL", quantity="6", book=holding("10"), limits=plain)
    assert found.max_size == 5


def test_the_balance_is_checked_before_the_value_limits() -> None:
    found = refused("balance", quantity="1000", limits=RiskLimits())
    assert found.max_size == 10
    assert refused("order", quantity="11", limits=RiskLimits()).max_size == 10
    assert refused("symbol", quantity="6", limits=RiskLimits(), book=holding("20")).max_size == 5


def test_a_sell_is_valued_at_the_higher_price_and_a_buy_limit_at_its_limit() -> None:
    assert verdict(price="80").max_size == 125
    assert verdict(price="125").max_size == 80
    assert verdict(side=SELL, symbol=EUR, price="80").max_size == 100
    assert verdict(side=SELL, symbol=EUR, price="125").max_size == 80
    assert verdict(price="80", is_limit=False).max_size == 100
    assert verdict(price="125", is_limit=False).max_size == 80


# What rests


@pytest.mark.parametrize("state", list(OrderState))
def test_an_order_that_may_fill_counts_as_filled(state: OrderState) -> None:
    waiting = replace(limit("a", BUY, "40", "50"), state=state)
    assert verdict(orders=(waiting,)).max_size == (80 if state in EXPOSED else 100)


def test_orders_are_valued_at_their_highest_cost() -> None:
    assert verdict(orders=(order("a", BUY, "40"),)).max_size == 60
    assert verdict(orders=(stop("a", BUY, "40", "120"),)).max_size == 52
    assert verdict(orders=(limit("a", SELL, "40", "120"),)).max_size == 52
    assert verdict(orders=(limit("a", SELL, "40", "80"),)).max_size == 60
    assert verdict(orders=(limit("a", BUY, "40", "100", filled="30"),)).max_size == 90
    assert verdict(orders=(order("a", BUY, "40", symbol=ETH),)).max_size == 96


def test_resting_orders_count_with_their_fees() -> None:
    """Otherwise two orders that each can be paid could not be paid together."""
    fee = replace(FREE, fee=D("0.01"))
    first = verdict("50", limits=fee)
    assert first.valid
    found = verdict(orders=(order("a", BUY, "50"),), limits=fee).max_size
    assert found == D("49.00990099")
    book = replay(D(10000), [fill(BUY, "50", "100", "50"), fill(BUY, found, "100", found)])
    assert 0 <= book.cash < D("0.0001")


def test_a_quantity_that_a_resting_order_reduces_cannot_be_reduced_again() -> None:
    situation = Situation(holding("10"), PRICES, (limit("a", SELL, "4", "100", opening="0"),))
    assert reducible(SELL, BTC, situation) == 6
    assert reducible(BUY, BTC, situation) == 0
    flip = limit("b", SELL, "12", "100", opening="4")
    assert reducible(SELL, BTC, replace(situation, orders=(flip,))) == 2
    found = judge(Proposal(BTC, SELL, D(10)), situation, FREE)
    assert found.opening == 4
    assert judge(Proposal(BTC, SELL, D(6)), replace(situation, halted=Halt("so")), FREE).valid
    assert not judge(Proposal(BTC, SELL, D("6.1")), replace(situation, halted=Halt("so")), FREE).valid


def exits(state: OrderState, parent: str = "e") -> tuple[Order, ...]:
    common: dict[str, Any] = {"opening": "0", "parent": parent, "state": state}
    return (
        limit(f"{parent}-tp", SELL, "4", "120", role=Role.TAKE_PROFIT, **common),
        stop(f"{parent}-sl", SELL, "4", "80", role=Role.STOP_LOSS, **common),
    )


@pytest.mark.parametrize(
    "state", [OrderState.OPEN, OrderState.PARTIALLY_FILLED, OrderState.HELD, OrderState.CANCELLED, OrderState.LOST]
)
def test_exits_do_not_count_so_that_a_bracket_can_always_be_closed_by_hand(state: OrderState) -> None:
    both = exits(state) + exits(state, "f")
    assert reducible(SELL, BTC, Situation(holding("10"), PRICES, both)) == 10
    assert verdict(orders=both).max_size == 100


# What only reduces

worst_of_all: dict[str, Any] = {
    "halted": Halt("by the operator"),
    "stale": "old",
    "day_start": D(10**6),
    "price": "9999",
    "limits": RiskLimits(
        order_share=D("1e-9"),
        symbol_share=D("1e-9"),
        order_notional=D("0.01"),
        symbol_notional=D("0.01"),
        positions=1,
        symbols=frozenset({ETH}),
    ),
}


@pytest.mark.parametrize("cash", ["10000", "-5000"])
@pytest.mark.parametrize(("held", "side"), [("10", SELL), ("-10", BUY)])
@pytest.mark.parametrize("quantity", ["0.00000001", "3", "10"])
def test_an_order_that_only_reduces_always_passes(cash: str, held: str, side: Side, quantity: str) -> None:
    found = verdict(quantity, side, book=holding(held, cash), **worst_of_all)
    assert found == Verdict(True, "", "", D(10), D(0), D(0))


@pytest.mark.parametrize(("held", "side"), [("10", SELL), ("-10", BUY)])
def test_a_flip_is_judged_by_the_quantity_that_it_opens(held: str, side: Side) -> None:
    beyond = verdict("10.00000001", side, book=holding(held), **worst_of_all)
    assert look(beyond, "valid rule max_size opening") == (False, "halt", 10, D("1e-8"))
    case: dict[str, Any] = {"side": side, "symbol": EUR, "book": holding(held, symbol=EUR)}
    small = replace(FREE, order_share=D("0.1"))
    assert verdict("20", limits=small, **case).valid
    assert verdict("20", limits=small, **case).max_size == 20
    assert verdict("20.1", limits=small, **case).rule == "order"
    symbol = replace(FREE, symbol_share=D("0.1"))
    assert verdict("1", limits=symbol, **case).max_size == 20
    assert verdict("1", **case).max_size == 110


@pytest.mark.parametrize(("held", "side"), [("10", SELL), ("-10", BUY)])
def test_a_reduce_only_order_larger_than_the_position_is_refused(held: str, side: Side) -> None:
    case: dict[str, Any] = {"side": side, "reduce_only": True}
    book = holding(held, symbol=EUR)
    assert verdict("10", symbol=EUR, book=book, **case, **worst_of_all) == Verdict(True, "", "", D(10), D(0), D(0))
    beyond = refused("reduce_only", "only 10 of EUR/USD", quantity="10.00000001", symbol=EUR, book=book, **case)
    assert look(beyond, "max_size opening") == (10, D("1e-8"))
    for nothing in (flat(), holding(str(-D(held)), symbol=EUR), holding(held)):
        found = refused("reduce_only", f"nothing of EUR/USD for a {side} to reduce", symbol=EUR, book=nothing, **case)
        assert found.max_size == 0
    claimed = (limit("a", side, "4", "100", opening="0", symbol=EUR),)
    assert refused("reduce_only", quantity="7", symbol=EUR, book=book, orders=claimed, **case).max_size == 6


# Any situation


def scaled(low: int, high: int, places: int) -> st.SearchStrategy[Decimal]:
    return st.integers(low, high).map(lambda units: D(units).scaleb(-places))


quantity = st.integers(1, 50).map(D) | scaled(1, 10**11, 8) | scaled(1, 10**17, 8)
price = st.sampled_from([D(1), D(10), D(100)]) | scaled(10**6, 10**15, 12) | scaled(1, 10**7, 12)
symbol = st.sampled_from([BTC, EUR, "AAPL"])
share = st.sampled_from([D(0), D("0.1"), D("0.25"), D(1), D("0.333333")])
notional = st.sampled_from([D(0), D(1000), D("123.456789")])


@st.composite
def resting(draw: st.DrawFn, number: int) -> Order:
    amount, kind = draw(quantity), draw(st.sampled_from(OrderKind))
    role = draw(st.sampled_from([Role.SINGLE, Role.SINGLE, Role.ENTRY, Role.TAKE_PROFIT, Role.STOP_LOSS]))
    return order(
        f"o{number}",
        draw(st.sampled_from(Side)),
        amount,
        symbol=draw(symbol),
        kind=kind,
        limit_price=draw(price) if kind in {OrderKind.LIMIT, OrderKind.STOP_LIMIT} else None,
        stop_price=draw(price) if kind in {OrderKind.STOP, OrderKind.STOP_LIMIT} else None,
        state=draw(st.sampled_from(sorted(EXPOSED | {OrderState.HELD, OrderState.LOST}))),
        opening=D(0) if role.exit else draw(st.sampled_from([D(0), amount, min(amount, D(1))])),
        role=role,
        parent=draw(st.sampled_from(["e", "f"])) if role.exit else None,
    )


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    held = draw(
        st.lists(
            st.builds(fill, st.sampled_from(Side), quantity, price, scaled(0, 10**9, 8), symbol=symbol), max_size=3
        )
    )
    return Situation(
        replay(draw(scaled(-(10**9), 10**14, 4)), held),
        {each: draw(price) for each in (BTC, EUR, "AAPL")},
        tuple(draw(resting(number)) for number in range(draw(st.integers(0, 3)))),
        draw(st.none() | scaled(0, 10**14, 4)),
        draw(st.sampled_from([None, None, None, None, Halt("so")])),
        draw(st.sampled_from([None, None, None, None, "old"])),
    )


reduce_only = st.sampled_from([False, False, False, True])
proposals = st.builds(Proposal, symbol, st.sampled_from(Side), quantity, st.none() | price, st.booleans(), reduce_only)
limitses = st.builds(
    RiskLimits,
    share,
    share,
    notional,
    notional,
    st.sampled_from([0, 1, 20]),
    st.sampled_from([D(0), D("0.05")]),
    st.sampled_from([D(1), D(2), D("3.7")]),
    st.sampled_from([D(0), D(0), D("0.05"), D(100)]),
    st.just(frozenset[str]()),
    st.sampled_from([D(0), D("0.001"), D("0.00075")]),
    st.sampled_from([True, True, False]),
)


def step_of(size: Decimal) -> Decimal:
    """Returns the smallest step of a size: 1e-8, or the last of the 15 digits that a JSON number carries."""
    return max(D("1e-8"), D(1).scaleb(size.adjusted() - 14)) if size else D("1e-8")


@given(proposals, situations(), limitses, st.lists(quantity, max_size=4))
@settings(deadline=None, max_examples=120)
def test_the_largest_size_passes_and_the_next_larger_one_does_not(
    proposal: Proposal, situation: Situation, limits: RiskLimits, sizes: list[Decimal]
) -> None:
    largest = judge(proposal, situation, limits).max_size
    step = step_of(largest)
    assert largest >= 0
    assert D(repr(float(largest))) == largest
    assert largest % D("1e-8") == 0
    around = [largest, largest - step, largest * D("0.5"), largest + step, largest + 2 * step]
    for size in [*around, *sizes]:
        if size <= 0:
            continue
        found = judge(replace(proposal, quantity=size), situation, limits)
        assert found.max_size == largest
        assert 0 <= found.risk_score <= 1
        assert found.valid == (found.rule == "") == (found.reason == "")
        if size <= largest:
            assert found.valid
        elif size >= largest + step:
            assert not found.valid
            assert found.risk_score == 1


@given(proposals, situations(), limitses)
@settings(deadline=None, max_examples=120)
def test_the_rules_by_size_agree_with_fractions(proposal: Proposal, situation: Situation, limits: RiskLimits) -> None:
    """An independent implementation of the rules by size, in exact fractions."""
    found = judge(proposal, situation, limits)
    last_prices = {name: Fraction(value) for name, value in situation.prices.items()}
    book, last = situation.book, last_prices[proposal.symbol]
    claimed, waiting, here = Fraction(0), Fraction(0), Fraction(0)
    for each in situation.orders:
        if each.state not in EXPOSED or each.role.exit:
            continue
        if each.symbol == proposal.symbol and each.side is proposal.side:
            claimed += Fraction(each.quantity - each.opening)
        prices = [Fraction(at) for at in (each.limit_price or each.stop_price,) if at]
        if not prices or each.limit_price is None or each.side is SELL:
            prices.append(last_prices[each.symbol])
        worth = Fraction(each.opening) * max(prices)
        waiting += worth
        here += worth if each.symbol == proposal.symbol else 0
    held = Fraction(book.quantity(proposal.symbol))
    free = max(Fraction(0), -held * proposal.side.sign - claimed)
    opening = max(Fraction(0), Fraction(proposal.quantity) - free)
    assert Fraction(found.opening) == opening
    if not opening:
        assert found.valid
        return
    if proposal.reduce_only:
        assert found.rule == "reduce_only"
        return
    if proposal.side is SELL and (proposal.symbol == BTC or not limits.short):
        assert found.rule in {"halt", "short"}
        return
    exposure = sum((abs(Fraction(p.quantity)) * last_prices[name] for name, p in book.positions.items()), Fraction(0))
    equity = Fraction(book.cash) + sum(
        (Fraction(p.quantity) * last_prices[name] for name, p in book.positions.items()), Fraction(0)
    )
    if found.rule in {"halt", "stale_price", "collar", "positions", "daily_loss", "equity"}:
        return
    assert equity > 0
    counted = [Fraction(proposal.price)] if proposal.price else []
    if not counted or not proposal.limit or proposal.side is SELL:
        counted.append(last)
    worth = opening * max(counted)
    leverage, fee = Fraction(limits.leverage), Fraction(limits.fee)
    tied = exposure + waiting - free * last
    broken = []
    if (worth + tied) / leverage + (worth + waiting) * fee > equity:
        broken.append("balance")
    caps = [Fraction(limits.order_share) * equity, Fraction(limits.order_notional)]
    if any(cap and worth > cap for cap in caps):
        broken.append("order")
    caps = [Fraction(limits.symbol_share) * equity, Fraction(limits.symbol_notional)]
    if any(cap and abs(held) * last + here - free * last + worth > cap for cap in caps):
        broken.append("symbol")
    assert found.rule == (broken[0] if broken else "")


def test_a_size_of_more_than_15_digits_is_rounded_down() -> None:
    found = verdict(side=SELL, book=holding("12345678.12345678", "1e9"), halted=Halt("so"))
    assert found.max_size == D("12345678.1234567")
    assert verdict("12345678.12345678", SELL, book=holding("12345678.12345678", "1e9"), halted=Halt("so")).valid


def test_a_value_that_rounds_to_its_limit_is_said_to_be_more() -> None:
    small = replace(FREE, order_share=D("0.1"))
    refused(
        "order", "worth more than 1,000.00 USD, and an order may be worth 1,000.00", quantity="10.00001", limits=small
    )
    narrow = replace(FREE, collar=D("0.05"))
    refused("collar", "is more than 5 % from the last", price="105.000000001", limits=narrow)
