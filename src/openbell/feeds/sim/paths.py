"""Prices at the boundaries of minutes: factor and own moves, laid as a bridge between a day's start and end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openbell.feeds.sim.days import Days
from openbell.feeds.sim.noise import between_hours, growth, hour_knots, salt
from openbell.feeds.sim.universe import FACTORS, Listing
from openbell.feeds.sim.walks import Walk, bridge
from openbell.market.bars import Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times

_REACH = 1.25
"""No price strays further from the anchor than this, as a logarithm (a factor of 3.5); most stay well within."""


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """One row per day, one column per minute."""

    minute: Times
    """Minutes since 1970."""
    open: Values
    close: Values
    deviation: Values
    """The standard deviation of that minute's move, as a fraction of the price."""
    bustle: Values
    """How many times the usual is traded."""


def trace(listing: Listing, asset_class: AssetClass, seed: int, days: Days) -> Path:
    """The path of one symbol through some days; each row depends on its own day alone."""
    factor = Walk(seed, asset_class.value, asset_class, FACTORS[asset_class].common)
    own = Walk(seed, listing.own, asset_class)
    by_factor, by_own = listing.factor_volatility, listing.own_volatility
    shape = np.sqrt(days.variance())
    minute = days.minutes()

    nerves = own.nerves(days.start, minute.shape[1])
    bustle = nerves * days.volume()
    steps, variance = _steps(own, by_own, nerves, days, minute, shape)
    nerves = factor.nerves(days.start, minute.shape[1])
    more_steps, more_variance = _steps(factor, by_factor, nerves, days, minute, shape)
    steps += more_steps
    variance += more_variance

    first, last = (
        by_factor * a + by_own * b for a, b in zip(factor.levels(days.number), own.levels(days.number), strict=True)
    )
    close = growth(_tethered(bridge(steps, np.cumsum(variance, axis=1), first, last)))
    close *= listing.anchor
    opening = np.empty_like(close)
    opening[:, 0] = growth(_tethered(first)) * listing.anchor
    opening[:, 1:] = close[:, :-1]
    if listing.basis:
        _stray(listing, seed, days, opening, close)
    return Path(minute, opening, close, np.sqrt(variance, out=variance), bustle)


def _steps(
    walk: Walk, volatility: float, nerves: Values, days: Days, minute: Times, shape: Values
) -> tuple[Values, Values]:
    """The moves that one walk adds to each minute, and their variances."""
    deviation = nerves * shape
    deviation *= (volatility * walk.within(days.number))[:, None]
    steps = walk.moves(minute)
    steps *= deviation
    deviation *= deviation
    return steps, deviation


def _tethered(level: Values) -> Values:
    """Held within reach of the anchor: unchanged near it, ever less willing far away."""
    slack = level / _REACH
    slack *= slack
    slack += 1
    np.sqrt(slack, out=slack)
    return level / slack


def _stray(listing: Listing, seed: int, days: Days, opening: Values, close: Values) -> None:
    """Let a twin wander a little around its kin's price, without a jump from one minute to the next."""
    knots = hour_knots(salt(seed, f"{listing.symbol}: basis"), days.start, close.shape[1])
    off = 1 + listing.basis * between_hours(knots)
    opening *= off
    close[:, :-1] *= off[:, 1:]
    close[:, -1] *= 1 + listing.basis * knots[:, -1]
