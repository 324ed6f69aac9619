"""One random walk over days, without state: a class's factor, or what is a symbol's own.

A walk has a level at the start and at the end of every day. It is tied to a fresh random level every `BLOCK` days and
runs as a bridge between: it looks like a walk with its volatility, yet never drifts away, and any day of any year
costs one block. All is in units of the volatility of a usual day.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from openbell.feeds.sim.days import DAY
from openbell.feeds.sim.noise import between_hours, growth, hour_knots, normals, salt, slow
from openbell.market.bars import Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times

BLOCK = 256

# The variance of the night before a day and of the day itself, Monday first.
_NIGHT_AND_DAY = {
    AssetClass.STOCK: ((0.4, 0.7), (0.3, 0.7), (0.3, 0.7), (0.3, 0.7), (0.3, 0.7), (0.0, 0.0), (0.0, 0.0)),
    AssetClass.CRYPTO: ((0.0, 1.1), (0.0, 1.1), (0.0, 1.1), (0.0, 1.1), (0.0, 1.1), (0.0, 0.6), (0.0, 0.7)),
    AssetClass.FOREX: ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 0.85), (0.0, 0.0), (0.15, 0.06)),
}
_DEVIATIONS = {name: np.sqrt(np.array(shares)) for name, shares in _NIGHT_AND_DAY.items()}
_TIES = {
    # Independent ties whose differences vary as much as a free walk's over a block would. `sum` of floats rounds
    # differently from one Python to the next; `fsum` does not.
    name: math.sqrt(BLOCK / 7 * math.fsum(share for both in shares for share in both) / 2)
    for name, shares in _NIGHT_AND_DAY.items()
}


def _weekday(days: Times) -> Times:
    return (days + 3) % 7  # 1970-01-01 was a Thursday


@dataclass(frozen=True, slots=True)
class Walk:
    """The walk that belongs to a name; `common` is its correlation with the moves that every such walk shares."""

    seed: int
    name: str
    asset_class: AssetClass
    common: float = 0.0

    def levels(self, days: Times) -> tuple[Values, Values]:
        """The levels at the start and at the end of each day (days since 1970, ascending)."""
        blocks = np.unique(days // BLOCK)
        inside = np.arange(BLOCK, dtype=np.int64)
        every = blocks[:, None] * BLOCK + inside
        steps = self._deviations(every) * self.moods(every)[:, :, None]
        shares = np.cumsum((steps * steps).reshape(len(blocks), -1), axis=1)
        steps *= self._normals("nights and days", every[:, :, None] * 2 + np.arange(2, dtype=np.int64))
        tie = _TIES[self.asset_class]
        first, last = tie * self._normals("ties", blocks), tie * self._normals("ties", blocks + 1)
        path = bridge(steps.reshape(len(blocks), -1), shares, first, last)
        at = np.searchsorted(blocks, days // BLOCK), days % BLOCK * 2
        return path[at], path[at[0], at[1] + 1]

    def within(self, days: Times) -> Values:
        """The standard deviation of a usual move from a day's start to its end, by weekday."""
        return self._deviations(days)[..., 1]

    def moods(self, days: Times) -> Values:
        """How nervous each day is: volatility comes in clusters of weeks and of months."""
        weeks, months = salt(self.seed, f"{self.name}: weeks"), salt(self.seed, f"{self.name}: months")
        return growth(0.30 * slow(weeks, days, 9) + 0.42 * slow(months, days, 41) - 0.09)

    def nerves(self, starts: Times, minutes: int) -> Values:
        """How nervous each minute of each row is: the day's mood, wandering from hour to hour."""
        knots = growth(0.35 * hour_knots(salt(self.seed, f"{self.name}: hours"), starts, minutes) - 0.06)
        return between_hours(knots * self.moods(starts // DAY)[:, None])

    def moves(self, minutes: Times) -> Values:
        """One move per minute (minutes since 1970), variance 1."""
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
    """Rows of steps summed up so that each row runs from `first` to `last`; what is missing is spread by variance.

    `shares` is the running sum of the steps' variances. The result holds the level after each step.
    """
    path = np.cumsum(steps, axis=1)
    missing = last - first - path[:, -1]
    path += shares * (missing / shares[:, -1])[:, None]
    path += first[:, None]
    path[:, -1] = last
    return path
