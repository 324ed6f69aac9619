"""Series beyond bars, from seed, symbol and time like the bars, and in step with them.

Order flow follows each minute's bar. The rest follows how the price has moved of late and rests on nothing later than its
own moment: whoever looks at it cannot see the future in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from openbell.feeds.sim.days import DAY, days_between
from openbell.feeds.sim.minutes import minute_bars
from openbell.feeds.sim.noise import growth, lane, normals, salt, slow, words
from openbell.feeds.sim.paths import trace
from openbell.feeds.sim.universe import FACTORS, LISTINGS
from openbell.feeds.sim.walks import Walk
from openbell.market.bars import Values
from openbell.market.extras import Extra
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import Times

_HOUR = 3600
_CHUNK = 32
"""Days whose path is computed at once."""

_PUBLISHED = {AssetClass.CRYPTO: 0, AssetClass.STOCK: 6 * _HOUR}
"""When in the UTC day fear and greed comes out: after the day before has ended, extended hours included."""


def kinds_of(asset_class: AssetClass) -> tuple[str, ...]:
    """The series that such instruments have here."""
    return "delta", *(kind for kind, paced in _PACED.items() if asset_class in paced.classes)


def series(kind: str, instrument: Instrument, seed: int, start: int, end: int) -> Extra:
    """The values in [start, end), whatever the time is now."""
    if kind == "delta":
        return _delta(instrument, seed, start, end)
    paced = _PACED[kind]
    late = _PUBLISHED[instrument.asset_class] if kind == "fear_greed" else 0
    first = -(-(start - late) // paced.step) * paced.step + late
    moments = np.arange(first, end, paced.step, dtype=np.int64)
    return Extra(moments, paced.values(instrument, seed, moments) if len(moments) else np.empty(0))


def _delta(instrument: Instrument, seed: int, start: int, end: int) -> Extra:
    """Buys less sells of each minute, under its open time: the way of the bar, and never more than was traded."""
    bars = minute_bars(instrument, seed, start, end)
    reach = bars.high - bars.low
    lean = np.divide(bars.close - bars.open, reach, out=np.zeros(len(bars)), where=reach > 0)
    share = 0.35 + 0.6 * lane(words(salt(seed, f"{instrument}: delta"), bars.time // 60), 0)
    decimals = 4 if instrument.asset_class is AssetClass.CRYPTO else 0
    return Extra(bars.time, np.round(bars.volume * lean * share, decimals) + 0.0)


def _funding(instrument: Instrument, seed: int, moments: Times) -> Values:
    """The rate per 8 hours: longs pay after a rise."""
    rate: Values = 0.0001 + 0.004 * _change(instrument, seed, moments, DAY)
    rate += 0.00004 * normals(salt(seed, f"{instrument}: funding"), moments // _HOUR)
    capped: Values = np.clip(rate, -0.003, 0.003)
    return np.round(capped, 8)


def _open_interest(instrument: Instrument, seed: int, moments: Times) -> Values:
    """In coins, about three days' volume: a rise draws positions in."""
    hours = moments // _HOUR
    level = 0.18 * slow(salt(seed, f"{instrument}: open interest, weeks"), hours, 24 * 11)
    level += 0.05 * slow(salt(seed, f"{instrument}: open interest, days"), hours, 24)
    level += 1.2 * _change(instrument, seed, moments, 3 * DAY)
    usual = LISTINGS[instrument].volume * 1440 * 3
    return np.round(usual * growth(level), 3)


def _long_short(instrument: Instrument, seed: int, moments: Times) -> Values:
    """Accounts that are long to those that are short: most buy what has fallen."""
    hours = moments // _HOUR
    level = 0.12 + 0.10 * slow(salt(seed, f"{instrument}: long short, days"), hours, 60)
    level += 0.01 * normals(salt(seed, f"{instrument}: long short"), hours)
    level -= 3.0 * _change(instrument, seed, moments, DAY)
    return np.round(growth(level), 4)


def _fear_greed(instrument: Instrument, seed: int, moments: Times) -> Values:
    """0 to 100, one for all of a class: greed after a rise of its factor, fear when it is nervous."""
    asset_class = instrument.asset_class
    factor = Walk(seed, asset_class.value, asset_class, FACTORS[asset_class].common)
    yesterday = moments // DAY - 1
    level = factor.levels(yesterday)[1]
    mood: Values = 0.09 * (level - factor.levels(yesterday - 7)[1]) + 0.04 * (level - factor.levels(yesterday - 30)[1])
    mood -= 0.25 * (factor.moods(yesterday) - 1)
    mood += 0.07 * normals(salt(seed, f"{asset_class.value}: fear and greed"), yesterday)
    mood /= np.sqrt(1 + mood * mood)  # ever less willing towards either end
    return np.round(50 + 50 * mood)


def _change(instrument: Instrument, seed: int, moments: Times, span: int) -> Values:
    """How much the price has changed over the `span` before each moment (on the hour), as a fraction."""
    days = days_between(instrument.asset_class, int(moments[0]) - span - _HOUR, int(moments[-1]))
    rows = [days.take(slice(at, at + _CHUNK)) for at in range(0, len(days), _CHUNK)]
    paths = [trace(LISTINGS[instrument], instrument.asset_class, seed, some) for some in rows]
    price = np.concatenate([path.close[:, 59::60].reshape(-1) for path in paths])
    at = (moments - days.start[0]) // _HOUR - 1
    change: Values = price[at] / price[at - span // _HOUR] - 1.0
    return change


@dataclass(frozen=True, slots=True)
class _Paced:
    """A series with a value every `step` seconds."""

    classes: frozenset[AssetClass]
    step: int
    values: Callable[[Instrument, int, Times], Values]


_CRYPTO = frozenset({AssetClass.CRYPTO})
_PACED = {
    "funding": _Paced(_CRYPTO, 8 * _HOUR, _funding),
    "open_interest": _Paced(_CRYPTO, _HOUR, _open_interest),
    "long_short": _Paced(_CRYPTO, _HOUR, _long_short),
    "fear_greed": _Paced(frozenset({AssetClass.CRYPTO, AssetClass.STOCK}), DAY, _fear_greed),
}
