"""Ichimoku: four lines of middles between the highest high and the lowest low, and the lagging close.

The two spans are drawn `base` bars after the bar that they are computed at, and cut off at the chart's edge. The lagging
line is the close drawn `base` bars before its own bar, so it is not known at the bar at which it is drawn.
"""

from __future__ import annotations

from collections import deque
from math import nan

import numpy as np

from openbell.indicators.channels import Channels, Fill, Line
from openbell.indicators.displacement import shifted_later
from openbell.indicators.highs_and_lows import RunningExtremes, middle
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.market.bars import Bars, Values


def _shifted_earlier(values: Values, by: int) -> Values:
    out = np.full(len(values), np.nan)
    out[: max(0, len(values) - by)] = values[by:]
    return out


def _compute(bars: Bars, conversion: int, base: int, span: int) -> Channels:
    fast = middle(bars.high, bars.low, conversion)
    slow = middle(bars.high, bars.low, base)
    span_a = shifted_later((fast + slow) / 2.0, base)
    span_b = shifted_later(middle(bars.high, bars.low, span), base)
    return Channels(
        lines=(
            Line("Conversion", fast),
            Line("Base", slow),
            Line("Span A", span_a),
            Line("Span B", span_b),
            Line("Lagging", _shifted_earlier(bars.close, base)),
        ),
        fills=(Fill(span_a, span_b),),
    )


class _Stream:
    def __init__(self, conversion: int, base: int, span: int) -> None:
        self._fast, self._slow, self._span = (RunningExtremes(length) for length in (conversion, base, span))
        self._spans = deque([(nan, nan)] * base, maxlen=base)

    def update(self, bar: Bar) -> tuple[float, ...]:
        fast = self._fast.middle(bar.high, bar.low)
        slow = self._slow.middle(bar.high, bar.low)
        span = self._span.middle(bar.high, bar.low)
        span_a, span_b = self._spans[0]
        self._spans.append(((fast + slow) / 2.0, span))
        return fast, slow, span_a, span_b, nan


INDICATOR = Indicator(
    name="ichimoku",
    title="Ichimoku",
    description="Conversion and base line, the cloud between two spans drawn ahead, and the close drawn behind",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda conversion, base, span: max(conversion, base, span) + base,
    parameters=(Parameter("conversion", 9, 1, 500), Parameter("base", 26, 1, 500), Parameter("span", 52, 1, 500)),
    inputs=("high", "low", "close"),
    displaced=("Lagging",),
)
