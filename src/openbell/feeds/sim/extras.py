"""Series other than bars, computed from seed, symbol and time, and consistent with the bars.

Order flow follows each minute's bar. The other series follow recent price changes and never use prices after their own
timestamp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from openbell.feeds.sim.bars import minute_bars
from openbell.feeds.sim.days import DAY, days_between
from openbell.feeds.sim.noise import approximate_exp, lane, normals, salt, slow_normals, words
from openbell.feeds.sim.paths import Walk, trace
from openbell.feeds.sim.universe import FACTORS, LISTINGS
from openbell.market.bars import Values
from openbell.market.extras import Extra
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import Times

_HOUR = 3600
_CHUNK = 32
"""The number of days whose path is computed at once."""

_PUBLISHED = {AssetClass.CRYPTO: 0, AssetClass.STOCK: 6 * _HOUR}
"""The time of the UTC day, in seconds, at which fear and greed is published: after the end of the previous trading day."""


def kinds_of(asset_class: AssetClass) -> tuple[str, ...]:
    """Returns the kinds of series that instruments of this class have."""
    return "delta", *(kind for kind, periodic in _PERIODIC.items() if asset_class in periodic.classes)


def values(kind: str, instrument: Instrument, seed: int, start: int, end: int) -> Extra:
    """Returns the values in [start, end), independent of the clock."""
    if kind == "delta":
        return _delta(instrument, seed, start, end)
    periodic = _PERIODIC[kind]
    late = _PUBLISHED[instrument.asset_class] if kind == "fear_greed" else 0
    first = -(-(start - late) // periodic.step) * periodic.step + late
    moments = np.arange(first, end, periodic.step, dtype=np.int64)
    return Extra(moments, periodic.values(instrument, seed, moments) if len(moments) else np.empty(0))


def _delta(instrument: Instrument, seed: int, start: int, end: int) -> Extra:
    """Returns volume bought minus volume sold of each minute, at its open time. It has the sign of the bar's change."""
    bars = minute_bars(instrument, seed, start, end)
    reach = bars.high - bars.low
    lean = np.divide(bars.close - bars.open, reach, out=np.zeros(len(bars)), where=reach > 0)
    share = 0.35 + 0.6 * lane(words(salt(seed, f"{instrument}: delta"), bars.time // 60), 0)
    decimals = 4 if instrument.asset_class is AssetClass.CRYPTO else 0
    return Extra(bars.time, np.round(bars.volume * lean * share, decimals) + 0.0)


def _funding(instrument: Instrument, seed: int, moments: Times) -> Values:
    """Returns the funding rate per 8 hours, which is positive after a rise."""
    rate: Values = 0.0001 + 0.004 * _change(instrument, seed, moments, DAY)
    rate += 0.00004 * normals(salt(seed, f"{instrument}: funding"), moments // _HOUR)
    capped: Values = np.clip(rate, -0.003, 0.003)
    return np.round(capped, 8)


def _open_interest(instrument: Instrument, seed: int, moments: Times) -> Values:
    """Returns the open interest in coins: about three days of volume, more after a rise."""
    hours = moments // _HOUR
    level = 0.18 * slow_normals(salt(seed, f"{instrument}: open interest, weeks"), hours, 24 * 11)
    level += 0.05 * slow_normals(salt(seed, f"{instrument}: open interest, days"), hours, 24)
    level += 1.2 * _change(instrument, seed, moments, 3 * DAY)
    usual = LISTINGS[instrument].volume * 1440 * 3
    return np.round(usual * approximate_exp(level), 3)


def _long_short(instrument: Instrument, seed: int, moments: Times) -> Values:
    """Returns long accounts divided by short accounts: higher after a fall."""
    hours = moments // _HOUR
    level = 0.12 + 0.10 * slow_normals(salt(seed, f"{instrument}: long short, days"), hours, 60)
    level += 0.01 * normals(salt(seed, f"{instrument}: long short"), hours)
    level -= 3.0 * _change(instrument, seed, moments, DAY)
    return np.round(approximate_exp(level), 4)


def _fear_greed(instrument: Instrument, seed: int, moments: Times) -> Values:
    """Returns an index from 0 to 100 per asset class: higher after a rise of its factor, lower if it is volatile."""
    asset_class = instrument.asset_class
    factor = Walk(seed, asset_class.value, asset_class, FACTORS[asset_class].common)
    yesterday = moments // DAY - 1
    level = factor.levels(yesterday)[1]
    mood: Values = 0.09 * (level - factor.levels(yesterday - 7)[1]) + 0.04 * (level - factor.levels(yesterday - 30)[1])
    mood -= 0.25 * (factor.daily_volatility(yesterday) - 1)
    mood += 0.07 * normals(salt(seed, f"{asset_class.value}: fear and greed"), yesterday)
    mood /= np.sqrt(1 + mood * mood)  # limited to between −1 and 1
    return np.round(50 + 50 * mood)


def _change(instrument: Instrument, seed: int, moments: Times, span: int) -> Values:
    """Returns the relative price change over the `span` seconds before each time (on the hour)."""
    days = days_between(instrument.asset_class, int(moments[0]) - span - _HOUR, int(moments[-1]))
    rows = [days.take(slice(at, at + _CHUNK)) for at in range(0, len(days), _CHUNK)]
    paths = [trace(LISTINGS[instrument], instrument.asset_class, seed, some) for some in rows]
    price = np.concatenate([path.close[:, 59::60].reshape(-1) for path in paths])
    at = (moments - days.start[0]) // _HOUR - 1
    change: Values = price[at] / price[at - span // _HOUR] - 1.0
    return change


@dataclass(frozen=True, slots=True)
class _Periodic:
    """A series with a value every `step` seconds."""

    classes: frozenset[AssetClass]
    step: int
    values: Callable[[Instrument, int, Times], Values]


_CRYPTO = frozenset({AssetClass.CRYPTO})
_PERIODIC = {
    "funding": _Periodic(_CRYPTO, 8 * _HOUR, _funding),
    "open_interest": _Periodic(_CRYPTO, _HOUR, _open_interest),
    "long_short": _Periodic(_CRYPTO, _HOUR, _long_short),
    "fear_greed": _Periodic(frozenset({AssetClass.CRYPTO, AssetClass.STOCK}), DAY, _fear_greed),
}
