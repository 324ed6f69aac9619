"""Williams' fractals: a high above those of the bars around it (up), and a low below those of the bars around it (down).

As in TradingView: `length` bars after the extreme and `length` bars before it are lower. Before it there may be up to four
bars more that are not higher, so the last one of equal highs counts. A fractal is confirmed `length` bars after its extreme;
from that bar on its line has the price of the extreme, until the next fractal.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from openbell.indicators.channels import Channels, Direction, Line, Signal
from openbell.indicators.lines import shifted_later
from openbell.indicators.rules import LazySignals, Rule, array_signals
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import highest
from openbell.market.bars import Bars, Values

PLATEAU = 4
SIGNALS = {"fractal_up": Direction.DOWN, "fractal_down": Direction.UP}


def _tops(values: Values, length: int) -> Values:
    """The top that each bar confirms; NaN for other bars."""
    reach = highest(values, length)
    centre = shifted_later(values, length)
    level = np.ones(len(values), dtype=bool)
    rises = np.zeros(len(values), dtype=bool)
    for equal in range(PLATEAU + 1):
        if equal:
            level &= shifted_later(values, length + equal) <= centre
        rises |= level & (shifted_later(reach, length + equal + 1) < centre)
    return np.where(rises & (reach < centre), centre, np.nan)


def _rules(_: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """A signal at the bar that confirms a fractal, with the price of its extreme."""
    up, down = now
    return ("fractal_up", up > -inf, up), ("fractal_down", down > -inf, down)


def _held(values: Values) -> Values:
    """The latest value that is not NaN."""
    known = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(values))))
    return values[known]


def _compute(bars: Bars, length: int) -> Channels:
    found = (_tops(bars.high, length), -_tops(-bars.low, length))
    lines = tuple(map(Line, ("up", "down"), map(_held, found)))
    signals = array_signals(_rules, found)
    dated = LazySignals(
        lambda: tuple(Signal(each.index, each.value, each.label, extreme=each.index - length) for each in signals)
    )
    return Channels(lines=lines, signals=dated)


INDICATOR = Indicator(
    name="fractals",
    title="Fractals",
    description="Williams' fractals: the latest high above the bars around it, and the latest low below them",
    brief="Williams' fractals: latest high and low among their bars",
    overlay=True,
    compute=_compute,
    warmup=lambda length: 2 * length + 1,
    parameters=(Parameter("length", 2, 2, 100, aliases=("periods",)),),
    aliases=("williams_fractals", "williams_fractal"),
    inputs=("high", "low"),
    signals=SIGNALS,
    sparse=("up", "down"),
)
