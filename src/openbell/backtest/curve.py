"""Facts about the equity of a run at each close: its growth, its drawdown, and the returns of single bars."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from openbell.market.bars import Values

NOISE = 1e-12
"""A deviation that is smaller, relative to the largest value, is rounding: the values are equal."""


class HoldingReturns(NamedTuple):
    """The returns of holding the instrument; it has none if the price does not move."""

    moved: Values
    """The return of each bar minus the mean."""
    mean: float
    squares: float
    """The sum of the squares of `moved`."""


class Returns(NamedTuple):
    """The returns of single bars, from the close before it to its close."""

    mean: float
    deviation: float
    """Of the sample; 0 if the returns differ by rounding only."""
    downside: float
    """The mean square of the negative returns, in which others count as 0."""
    shared: float
    """The sum of the products with `HoldingReturns.moved`; 0 without it."""


class Curve(NamedTuple):
    """The equity of a run over at least one bar."""

    bars: int
    growth: float
    """The last equity as a share of the first."""
    mean: float
    drawdown: float
    """The largest fall from an earlier maximum, as a share of it."""
    drawdown_bars: int
    """Bars from that maximum until the equity is back at it, or until the end."""
    returns: Returns | None
    """None with fewer than two bars, or if the equity was ever 0 or less."""


def holding_of(market: Values | None) -> HoldingReturns | None:
    """Returns the facts about the returns of an instrument; None if there are none, or if the price does not move."""
    if market is None or len(market) < 2 or deviation(market) == 0.0:
        return None
    moved = market - market.mean()
    return HoldingReturns(moved, float(market.mean()), float(np.square(moved).sum()))


def curve_of(
    equity: Values, returns: Values | None, holding: HoldingReturns | None, fall: tuple[float, int] | None = None
) -> Curve:
    """Returns the facts about an equity with at least one value, and its `bar_returns`.

    `fall` is its `drawdown_of`, if that is known already.
    """
    drawdown, length = fall or drawdown_of(equity)
    found = None if returns is None else _returns(returns, holding)
    return Curve(len(equity), float(equity[-1] / equity[0]), float(equity.mean()), drawdown, length, found)


def bar_returns(equity: Values) -> Values | None:
    """Returns the return of each bar; None with fewer than two bars, or if the equity was ever 0 or less."""
    return None if len(equity) < 2 or equity.min() <= 0.0 else returns_of(equity, float(equity[0]))


def _returns(returns: Values, holding: HoldingReturns | None) -> Returns:
    scratch = np.minimum(returns, 0.0)
    downside = float(np.square(scratch, out=scratch).mean())
    mean = float(returns.mean())
    apart = returns - mean
    # Not with `np.dot`: BLAS starts threads, and the last digits of its result depend on how many.
    shared = float(np.multiply(apart, holding.moved, out=scratch).sum()) if holding else 0.0
    return Returns(mean, _deviation(returns, mean, apart), downside, shared)


def returns_of(values: Values, before: float) -> Values:
    """Returns the relative change to each value from the one before it; `before` precedes the first."""
    found = np.empty(len(values))
    found[:1] = (values[:1] - before) / before
    np.subtract(values[1:], values[:-1], out=found[1:])
    np.divide(found[1:], values[:-1], out=found[1:])
    return found


def deviation(values: Values) -> float:
    """Returns the sample standard deviation; 0 if the values differ by rounding only."""
    mean = float(values.mean())
    return _deviation(values, mean, values - mean)


def _deviation(values: Values, mean: float, apart: Values) -> float:
    """Returns the deviation of values, of which `apart` is the distance from their mean. Overwrites `apart`."""
    found = sqrt(float(np.square(apart, out=apart).sum()) / (len(values) - 1))
    # No value can be further from the mean than this, so that the largest one is seldom searched.
    furthest = found * sqrt(len(values))
    if found > NOISE * (abs(mean) + furthest) or found > NOISE * float(np.abs(values).max()):
        return found
    return 0.0


class DeepestFall(NamedTuple):
    """The largest fall of an equity, as indexes of its values."""

    share: float
    highest: int
    """The last value at the maximum before the fall."""
    lowest: int
    back: int | None
    """The first value after `lowest` that is at the maximum again. None if there is none."""


def deepest_fall(equity: Values) -> DeepestFall | None:
    """Returns the largest fall from an earlier maximum, as a share of it; None if the equity never falls."""
    highest = np.maximum.accumulate(equity)
    falls = equity / highest
    np.subtract(1.0, falls, out=falls)
    deepest = int(falls.argmax())
    if falls[deepest] <= 0.0:
        return None
    peak = int((equity[: deepest + 1] == highest[deepest]).nonzero()[0][-1])
    back = (equity[deepest:] >= highest[deepest]).nonzero()[0]
    return DeepestFall(float(falls[deepest]), peak, deepest, deepest + int(back[0]) if len(back) else None)


def drawdown_of(equity: Values) -> tuple[float, int]:
    """Returns the largest drawdown, and the number of bars from its maximum until the equity is back at it."""
    found = deepest_fall(equity)
    if found is None:
        return 0.0, 0
    return found.share, (len(equity) - 1 if found.back is None else found.back) - found.highest
