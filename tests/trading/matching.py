"""Runs the matcher over several bars, from a given position."""

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
    matched_until: Mapping[str, float] | None = None,
) -> list[Change]:
    """Returns the changes of orders of one symbol by minute bars, and their expiry up to `until`."""
    symbol = bars.instrument.symbol
    held = {symbol: Position(symbol, position, position * 100, 0.0)} if position else {}
    matcher = Matcher(Book(ZERO, held), orders, costs, matched_until)
    for index in range(len(bars)):
        matcher.match(bars, index, may_open=not halted)
    matcher.expire(until)
    return matcher.changes
