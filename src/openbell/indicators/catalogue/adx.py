"""Wilder's directional movement: upward and downward moves of the range (+DI, −DI), and their imbalance (ADX)."""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import wilder
from openbell.indicators.catalogue.atr import true_range
from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.float_ties import above
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.market.bars import Bars, Values


def adx(bars: Bars, length: int) -> tuple[Values, Values, Values]:
    """ADX, +DI and −DI, each 0 to 100; 0 while the price does not move. As in TradingView, the first bar is not used."""
    up, down, price = np.diff(bars.high), -np.diff(bars.low), bars.high[1:]
    reach = wilder(true_range(bars)[1:], length)
    plus = _share(wilder(np.where(above(up, down, price) & (up > 0.0), up, 0.0), length), reach)
    minus = _share(wilder(np.where(above(down, up, price) & (down > 0.0), down, 0.0), length), reach)
    strength = wilder(_share(np.abs(plus - minus), plus + minus), length)
    out = np.full((3, len(bars)), np.nan)
    out[:, 1:] = strength, plus, minus
    return out[0], out[1], out[2]


def _share(part: Values, whole: Values) -> Values:
    return 100.0 * np.divide(part, whole, out=np.zeros(len(part)), where=whole != 0.0)


def _compute(bars: Bars, length: int) -> Channels:
    strength, plus, minus = adx(bars, length)
    return Channels(
        lines=(Line("ADX", strength), Line("+DI", plus), Line("-DI", minus)),
        hlines=(Level(25.0, "trend"),),
        y_range=(0.0, 100.0),
    )


INDICATOR = Indicator(
    name="adx",
    title="ADX",
    description="Wilder's average directional index with the directional indicators +DI and -DI",
    brief="Wilder's average directional index, with +DI and -DI",
    overlay=False,
    compute=_compute,
    warmup=lambda length: 2 * length,
    parameters=(Parameter("length", 14, 1, 500, aliases=("period", "di_length")),),
    aliases=("dmi", "average_directional_index", "directional_movement", "directional_movement_index"),
    inputs=("high", "low", "close"),
    differs="While the price does not move it is 0, where TradingView has no value.",
    crosses=(LinePair("+DI", "-DI"),),
)
