"""With shorts off no sequence of accepted orders and fills makes a position negative, on paper or at a broker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.trading.book import Book, replay
from openbell.trading.costs import Costs
from openbell.trading.orders import RESTING, Order, OrderKind, OrderState, Role, Side, end_exits, exits_of
from openbell.trading.risk import Proposal, RiskLimits, Situation, Verdict, judge
from tests.trading.matching import match
from tests.trading.samples import START, D, fill, minutes, order

FREE = RiskLimits(order_share=D(0), symbol_share=D(0), positions=0, daily_loss=D(0), collar=D(0))
COSTS = Costs(volume_share=D(1))
OPEN = START + 86400 + 14 * 3600
"""A moment in the regular session."""


@dataclass(frozen=True)
class Placing:
    """Places an order."""

    side: Side
    kind: OrderKind
    quantity: Decimal
    limit_price: Decimal | None
    stop_price: Decimal | None
    bracket: bool
    reduce_only: bool


@dataclass(frozen=True)
class Cancelling:
    """Cancels one of the resting orders."""

    which: int


@dataclass(frozen=True)
class Minute:
    """A bar."""

    open: int
    up: int
    down: int
    volume: int


@dataclass
class Account:
    """An account of one symbol: its book, and its orders that are not final."""

    symbol: str
    limits: RiskLimits
    cut: bool
    book: Book = field(init=False)
    orders: dict[str, Order] = field(default_factory=dict)
    only_reducing: set[str] = field(default_factory=set)
    minute: int = 0
    ids: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.book = replay(D(100_000), [fill(Side.BUY, "6", "100", symbol=self.symbol)])

    @property
    def position(self) -> Decimal:
        return self.book.quantity(self.symbol)

    def place(self, asked: Placing) -> Verdict:
        """Judge an order; an accepted order rests from the next minute on."""
        price = asked.limit_price or asked.stop_price
        limited = asked.limit_price is not None
        proposal = Proposal(self.symbol, asked.side, asked.quantity, price, limited, asked.reduce_only)
        situation = Situation(
            self.book, {self.symbol: D(100)}, tuple(self.orders.values()), fills_cut_to_position=self.cut
        )
        verdict = judge(proposal, situation, self.limits)
        assert asked.quantity <= verdict.max_size or not verdict.valid
        if verdict.valid:
            far = 10 * asked.side.sign if asked.bracket and not asked.reduce_only else 0
            placed = order(
                f"o{next(self.ids)}",
                asked.side,
                asked.quantity,
                symbol=self.symbol,
                kind=asked.kind,
                opening=verdict.opening,
                limit_price=asked.limit_price,
                stop_price=asked.stop_price,
                take_profit=D(100 + far) if far else None,
                stop_loss=D(100 - far) if far else None,
                role=Role.ENTRY if far else Role.SINGLE,
                placed_at=float(OPEN),
            )
            self._keep([placed, *exits_of(placed)])
            self.only_reducing |= {placed.id} if asked.reduce_only else set()
        return verdict

    def cancel(self, which: int) -> None:
        resting = [each for each in self.orders.values() if each.state in RESTING]
        if resting:
            ended = resting[which % len(resting)].to(OrderState.CANCELLED, float(OPEN), "cancelled")
            self._keep([*end_exits(ended, self.orders.values(), float(OPEN)), ended])

    def match_bar(self, minute: Minute) -> None:
        """Fill orders on paper from one bar."""
        row = (
            float(minute.open),
            float(minute.open + minute.up),
            float(minute.open - minute.down),
            float(minute.volume),
        )
        time = OPEN + 60 * self.minute
        self.minute += 1
        bars = minutes([row], self.symbol, time)
        for change in match(list(self.orders.values()), bars, self.position, time + 60, COSTS):
            if isinstance(change, Order):
                self._keep([change])
            else:
                before, self.book = self.position, self.book.after(change)
                self.check()
                reduced = abs(self.position) < abs(before) and self.position * before >= 0
                assert reduced or change.order_id not in self.only_reducing

    def fill_anything(self, minute: Minute) -> None:
        """Fill as a broker may: any part of any resting order, regardless of the position."""
        resting = [each for each in self.orders.values() if each.state in RESTING]
        for each in resting[minute.up % 2 :: 2]:
            quantity = min(each.remaining, D(max(1, minute.volume)))
            self.book = self.book.after(fill(each.side, quantity, "100", symbol=self.symbol))
            self._keep([each.with_fill(quantity, D(100), D(0), float(OPEN))])
            self.check()

    def check(self) -> None:
        allowed = self.limits.short and self.symbol == "AAPL"
        assert self.position >= 0 or allowed, f"{self.position} of {self.symbol}"

    def _keep(self, changed: list[Order]) -> None:
        self.orders |= {each.id: each for each in changed}
        self.orders = {key: each for key, each in self.orders.items() if not each.final}


prices = st.integers(92, 108).map(D)


@st.composite
def placings(draw: st.DrawFn, bracket: bool = True) -> Placing:
    kind = draw(st.sampled_from(OrderKind))
    return Placing(
        draw(st.sampled_from([Side.SELL, Side.SELL, Side.BUY])),
        kind,
        draw(st.integers(1, 9).map(D)),
        draw(prices) if kind in {OrderKind.LIMIT, OrderKind.STOP_LIMIT} else None,
        draw(prices) if kind in {OrderKind.STOP, OrderKind.STOP_LIMIT} else None,
        bracket and draw(st.booleans()),
        draw(st.sampled_from([False, False, True])),
    )


bars = st.builds(Minute, st.integers(92, 108), st.integers(0, 8), st.integers(0, 8), st.sampled_from([0, 2, 5, 1000]))
cancellings = st.builds(Cancelling, st.integers(0, 9))
Action = Placing | Cancelling | Minute


def play(account: Account, actions: list[Action], fills: str) -> None:
    for action in actions:
        if isinstance(action, Placing):
            account.place(action)
        elif isinstance(action, Cancelling):
            account.cancel(action.which)
        else:
            getattr(account, fills)(action)


CASES = [("AAPL", False), ("BTC/USD", False), ("BTC/USD", True)]


@pytest.mark.parametrize(("symbol", "short"), CASES)
@given(actions=st.lists(placings() | placings() | bars | bars | cancellings, min_size=10, max_size=40))
@settings(deadline=None, max_examples=100)
def test_on_paper_no_position_is_ever_negative(symbol: str, short: bool, actions: list[Action]) -> None:
    account = Account(symbol, replace(FREE, short=short), cut=True)
    play(account, actions, "match_bar")


@pytest.mark.parametrize(("symbol", "short"), CASES)
@given(actions=st.lists(placings(bracket=False) | bars | cancellings, min_size=10, max_size=40))
@settings(deadline=None, max_examples=100)
def test_at_a_broker_that_cuts_nothing_no_position_is_ever_negative(
    symbol: str, short: bool, actions: list[Action]
) -> None:
    account = Account(symbol, replace(FREE, short=short), cut=False)
    play(account, actions, "fill_anything")


@given(actions=st.lists(placings() | placings() | bars | bars | cancellings, min_size=10, max_size=40))
@settings(deadline=None, max_examples=100)
def test_with_shorts_on_a_reduce_only_order_still_only_reduces(actions: list[Action]) -> None:
    play(Account("AAPL", replace(FREE, short=True), cut=True), actions, "match_bar")
