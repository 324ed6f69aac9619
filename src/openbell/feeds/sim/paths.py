"""Prices at the start and end of minutes: the moves of the factor and of the symbol, as a bridge over each day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openbell.feeds.sim.days import Days
from openbell.feeds.sim.noise import approximate_exp, between_hours, hour_knots, salt
from openbell.feeds.sim.universe import FACTORS, Listing
from openbell.feeds.sim.walks import Walk, bridge
from openbell.market.bars import Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times

_LIMIT = 1.25
"""The largest distance of a price from the anchor, as a logarithm (a factor of 3.5)."""


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


def trace(listing: Listing, asset_class: AssetClass, seed: int, days: Days) -> Path:
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
    walk: Walk, volatility: float, relative: Values, days: Days, minute: Times, shape: Values
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


def _add_basis(listing: Listing, seed: int, days: Days, opening: Values, close: Values) -> None:
    """Changes the prices of a twin by its basis, which varies continuously from minute to minute."""
    knots = hour_knots(salt(seed, f"{listing.symbol}: basis"), days.start, close.shape[1])
    off = 1 + listing.basis * between_hours(knots)
    opening *= off
    close[:, :-1] *= off[:, 1:]
    close[:, -1] *= 1 + listing.basis * knots[:, -1]
