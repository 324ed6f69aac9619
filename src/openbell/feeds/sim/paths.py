"""Prices at the start and end of minutes: random walks over days, and a bridge over each day.

A walk, of the factor of an asset class or of the own moves of a symbol, has a level at the start and at the end of every
day. Every `BLOCK` days it has an independent random level (a tie), and it is a bridge between two ties. So it looks like a
random walk, never drifts away, and any day of any year is computed from one block. Levels are in units of the volatility of
an average day.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from openbell.feeds.sim.days import DAY, MinuteRows
from openbell.feeds.sim.noise import approximate_exp, between_hours, hour_knots, normals, salt, slow_normals
from openbell.feeds.sim.universe import FACTORS, SimulatedSymbol
from openbell.market.bars import Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times

_LIMIT = 1.25
"""The largest distance of a price from the anchor, as a logarithm (a factor of 3.5)."""
BLOCK = 256

# For each weekday from Monday on: the variance of the night before and of the day.
_NIGHT_AND_DAY = {
    AssetClass.STOCK: ((0.4, 0.7), (0.3, 0.7), (0.3, 0.7), (0.3, 0.7), (0.3, 0.7), (0.0, 0.0), (0.0, 0.0)),
    AssetClass.CRYPTO: ((0.0, 1.1), (0.0, 1.1), (0.0, 1.1), (0.0, 1.1), (0.0, 1.1), (0.0, 0.6), (0.0, 0.7)),
    AssetClass.FOREX: ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 0.85), (0.0, 0.0), (0.15, 0.06)),
}
_DEVIATIONS = {name: np.sqrt(np.array(shares)) for name, shares in _NIGHT_AND_DAY.items()}
_TIE_DEVIATIONS = {
    # The difference of two ties has the variance of a free walk over one block. `fsum`, because the rounding of `sum`
    # depends on the Python version.
    name: math.sqrt(BLOCK / 7 * math.fsum(share for both in shares for share in both) / 2)
    for name, shares in _NIGHT_AND_DAY.items()
}


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """One row per day, one column per minute."""

    minute: Times
    """Minutes since 1970."""
    open: Values
    close: Values
    deviation: Values
    """The standard deviation of that minute's move, as a fraction of the price."""
    activity: Values
    """The volume relative to an average minute."""


def trace(listing: SimulatedSymbol, asset_class: AssetClass, seed: int, days: MinuteRows) -> Path:
    """Returns the path of one symbol over some days; each row depends on its own day only."""
    factor = Walk(seed, asset_class.value, asset_class, FACTORS[asset_class].common)
    own = Walk(seed, listing.own, asset_class)
    by_factor, by_own = listing.factor_volatility, listing.own_volatility
    shape = np.sqrt(days.variance())
    minute = days.minutes()

    relative = own.minute_volatility(days.start, minute.shape[1])
    activity = relative * days.volume()
    steps, variance = _steps(own, by_own, relative, days, minute, shape)
    relative = factor.minute_volatility(days.start, minute.shape[1])
    more_steps, more_variance = _steps(factor, by_factor, relative, days, minute, shape)
    steps += more_steps
    variance += more_variance

    first, last = (
        by_factor * a + by_own * b for a, b in zip(factor.levels(days.number), own.levels(days.number), strict=True)
    )
    close = approximate_exp(_limited(bridge(steps, np.cumsum(variance, axis=1), first, last)))
    close *= listing.anchor
    opening = np.empty_like(close)
    opening[:, 0] = approximate_exp(_limited(first)) * listing.anchor
    opening[:, 1:] = close[:, :-1]
    if listing.basis:
        _add_basis(listing, seed, days, opening, close)
    return Path(minute, opening, close, np.sqrt(variance, out=variance), activity)


def _steps(
    walk: Walk, volatility: float, relative: Values, days: MinuteRows, minute: Times, shape: Values
) -> tuple[Values, Values]:
    """Returns the moves that one walk adds to each minute, and their variances."""
    deviation = relative * shape
    deviation *= (volatility * walk.within(days.number))[:, None]
    steps = walk.moves(minute)
    steps *= deviation
    deviation *= deviation
    return steps, deviation


def _limited(level: Values) -> Values:
    """Returns levels between −`_LIMIT` and `_LIMIT`: almost unchanged near 0, compressed far from it."""
    slack = level / _LIMIT
    slack *= slack
    slack += 1
    np.sqrt(slack, out=slack)
    return level / slack


def _add_basis(listing: SimulatedSymbol, seed: int, days: MinuteRows, opening: Values, close: Values) -> None:
    """Changes the prices of a twin by its basis, which varies continuously from minute to minute."""
    knots = hour_knots(salt(seed, f"{listing.symbol}: basis"), days.start, close.shape[1])
    off = 1 + listing.basis * between_hours(knots)
    opening *= off
    close[:, :-1] *= off[:, 1:]
    close[:, -1] *= 1 + listing.basis * knots[:, -1]


def _weekday(days: Times) -> Times:
    return (days + 3) % 7  # 1970-01-01 was a Thursday


@dataclass(frozen=True, slots=True)
class Walk:
    """The walk of a given name; `common` is its correlation with the moves that all walks share."""

    seed: int
    name: str
    asset_class: AssetClass
    common: float = 0.0

    def levels(self, days: Times) -> tuple[Values, Values]:
        """Returns the levels at the start and at the end of each day (days since 1970, ascending)."""
        blocks = np.unique(days // BLOCK)
        inside = np.arange(BLOCK, dtype=np.int64)
        every = blocks[:, None] * BLOCK + inside
        steps = self._deviations(every) * self.daily_volatility(every)[:, :, None]
        shares = np.cumsum((steps * steps).reshape(len(blocks), -1), axis=1)
        steps *= self._normals("nights and days", every[:, :, None] * 2 + np.arange(2, dtype=np.int64))
        tie = _TIE_DEVIATIONS[self.asset_class]
        first, last = tie * self._normals("ties", blocks), tie * self._normals("ties", blocks + 1)
        path = bridge(steps.reshape(len(blocks), -1), shares, first, last)
        at = np.searchsorted(blocks, days // BLOCK), days % BLOCK * 2
        return path[at], path[at[0], at[1] + 1]

    def within(self, days: Times) -> Values:
        """Returns the standard deviation of the move from the start to the end of each day, which depends on the weekday."""
        return self._deviations(days)[..., 1]

    def daily_volatility(self, days: Times) -> Values:
        """Returns the volatility of each day relative to an average day, in clusters of weeks and months."""
        weeks, months = salt(self.seed, f"{self.name}: weeks"), salt(self.seed, f"{self.name}: months")
        return approximate_exp(0.30 * slow_normals(weeks, days, 9) + 0.42 * slow_normals(months, days, 41) - 0.09)

    def minute_volatility(self, starts: Times, minutes: int) -> Values:
        """Returns the relative volatility of each minute of each row: the day's, with a variation from hour to hour."""
        knots = approximate_exp(0.35 * hour_knots(salt(self.seed, f"{self.name}: hours"), starts, minutes) - 0.06)
        return between_hours(knots * self.daily_volatility(starts // DAY)[:, None])

    def moves(self, minutes: Times) -> Values:
        """Returns a move for each minute (minutes since 1970) with variance 1."""
        return self._normals("minutes", minutes)

    def _deviations(self, days: Times) -> Values:
        deviations: Values = _DEVIATIONS[self.asset_class][_weekday(days)]
        return deviations

    def _normals(self, purpose: str, counter: Times) -> Values:
        value = normals(salt(self.seed, f"{self.name}: {purpose}"), counter)
        if self.common:
            value *= math.sqrt(1 - self.common * self.common)
            value += self.common * normals(salt(self.seed, f"all: {purpose}"), counter)
        return value


def bridge(steps: Values, shares: Values, first: Values, last: Values) -> Values:
    """Returns the level after each step of rows of steps, corrected so that each row runs from `first` to `last`.

    The correction is distributed over the steps by their variance. `shares` is the running sum of the variances.
    """
    path = np.cumsum(steps, axis=1)
    missing = last - first - path[:, -1]
    path += shares * (missing / shares[:, -1])[:, None]
    path += first[:, None]
    path[:, -1] = last
    return path
