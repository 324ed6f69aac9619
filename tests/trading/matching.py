"""The matcher over many bars at once, for tests that begin with a position and end with a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from openbell.market.bars import Bars
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book, Position
from openbell.trading.costs import Costs
from openbell.trading.matcher import Change, Matcher
from openbell.trading.orders import Order


def match(
    orders: Sequence[Order],
    bars: Bars,
    position: Decimal,
    until: float,
    costs: Costs,
    *,
    halted: bool = False,
    seen: Mapping[str, float] | None = None,
) -> list[Change]:
    """What becomes of orders of one symbol in some minute bars, and of those whose time is over by `until`."""
    symbol = bars.instrument.symbol
    held = {symbol: Position(symbol, position, position * 100, 0.0)} if position else {}
    account = Matcher(Book(ZERO, held), orders, costs, seen)
    for index in range(len(bars)):
        account.meet(bars, index, may_open=not halted)
    account.expire(until)
    return account.changes
