"""What a strategy earned in a period, in all and by month."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from openbell.backtest.current_signals import part_of
from openbell.backtest.engine import simulate
from openbell.backtest.outcome import value_returns
from openbell.backtest.rules import END, Setup
from openbell.backtest.trades import Trades
from openbell.market.bars import Bars, Values
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import evaluate
from openbell.strategies.spec import Number, Spec


@dataclass(frozen=True, slots=True)
class Month:
    """The trades that were entered in a month, and the return of its bars."""

    name: str
    """2026-09."""
    signals: int
    right: int
    closed: int
    total_return: float


@dataclass(frozen=True, slots=True)
class Period:
    """The trades that were entered in a period."""

    signals: int
    closed: int
    right: int
    average_return: float | None
    """Mean return of the closed trades, after costs. None without any."""
    sharpe: float | None
    total_return: float
    """Of all bars of the period; the returns of the months compound to it."""
    holding: float
    """The return of the instrument over the same bars, without costs."""
    start: int | None
    """When the first bar of the period opens. None without bars."""
    end: int | None
    """When the last bar of the period opens."""
    months: tuple[Month, ...]

    @property
    def best(self) -> Month | None:
        """The month with the highest return, the first of several. None without bars."""
        return max(self.months, key=lambda each: each.total_return, default=None)

    @property
    def worst(self) -> Month | None:
        """The month with the lowest return, the first of several. None without bars."""
        return min(self.months, key=lambda each: each.total_return, default=None)


def period_of(
    spec: Spec, parameters: Mapping[str, Number], bars: Bars, setup: Setup, start: int, regular: Bars | None = None
) -> Period:
    """Returns what a strategy earned on the bars since `start`. It runs over the earlier bars too, without counting them."""
    strategy = compiled(spec, parameters)
    conditions = evaluate(strategy, bars, regular)
    run = simulate(bars, conditions, strategy.side, strategy.stops, setup)
    first = int(bars.time.searchsorted(start))
    whole = part_of(run, bars, first, len(bars))
    trades = run.trades
    counted = (trades.entry_index >= first) & (trades.reason != END)
    returns = value_returns(trades)[counted]
    return Period(
        whole.metrics.trades,
        whole.closed,
        whole.right,
        float(returns.mean()) if len(returns) else None,
        whole.metrics.sharpe,
        _return(run.equity, first, len(bars) - 1) if first < len(bars) else 0.0,
        _holding(bars, first) if first < len(bars) else 0.0,
        int(bars.time[first]) if first < len(bars) else None,
        int(bars.time[-1]) if first < len(bars) else None,
        tuple(_months(run.equity, bars, trades, first)),
    )


def _holding(bars: Bars, first: int) -> float:
    """The return from the close before a bar, where the period's equity begins too, to the last close."""
    before = bars.close[first - 1] if first else bars.open[0]
    return float(bars.close[-1] / before) - 1.0


def _months(equity: Values, bars: Bars, trades: Trades, first: int) -> list[Month]:
    months = bars.time.astype("datetime64[s]").astype("datetime64[M]")
    found = []
    for month in np.unique(months[first:]):
        inside = np.flatnonzero(months == month)
        inside = inside[inside >= first]
        start, end = int(inside[0]), int(inside[-1])
        entered = (trades.entry_index >= start) & (trades.entry_index <= end)
        closed = entered & (trades.reason != END)
        right = closed & (trades.profit > 0.0)
        found.append(
            Month(
                str(month),
                int(entered.sum()),
                int(right.sum()),
                int(closed.sum()),
                _return(equity, start, end),
            )
        )
    return found


def _return(equity: Values, start: int, end: int) -> float:
    """Returns the return of the bars from `start` to `end`, from the close before them; 0 if the equity was used up."""
    before = float(equity[start - 1]) if start else float(equity[start])
    return float(equity[end]) / before - 1.0 if before > 0.0 else 0.0
