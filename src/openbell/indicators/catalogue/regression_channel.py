"""Regression channel: the end of the least-squares line through the latest closes, and deviations around it.

The deviation is that of the closes from the line (population), in two passes relative to the latest close, so that closes on
a line at a large price keep their digits. `slope` is the rise of the line per bar in per cent of the close.
"""

from __future__ import annotations

from math import nan, sqrt

import numpy as np

from openbell.indicators.channels import Channels, Fill, Line
from openbell.indicators.latest import Latest, sum_of
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import offsets, total
from openbell.market.bars import Bars, Values


def _places(length: int) -> tuple[list[float], float]:
    """The distance of each bar from the middle of the window, oldest first, and the sum of the squares."""
    return [age - (length - 1) / 2.0 for age in range(length)], length * (length * length - 1.0) / 12.0


def _line(close: Values, length: int) -> tuple[Values, Values, Values]:
    """The end of the line, the deviation around it, and its rise per bar."""
    out = np.full((3, len(close)), np.nan)
    if len(close) >= length:
        places, squares = _places(length)
        apart = offsets(close, length)
        mean = total(apart) / length
        rise = total(place * each for place, each in zip(places, apart, strict=True)) / squares
        away = (each - (mean + rise * place) for place, each in zip(places, apart, strict=True))
        out[1, length - 1 :] = np.sqrt(total(each * each for each in away) / length)
        out[0, length - 1 :] = close[length - 1 :] + (mean + rise * places[-1])
        out[2, length - 1 :] = rise
    return out[0], out[1], out[2]


def _compute(bars: Bars, length: int, deviations: float) -> Channels:
    middle, deviation, rise = _line(bars.close, length)
    upper, lower = middle + deviations * deviation, middle - deviations * deviation
    lines = (
        Line("middle", middle),
        Line("upper", upper),
        Line("lower", lower),
        Line("slope", 100.0 * rise / bars.close),
    )
    return Channels(lines=lines, fills=(Fill(upper, lower),))


class _Stream:
    def __init__(self, length: int, deviations: float) -> None:
        self._latest, self._length = Latest(length, 1), length
        places, self._squares = _places(length)
        self._places = np.array(places)
        self._deviations = deviations

    def update(self, bar: Bar) -> tuple[float, ...]:
        window = self._latest.update(bar.close)
        if window is None:
            return nan, nan, nan, nan
        close, length, places = bar.close, self._length, self._places
        apart = window[0] - close
        mean = sum_of(apart) / length
        rise = sum_of(places * apart) / self._squares
        line = rise * places
        line += mean
        middle = close + line.item(-1)
        away = np.subtract(apart, line, out=line)
        away *= away
        width = self._deviations * sqrt(sum_of(away) / length)
        return middle, middle + width, middle - width, 100.0 * rise / close


INDICATOR = Indicator(
    name="regression_channel",
    title="Regression",
    description="End of the least-squares line through the closes, deviations around it, and its slope in per cent",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, deviations: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 50, 2, 500), Parameter("deviations", 2.0, 0.1, 10.0)),
    aliases=("linreg_channel",),
)
