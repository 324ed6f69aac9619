"""Bands around the session's VWAP: volume-weighted deviations of the typical price since the session began.

Squares are summed relative to the current average (West's update), so that digits are not lost at large prices.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.regular_hours import day_starts, day_sums, session_days, typical_price
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


def vwap_bands(bars: Bars, regular: Bars, multiplier: float) -> tuple[Values, Values, Values]:
    """Upper, middle and lower band; NaN where the VWAP is NaN."""
    begins = day_starts(session_days(bars))
    price = typical_price(regular)
    volume = day_sums(regular.volume, begins)
    middle = _per_volume(day_sums(price * regular.volume, begins), volume, np.nan)

    earlier = _previous(volume)
    earlier[begins] = 0.0
    away = np.where(earlier > 0.0, price - _previous(middle), 0.0)
    squares = day_sums(away * away * regular.volume * _per_volume(earlier, volume, 0.0), begins)
    width = multiplier * np.sqrt(_per_volume(squares, volume, 0.0))

    return middle + width, middle, middle - width


def _per_volume(sums: Values, volume: Values, nothing: float) -> Values:
    """Sums per unit of volume; `nothing` where there is no volume."""
    out = np.full(len(sums), nothing)
    np.divide(sums, volume, out=out, where=volume > 0.0)
    return out


def _previous(values: Values) -> Values:
    return np.concatenate((np.zeros(min(1, len(values))), values[:-1]))


def _compute(bars: Bars, regular: Bars, multiplier: float) -> Channels:
    upper, middle, lower = vwap_bands(bars, regular, multiplier)
    return Channels(
        lines=(Line("upper", upper), Line("middle", middle), Line("lower", lower)), fills=(FilledBand(upper, lower),)
    )


INDICATOR = Indicator(
    name="vwap_bands",
    title="VWAP Bands",
    description=(
        "The session's VWAP and volume-weighted deviations of the typical price around it; "
        "without width where a bar is a whole session"
    ),
    brief="The session's VWAP with weighted deviations around it",
    overlay=True,
    compute=_compute,
    warmup=lambda multiplier: 1,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("multiplier", 2.0, 0.1, 20.0, aliases=("std_dev", "mult", "bands_multiplier"), tradingview=1.0),
    ),
    inputs=("high", "low", "close", "volume"),
    regular=True,
    by_day=True,
    differs="Of a stock only regular hours count.",
)
