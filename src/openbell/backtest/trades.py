"""The trades of a run as numpy columns, and the row of one trade."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.backtest.rules import REASONS, Reason
from openbell.market.bars import Values
from openbell.strategies.spec import PositionSide

Indexes = npt.NDArray[np.int64]
EquityFacts = tuple[Values, Values | None, tuple[float, int]]
"""The equity at each close, its returns, and its drawdown with the length of that in bars: see `curve`."""


def sign_of(side: PositionSide) -> float:
    """Returns 1 for long and −1 for short."""
    return 1.0 if side is PositionSide.LONG else -1.0


@dataclass(frozen=True, slots=True)
class Trade:
    """One position from its entry to its exit. Indexes count bars; money is in the currency of the prices."""

    entry_index: int
    """The bar at whose open it was entered."""
    exit_index: int
    """The bar in which it was closed; for `END`, the last one."""
    entry_price: float
    exit_price: float
    quantity: float
    side: PositionSide
    entry_fee: float
    exit_fee: float
    profit: float
    """After both fees."""
    reason: Reason


@dataclass(frozen=True, slots=True, eq=False)
class Trades:
    """The trades of a run, oldest first, one value of each column per trade."""

    side: PositionSide
    entry_index: Indexes
    exit_index: Indexes
    reason: Indexes
    """Positions in `REASONS`."""
    entry_price: Values
    exit_price: Values
    quantity: Values
    entry_fee: Values
    exit_fee: Values
    profit: Values

    def __len__(self) -> int:
        return len(self.entry_index)

    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """Returns the arrays in the order of the fields."""
        return (
            self.entry_index,
            self.exit_index,
            self.reason,
            self.entry_price,
            self.exit_price,
            self.quantity,
            self.entry_fee,
            self.exit_fee,
            self.profit,
        )

    def entered_from(self, first: int) -> Trades:
        """Returns the trades that were entered at bar `first` or later; their indexes count from there."""
        if first == 0:
            return self
        at = int(self.entry_index.searchsorted(first))
        entered, left, *rest = (each[at:] for each in self.columns())
        return Trades(self.side, entered - first, left - first, *rest)

    def __iter__(self) -> Iterator[Trade]:
        for start, end, reason, price, left, quantity, fee, left_fee, profit in zip(
            *(each.tolist() for each in self.columns()), strict=True
        ):
            yield Trade(start, end, price, left, quantity, self.side, fee, left_fee, profit, REASONS[reason])
