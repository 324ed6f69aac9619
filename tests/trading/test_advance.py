"""`advance` gives the same result as a plain reference that visits every minute of every symbol with exact sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from openbell.market.bars import MINUTE, Bars, empty, make
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.trading import amounts
from openbell.trading.advance import DAY, AccountState, Rules, advance
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.costs import Costs
from openbell.trading.fills import Fill
from openbell.trading.matcher import Change
from openbell.trading.orders import RESTING, Order, OrderKind, OrderState, Role, Side, end_exits, exits_of
from openbell.trading.risk import RiskLimits
from tests.counts import runs
from tests.trading.matching import match
from tests.trading.samples import D, fill, limit, minutes, order, stop

SYMBOLS = ("BTC/USD", "ETH/USD", "SOL/USD")
MIDNIGHT = 1_757_116_800
FREE = Rules(Costs(fee=ZERO, slippage=ZERO, volume_share=D(1)), RiskLimits(daily_loss=D("0.05")))
EXAMPLES = runs(250, soak=5000)


@dataclass
class Plain:
    """The reference: every minute, one bar at a time."""

    book: Book
    orders: dict[str, Order]
    prices: dict[str, Decimal]
    day_start: Decimal | None
    since: int
    halted: bool
    matched_until: Mapping[str, int]
    changes: list[Change]

    @classmethod
    def of(cls, state: AccountState) -> Plain:
        orders = {each.id: each for each in state.orders}
        prices = dict(state.prices)
        matched_until = state.matched_until
        return cls(state.book, orders, prices, state.day_start, state.since, state.halted, matched_until, [])

    def state(self, now: int) -> AccountState:
        """Returns the state to continue from."""
        since = max(self.since, now)
        orders = tuple(self.orders.values())
        return AccountState(self.book, orders, self.prices, self.day_start, since, self.halted, self.matched_until)

    def advance(self, series: Mapping[str, Bars], start: int, until: int, rules: Rules) -> None:
        rows = {symbol: {int(time): index for index, time in enumerate(bars.time)} for symbol, bars in series.items()}
        for minute in range(start, until, MINUTE):
            self._expire(minute)
            # Decided when the minute begins: one symbol's fills in it do not change whether another may open.
            opens = self._may_open(series)
            for symbol in sorted(series):
                if (index := rows[symbol].get(minute)) is None:
                    continue
                bar = series[symbol].take(slice(index, index + 1))
                self._match(symbol, bar, minute, rules, opens=opens)
            for symbol, bars in series.items():
                if (index := rows[symbol].get(minute)) is not None:
                    self.prices[symbol] = amounts.of_bar(bars.close[index])
            end = minute + MINUTE
            if end > self.since:
                self._judge(end, rules)
            if end % DAY == 0 and (end > self.since or any(isinstance(each, Fill) for each in self.changes)):
                self.day_start = self._equity()
        self._expire(until)

    def _may_open(self, series: Mapping[str, Bars]) -> bool:
        known = self._equity() is not None and self.day_start is not None and set(self.book.positions) <= set(series)
        return known and not self.halted

    def _match(self, symbol: str, bars: Bars, until: int, rules: Rules, *, opens: bool = False) -> None:
        mine = [each for each in self.orders.values() if each.symbol == symbol]
        # Bars that end by `updated_at` were matched already.
        seen = {each.id: max(each.updated_at, self.matched_until.get(each.id, 0)) for each in mine}
        held = self.book.quantity(symbol)
        for change in match(mine, bars, held, float(until), rules.costs, halted=not opens, matched_until=seen):
            self._take(change)

    def _expire(self, moment: int) -> None:
        resting = [each for each in self.orders.values() if each.state in RESTING and each.expires_at is not None]
        over = [(each.expires_at or 0.0, each.placed_at, each.id) for each in resting]
        for at, _, order_id in sorted(each for each in over if each[0] <= moment):
            if order_id in self.orders:
                self._end(self.orders[order_id], OrderState.EXPIRED, "its day is over", at)

    def _take(self, change: Change) -> None:
        self.changes.append(change)
        if isinstance(change, Fill):
            self.book = self.book.after(change)
            self.prices.setdefault(change.symbol, change.price)
        elif change.final:
            self.orders.pop(change.id, None)
        else:
            self.orders[change.id] = change

    def _equity(self) -> Decimal | None:
        if not set(self.book.positions) <= set(self.prices):
            return None
        with amounts.exact():
            return self.book.cash + sum(
                (p.quantity * self.prices[p.symbol] for p in self.book.positions.values()), ZERO
            )

    def _judge(self, end: int, rules: Rules) -> None:
        equity, start, most = self._equity(), self.day_start, rules.limits.daily_loss
        if equity is None or start is None or start <= 0 or not most or start - equity < most * start:
            return
        for each in sorted(self.orders.values(), key=lambda order: (order.placed_at, order.id)):
            rests = each.state in {OrderState.OPEN, OrderState.PARTIALLY_FILLED} and each.id in self.orders
            if rests and each.remaining_opening and each.placed_at < end:
                self._end(each, OrderState.CANCELLED, "lost", float(end))

    def _end(self, each: Order, state: OrderState, reason: str, at: float) -> None:
        ended = each.to(state, at, reason)
        self._take(ended)
        for exit_ in end_exits(ended, sorted(self.orders.values(), key=lambda each: (each.placed_at, each.id)), at):
            self._take(exit_)


def shown(changes: list[Change]) -> list[Change]:
    """Returns the changes with the text of a daily loss replaced by "lost"."""
    return [
        replace(each, reason="lost") if isinstance(each, Order) and "today" in (each.reason or "") else each
        for each in changes
    ]


@dataclass(frozen=True)
class Play:
    state: AccountState
    series: dict[str, Bars]
    start: int
    until: int
    rules: Rules


def play(chance: Random) -> Play:
    """Returns a random account with positions, orders and bars."""
    start = MIDNIGHT - MINUTE * chance.choice((0, 1, 7, 400))
    count = chance.randrange(1, 25)
    series = {symbol: _bars(chance, symbol, start, count) for symbol in SYMBOLS if chance.random() < 0.9}
    book = Book(D(10_000))
    for symbol in SYMBOLS:
        if chance.random() < 0.4:
            book = book.after(fill(Side.BUY, str(chance.choice((5, 20, 60))), "50", id=symbol, symbol=symbol))
    prices = {symbol: D(chance.randrange(45, 56)) for symbol in SYMBOLS if chance.random() < 0.9}
    orders = [each for number in range(chance.randrange(7)) for each in _orders(chance, number, start, book)]
    worth = book.cash + sum((p.quantity * prices.get(p.symbol, D(50)) for p in book.positions.values()), ZERO)
    day_start = None if chance.random() < 0.1 else worth + chance.randrange(-300, 300)
    since = start + MINUTE * chance.choice((-5, 0, 0, 0, 3, 10))
    costs = Costs(volume_share=chance.choice((D(1), D("0.1"))))
    rules = Rules(costs, RiskLimits(daily_loss=chance.choice((D(0), D("0.01"), D("0.03"), D("0.05")))))
    matched_until = {each.id: start + MINUTE * chance.randrange(12) for each in orders if chance.random() < 0.3}
    state = AccountState(book, tuple(orders), prices, day_start, since, chance.random() < 0.1, matched_until)
    return Play(state, series, start, start + MINUTE * chance.choice((count, count + 3, 1)), rules)


def _bars(chance: Random, symbol: str, start: int, count: int) -> Bars:
    rows, last = [], 50.0
    for number in range(count):
        if chance.random() < 0.2:
            continue
        close = round(last * (1 + chance.uniform(-0.04, 0.04)), chance.choice((0, 2)))
        high, low = max(last, close) + chance.randrange(2), min(last, close) - chance.randrange(2)
        rows.append((start + number * MINUTE, last, high, low, close, chance.choice((0.0, 30.0, 1e6, 1e6))))
        last = close
    return make(parse(symbol), Timeframe.M1, *zip(*rows, strict=True)) if rows else empty(parse(symbol))


def _orders(chance: Random, number: int, start: int, book: Book) -> list[Order]:
    symbol, side = chance.choice(SYMBOLS), chance.choice((Side.BUY, Side.BUY, Side.SELL))
    kind = chance.choice((OrderKind.MARKET, OrderKind.LIMIT, OrderKind.STOP, OrderKind.STOP_LIMIT))
    quantity = D(chance.choice((3, 10, 40)))
    held = book.quantity(symbol)
    opening = quantity if side is Side.BUY else ZERO
    if side is Side.SELL and not held:
        return []
    placed = float(start + chance.choice((-300, -300, 0, 90)))
    price = D(chance.randrange(46, 55))
    bracket = side is Side.BUY and chance.random() < 0.4
    first = order(
        f"o{number}",
        side,
        quantity,
        symbol=symbol,
        kind=kind,
        opening=opening,
        placed_at=placed,
        updated_at=placed,
        limit_price=price + chance.randrange(-1, 2) if kind in {OrderKind.LIMIT, OrderKind.STOP_LIMIT} else None,
        stop_price=price if kind in {OrderKind.STOP, OrderKind.STOP_LIMIT} else None,
        expires_at=chance.choice((None, None, float(MIDNIGHT), float(start + 240))),
        role=Role.ENTRY if bracket else Role.SINGLE,
        take_profit=price + 3 if bracket else None,
        stop_loss=price - 3 if bracket else None,
    )
    return [first, *exits_of(first)]


seeds = st.integers(0, 2**32)


@settings(max_examples=EXAMPLES, deadline=None)
@given(seeds)
@example(512)
def test_skipping_quiet_minutes_changes_nothing(seed: int) -> None:
    it = play(Random(seed))
    plain = Plain.of(it.state)
    plain.advance(it.series, it.start, it.until, it.rules)
    assert shown(advance(it.state, it.series, it.start, it.until, it.rules)) == plain.changes


@settings(max_examples=EXAMPLES, deadline=None)
@given(seeds, st.integers(0, 30))
@example(86242540, 1)
def test_two_parts_give_the_same_as_one(seed: int, first: int) -> None:
    it = play(Random(seed))
    cut = min(it.until, it.start + first * MINUTE)
    plain = Plain.of(it.state)
    plain.advance(it.series, it.start, cut, it.rules)
    pieces = advance(it.state, it.series, it.start, cut, it.rules)
    # Between two pieces a desk reads the day's start again from the records, which then have the first piece's fills.
    late = any(isinstance(each, Fill) and each.at <= MIDNIGHT for each in pieces)
    assume(not (late and cut < MIDNIGHT <= it.state.since))
    then = plain.state(cut)
    pieces += advance(then, it.series, cut, it.until, it.rules)
    assert pieces == advance(it.state, it.series, it.start, it.until, it.rules)


@settings(max_examples=EXAMPLES, deadline=None)
@given(seeds)
def test_the_order_of_symbols_does_not_matter(seed: int) -> None:
    it = play(Random(seed))
    turned = dict(reversed(it.series.items()))
    whole = advance(it.state, it.series, it.start, it.until, it.rules)
    assert advance(it.state, turned, it.start, it.until, it.rules) == whole


# By hand


def flat(symbol: str, start: int, *closes: float) -> Bars:
    """Bars of one price each."""
    return minutes([(close, close, close, 1e6) for close in closes], symbol, start)


def states(changes: list[Change]) -> list[tuple[str, str, float]]:
    return [(each.id, str(each.state), each.updated_at) for each in changes if isinstance(each, Order)]


def held(quantity: str, price: str = "100", symbol: str = "BTC/USD", cash: str = "10000") -> Book:
    return Book(D(cash)).after(fill(Side.BUY, quantity, price, symbol=symbol))


def test_a_loss_in_one_symbol_ends_the_orders_of_the_others_before_the_next_minute() -> None:
    start = MIDNIGHT - 3600
    book = held("50")
    deep = limit("deep", Side.BUY, "10", "45", symbol="ETH/USD", placed_at=start - 60.0, updated_at=start - 60.0)
    series = {"BTC/USD": flat("BTC/USD", start, 100, 80, 100), "ETH/USD": flat("ETH/USD", start, 50, 50, 40)}
    state = AccountState(book, (deep,), {"BTC/USD": D(100)}, D(10_000), start)
    changes = advance(state, series, start, start + 180, FREE)
    assert states(changes) == [("deep", "cancelled", start + 120.0)]


def test_in_the_same_minute_an_order_fills_before_the_loss_is_checked() -> None:
    start = MIDNIGHT - 3600
    deep = limit("deep", Side.BUY, "10", "45", symbol="ETH/USD", placed_at=start - 60.0, updated_at=start - 60.0)
    series = {"BTC/USD": flat("BTC/USD", start, 80), "ETH/USD": flat("ETH/USD", start, 40)}
    state = AccountState(held("50"), (deep,), {"BTC/USD": D(100)}, D(10_000), start)
    assert states(advance(state, series, start, start + 60, FREE)) == [("deep", "filled", start + 60.0)]


def test_two_orders_of_different_symbols_fill_in_one_minute_though_neither_had_a_price_before() -> None:
    start = MIDNIGHT - 3600
    orders = tuple(order(name, symbol=name, placed_at=float(start)) for name in ("BTC/USD", "ETH/USD"))
    series = {"BTC/USD": flat("BTC/USD", start, 100), "ETH/USD": flat("ETH/USD", start, 50)}
    changes = advance(AccountState(Book(D(10_000)), orders, {}, D(10_000), start), series, start, start + 60, FREE)
    assert states(changes) == [(name, "filled", start + 60.0) for name in ("BTC/USD", "ETH/USD")]


def test_a_new_day_begins_with_what_the_account_is_worth_at_midnight() -> None:
    start = MIDNIGHT - 120
    deep = limit("deep", Side.BUY, "10", "45", symbol="ETH/USD", placed_at=start - 660.0, updated_at=start - 660.0)
    series = {"BTC/USD": flat("BTC/USD", start, 97, 92, 88, 84), "ETH/USD": flat("ETH/USD", start, 50, 50, 50, 50)}
    state = AccountState(held("50"), (deep,), {"BTC/USD": D(100)}, D(10_000), start)
    # 4 % by midnight, then 4.2 % of the rest: never 5 % on one day, but 8 % in total.
    assert advance(state, series, start, start + 240, FREE) == []
    earlier = {symbol: replace(bars, time=bars.time - 600) for symbol, bars in series.items()}
    changes = advance(replace(state, since=start - 600), earlier, start - 600, start - 360, FREE)
    assert states(changes) == [("deep", "cancelled", start - 420.0)]


def test_before_the_time_of_its_book_orders_fill_and_no_loss_is_checked() -> None:
    start = MIDNIGHT - 3600
    late = limit("late", Side.BUY, "10", "45", symbol="ETH/USD", placed_at=start - 60.0, updated_at=start - 60.0)
    series = {"BTC/USD": flat("BTC/USD", start, 80, 80, 100), "ETH/USD": flat("ETH/USD", start, 50, 40, 50)}
    state = AccountState(held("50"), (late,), {"BTC/USD": D(100)}, D(10_000), start + 180)
    assert states(advance(state, series, start, start + 180, FREE)) == [("late", "filled", start + 120.0)]


def test_an_order_whose_day_is_over_expires_before_a_later_loss_ends_it() -> None:
    start = MIDNIGHT - 7200
    deep = limit("deep", Side.BUY, "10", "45", placed_at=start - 60.0, updated_at=start - 60.0, expires_at=start + 60.0)
    series = {"BTC/USD": flat("BTC/USD", start, 100, 100, 80)}
    state = AccountState(held("50"), (deep,), {"BTC/USD": D(100)}, D(10_000), start)
    assert states(advance(state, series, start, start + 180, FREE)) == [("deep", "expired", start + 60.0)]


def test_while_a_position_has_no_price_orders_only_reduce() -> None:
    start = MIDNIGHT - 3600
    book = held("5", symbol="ETH/USD").after(fill(Side.BUY, "5", "100", id="b"))
    orders = (
        order("opens", quantity="1", placed_at=float(start)),
        order("reduces", Side.SELL, "5", opening="0", placed_at=float(start)),
    )
    series = {"BTC/USD": flat("BTC/USD", start, 100, 100)}
    state = AccountState(book, orders, {"BTC/USD": D(100)}, D(10_000), start)
    changes = advance(state, series, start, start + 120, FREE)
    assert states(changes) == [("reduces", "filled", start + 60.0)]


def test_a_bar_that_was_matched_already_does_not_fill_an_order_again() -> None:
    start = MIDNIGHT - 3600
    thin = minutes([(100, 100, 100, 4), (100, 100, 100, 4)], start=start)
    buy = limit("buy", Side.BUY, "10", "101", placed_at=float(start))
    state = AccountState(Book(D(10_000)), (buy,), {}, D(10_000), start)
    first = advance(state, {"BTC/USD": thin}, start, start + 60, FREE)
    partly = first[-1]
    assert isinstance(partly, Order)
    book = Book(D(10_000)).after(first[0]) if isinstance(first[0], Fill) else Book(D(10_000))
    again = AccountState(book, (partly,), {"BTC/USD": D(100)}, D(10_000), start + 60)
    assert advance(again, {"BTC/USD": thin}, start, start + 60, FREE) == []
    assert [
        each.bar for each in advance(again, {"BTC/USD": thin}, start, start + 120, FREE) if isinstance(each, Fill)
    ] == [start + 60]


def test_an_order_that_was_placed_after_a_loss_is_not_ended_by_it() -> None:
    start = MIDNIGHT - 3600
    older = limit("older", Side.BUY, "1", "10", placed_at=start - 60.0, updated_at=start - 60.0)
    newer = limit("newer", Side.BUY, "1", "10", placed_at=start + 130.0, updated_at=start + 130.0)
    series = {"BTC/USD": flat("BTC/USD", start, 100, 80, 100, 100)}
    state = AccountState(held("50"), (older, newer), {"BTC/USD": D(100)}, D(10_000), start)
    assert states(advance(state, series, start, start + 240, FREE)) == [("older", "cancelled", start + 120.0)]


def test_an_order_that_got_no_volume_of_a_bar_is_not_matched_with_it_again() -> None:
    """If bars of another symbol arrive late, the account is advanced through the same minutes again."""
    start = MIDNIGHT - 3600
    thin = minutes([(100, 100, 100, 4), (100, 100, 100, 4)], start=start)
    orders = [limit(name, Side.BUY, "10", "101", placed_at=float(start)) for name in ("first", "second")]
    waiting = limit("waits", Side.BUY, "1", "60", symbol="ETH/USD", placed_at=float(start))
    whole = AccountState(Book(D(10_000)), (*orders, waiting), {}, D(10_000), start)
    changes = advance(whole, {"BTC/USD": thin}, start, start + 60, FREE)
    assert [each.order_id for each in changes if isinstance(each, Fill)] == ["first"]
    first = next(each for each in changes if isinstance(each, Order))
    book = Book(D(10_000)).after(next(each for each in changes if isinstance(each, Fill)))
    matched_until = {"first": start + 60, "second": start + 60}
    again = AccountState(
        book, (first, orders[1], waiting), {"BTC/USD": D(100)}, D(10_000), start, matched_until=matched_until
    )
    series = {"BTC/USD": thin, "ETH/USD": flat("ETH/USD", start, 50)}
    filled = [each.order_id for each in advance(again, series, start, start + 60, FREE) if isinstance(each, Fill)]
    assert filled == ["waits"]


@pytest.mark.parametrize("side", [Side.BUY, Side.SELL])
def test_a_triggered_stop_without_volume_fills_at_the_next_open(side: Side) -> None:
    start = MIDNIGHT - 3600
    bars = minutes([(100, 101, 99, 0), (100, 100, 100, 1e6)], start=start)
    price = "101" if side is Side.BUY else "99"
    only = stop("s", side, "5", price, placed_at=float(start), opening="5" if side is Side.BUY else "0")
    state = AccountState(held("5"), (only,), {"BTC/USD": D(100)}, D(10_000), start)
    assert states(advance(state, {"BTC/USD": bars}, start, start + 120, FREE)) == [
        ("s", "open", start + 60.0),
        ("s", "filled", start + 120.0),
    ]
