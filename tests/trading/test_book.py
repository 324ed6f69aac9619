"""The book against an independent calculation of the same fills in fractions."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.trading import amounts
from openbell.trading.book import Book, Position, margin, replay
from openbell.trading.fills import Fill
from openbell.trading.orders import Side
from tests.trading.samples import BUY, SELL, D, fill, look

CASH = D("100000.123")
SYMBOLS = ("BTC/USD", "AAPL", "EUR/USD")


@dataclass
class Slow:
    """Average cost of one position in exact fractions."""

    quantity: Fraction = Fraction(0)
    average: Fraction = Fraction(0)
    realised: Fraction = Fraction(0)
    closes: int = 0
    """The number of partial closes; the book rounds once in each."""

    def take(self, signed: Fraction, price: Fraction) -> None:
        closing = min(abs(signed), abs(self.quantity)) if signed * self.quantity < 0 else Fraction(0)
        sign = 1 if self.quantity > 0 else -1
        self.realised += closing * sign * (price - self.average)
        if 0 < closing < abs(self.quantity):
            self.closes += 1
        opening = abs(signed) - closing
        left = abs(self.quantity) - closing
        if opening:
            self.average = (left * self.average + opening * price) / (left + opening)
        self.quantity += signed


@dataclass
class Ledger:
    """All symbols in exact fractions."""

    cash: Fraction
    held: dict[str, Slow] = field(default_factory=lambda: {symbol: Slow() for symbol in SYMBOLS})

    def take(self, each: Fill) -> None:
        signed = Fraction(each.quantity) * (1 if each.side is Side.BUY else -1)
        self.cash -= signed * Fraction(each.price) + Fraction(each.fee)
        self.held[each.symbol].take(signed, Fraction(each.price))


def scaled(low: int, high: int, places: int) -> st.SearchStrategy[Decimal]:
    return st.integers(low, high).map(lambda units: D(units).scaleb(-places))


# A few round numbers, so that positions close and flip, and many odd ones, so that divisions have remainders.
quantity = st.sampled_from([D(1), D(2), D(3), D("0.5")]) | scaled(1, 10**12, 8) | scaled(1, 10**3, 8)
price = st.sampled_from([D(100), D(101), D("99.5")]) | scaled(1, 10**17, 12) | scaled(1, 10**4, 12)
a_fill = st.builds(
    fill,
    st.sampled_from(Side),
    quantity,
    price,
    scaled(0, 10**10, 8),
    symbol=st.sampled_from(SYMBOLS),
    at=st.integers(0, 10**9).map(float),
)
flows = st.lists(a_fill, max_size=25)
last_prices = st.fixed_dictionaries(dict.fromkeys(SYMBOLS, price))


@given(flows)
@settings(deadline=None, max_examples=200)
def test_cash_and_costs_are_the_starting_cash_and_the_profit_exactly(flow: list[Fill]) -> None:
    book = Book(CASH)
    for each in flow:
        book = book.after(each)
        with amounts.exact():
            costs = sum((position.cost for position in book.positions.values()), D(0))
            assert book.cash + costs == CASH + book.realised - book.fees
    assert book.count == len(flow)
    assert Fraction(book.fees) == sum((Fraction(each.fee) for each in flow), Fraction(0))


@given(flows, last_prices)
@settings(deadline=None, max_examples=150)
def test_equity_is_the_starting_cash_and_all_profit_less_fees(flow: list[Fill], at: dict[str, Decimal]) -> None:
    book = replay(CASH, flow)
    with amounts.exact():
        assert book.equity(at) == CASH + book.realised + book.unrealised(at) - book.fees
        worth = [position.quantity * at[symbol] for symbol, position in book.positions.items()]
        assert book.equity(at) == book.cash + sum(worth, D(0))
        assert book.exposure(at) == sum((abs(each) for each in worth), D(0))


@given(flows)
@settings(deadline=None, max_examples=200)
def test_it_agrees_with_average_cost_in_fractions(flow: list[Fill]) -> None:
    book, slow = Book(CASH), Ledger(Fraction(CASH))
    for each in flow:
        book = book.after(each)
        slow.take(each)
        assert Fraction(book.cash) == slow.cash
    rounding = Fraction(1, 10**8)
    realised = sum((each.realised for each in slow.held.values()), Fraction(0))
    closes = sum(each.closes for each in slow.held.values())
    assert abs(Fraction(book.realised) - realised) <= closes * rounding
    for symbol, held in slow.held.items():
        assert Fraction(book.quantity(symbol)) == held.quantity
        assert (symbol in book.positions) == bool(held.quantity)
        if held.quantity:
            cost = Fraction(book.positions[symbol].cost)
            assert abs(cost - held.quantity * held.average) <= held.closes * rounding


@given(flows)
@settings(deadline=None, max_examples=150)
def test_a_cost_has_the_sign_of_its_quantity(flow: list[Fill]) -> None:
    for position in replay(CASH, flow).positions.values():
        assert position.quantity
        assert (position.cost > 0) == (position.quantity > 0)
        assert position.average_price > 0


@given(flows, st.integers(0, 25))
@settings(deadline=None, max_examples=100)
def test_fills_in_two_parts_give_the_same_book(flow: list[Fill], cut: int) -> None:
    book = replay(CASH, flow[:cut])
    for each in flow[cut:]:
        book = book.after(each)
    assert book == replay(CASH, flow)


@given(flows, st.integers(3, 9))
@settings(deadline=None, max_examples=30)
def test_the_surrounding_context_changes_nothing(flow: list[Fill], digits: int) -> None:
    with localcontext() as context:
        context.prec = digits
        found = replay(CASH, flow)
    assert found == replay(CASH, flow)


def held(book: Book) -> Position:
    return book.positions["BTC/USD"]


def test_buying_more_moves_the_average() -> None:
    book = replay(CASH, [fill(BUY, "1", "100", at=1.0), fill(BUY, "3", "104", at=2.0)])
    assert look(held(book), "quantity cost average_price opened_at") == (4, 412, 103, 1.0)
    assert book.realised == 0
    assert held(book).unrealised(D(104)) == 4


def test_a_partial_close_realises_its_share_and_keeps_the_average() -> None:
    book = replay(CASH, [fill(BUY, "4", "103", "0.5", at=1.0), fill(SELL, "1", "105", "0.25", at=2.0)])
    assert look(held(book), "quantity average_price opened_at") == (3, 103, 1.0)
    assert look(book, "realised fees") == (2, D("0.75"))
    assert book.cash == CASH - 412 + 105 - D("0.75")


def test_a_short_earns_when_the_price_falls() -> None:
    book = replay(CASH, [fill(SELL, "2", "100")])
    assert look(held(book), "quantity cost average_price") == (-2, -200, 100)
    assert held(book).unrealised(D(90)) == 20
    assert book.cash == CASH + 200
    book = book.after(fill(BUY, "1", "90"))
    assert look(held(book), "quantity average_price") == (-1, 100)
    assert book.realised == 10


@pytest.mark.parametrize(("first", "then", "sign"), [(BUY, SELL, -1), (SELL, BUY, 1)])
def test_a_flip_closes_all_and_opens_the_rest_at_its_own_price(first: Side, then: Side, sign: int) -> None:
    book = replay(CASH, [fill(first, "2", "100", at=1.0), fill(then, "5", "110", at=2.0)])
    assert look(held(book), "quantity average_price opened_at") == (3 * sign, 110, 2.0)
    assert book.realised == -20 * sign


def test_a_full_close_leaves_no_position_and_no_dust_of_cost() -> None:
    book = replay(
        CASH, [fill(BUY, "3", "1.00000001"), fill(SELL, "1", "2"), fill(SELL, "1", "2"), fill(SELL, "1", "2")]
    )
    assert book.positions == {}
    assert book.quantity("BTC/USD") == 0
    assert book.cash == CASH + book.realised == CASH + 6 - D("3.00000003")


def test_the_remainder_of_a_division_stays_in_the_position() -> None:
    book = replay(CASH, [fill(BUY, "3", "0.000000003"), fill(SELL, "1", "1")])
    assert held(book).cost == D("9e-9")
    assert book.realised == 1
    dust = replay(CASH, [fill(BUY, "0.0000001", "0.06"), fill(SELL, "0.00000009", "1")])
    assert held(dust).cost == D("6e-9"), "rounded up it would be less than nothing"


def test_a_book_is_immutable() -> None:
    before = replay(CASH, [fill(BUY, "1", "100")])
    before.after(fill(SELL, "1", "100"))
    assert before.quantity("BTC/USD") == 1


def test_margin_is_a_share_of_exposure() -> None:
    assert margin(D("100.5"), D(1)) == D("100.5")
    assert margin(D(100), D(4)) == 25


@given(st.sampled_from(Side), quantity, price, scaled(0, 10**10, 8))
@settings(deadline=None, max_examples=100)
def test_a_fills_cash_is_exact(side: Side, units: Decimal, at: Decimal, fee: Decimal) -> None:
    each = fill(side, units, at, fee)
    assert Fraction(each.cash) == -side.sign * Fraction(units) * Fraction(at) - Fraction(fee)
    assert each.signed == side.sign * units
