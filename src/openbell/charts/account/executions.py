"""Fills as a chart marks them: the fills of one side in one bar are one execution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

import numpy as np

from openbell.market.bars import Bars, bucket_bounds, closed_at
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.fills import Fill
from openbell.trading.orders import Side


class Effect(StrEnum):
    """What an execution did to the position."""

    ENTRY = "entry"
    """Opened or enlarged it."""
    EXIT = "exit"
    """Closed it or made it smaller."""
    REVERSAL = "reversal"
    """Closed it and opened one of the other side."""


@dataclass(slots=True)
class Execution:
    """The fills of one side in one bar."""

    index: int | None
    """The bar's position on the chart; None if the bar is under way."""
    side: Side
    at: float
    """When the first of the fills happened: on paper, the open of its minute."""
    recorded_at: float
    """When that fill was recorded."""
    count: int = 0
    """The number of fills."""
    quantity: Decimal = ZERO
    paid: Decimal = ZERO
    """Sum of price times quantity."""
    profit: Decimal = ZERO
    """The profit that it realised, before fees."""
    effects: set[Effect] = field(default_factory=set)

    @property
    def price(self) -> Decimal:
        """The average price."""
        return amounts.share(self.paid, self.quantity)

    @property
    def effect(self) -> Effect:
        """What it did to the position."""
        return Effect.REVERSAL if len(self.effects) > 1 else next(iter(self.effects))


@dataclass(frozen=True, slots=True)
class Placed:
    """The executions of a chart, oldest first, and how many fills it does not show."""

    executions: tuple[Execution, ...]
    earlier: int
    """The fills before the first bar."""
    hidden: int
    """The fills at times of which the chart shows no bar, such as extended hours."""


def place(fills: Sequence[Fill], bars: Bars) -> Placed:
    """Returns the executions of an account's fills in the instrument of `bars`; `fills` begins with the first of all.

    A fill belongs to the bar that contains its time: on paper, the minute in which it was filled.
    """
    found: dict[tuple[int, Side], Execution] = {}
    indexes = _indexes(fills, bars)
    for index, (fill, effects, profit) in zip(indexes, _with_effects(fills), strict=True):
        if index < 0:
            continue
        first = Execution(index if index < len(bars) else None, fill.side, fill.filled_at, fill.at)
        shown = found.setdefault((index, fill.side), first)
        shown.count += 1
        with amounts.exact():
            shown.quantity += fill.quantity
            shown.paid += fill.quantity * fill.price
            shown.profit += profit
        shown.effects |= effects
    executions = tuple(found[key] for key in sorted(found, key=lambda key: key[0]))
    return Placed(executions, indexes.count(_EARLIER), indexes.count(_HIDDEN))


_EARLIER, _HIDDEN = -1, -2


def _indexes(fills: Sequence[Fill], bars: Bars) -> list[int]:
    """Returns the position of the bar that contains each fill; the number of bars if that bar has not closed."""
    if not len(bars):
        return [_EARLIER] * len(fills)
    at = np.array([int(fill.filled_at) for fill in fills], dtype=np.int64)
    times, back = np.unique(at, return_inverse=True)
    start = bucket_bounds(bars.instrument, bars.timeframe, times)[0][back]
    index = np.minimum(np.searchsorted(bars.time, start), len(bars) - 1)
    index = np.where(bars.time[index] == start, index, _HIDDEN)
    index = np.where(at >= closed_at(bars), len(bars), np.where(at < bars.time[0], _EARLIER, index))
    return [int(each) for each in index]


def _with_effects(fills: Iterable[Fill]) -> Iterator[tuple[Fill, set[Effect], Decimal]]:
    """Yields each fill with what it did to the position and the profit that it realised."""
    book = Book(ZERO)
    for fill in fills:
        held, before = book.quantity(fill.symbol), book.realised
        book = book.after(fill)
        if held * fill.side.sign >= 0:
            effects = {Effect.ENTRY}
        else:
            effects = {Effect.EXIT, Effect.ENTRY} if fill.quantity > abs(held) else {Effect.EXIT}
        yield fill, effects, book.realised - before
