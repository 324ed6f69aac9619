"""What a request may change about an indicator: the price that it reads, and which lines it draws where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from openbell.indicators.averages import ema, sma
from openbell.indicators.channels import Channels, Fill, Line
from openbell.indicators.weighted import linear_weights, weighted_average
from openbell.market.bars import Bars, Values

SOURCES: dict[str, Callable[[Bars], Values]] = {
    "close": lambda bars: bars.close,
    "open": lambda bars: bars.open,
    "high": lambda bars: bars.high,
    "low": lambda bars: bars.low,
    "hl2": lambda bars: (bars.high + bars.low) / 2.0,
    "hlc3": lambda bars: (bars.high + bars.low + bars.close) / 3.0,
    "ohlc4": lambda bars: (bars.open + bars.high + bars.low + bars.close) / 4.0,
}
"""The prices that may stand in for the close."""
AVERAGES: dict[str, Callable[[Values, int], Values]] = {
    "SMA": sma,
    "EMA": ema,
    "WMA": lambda values, length: weighted_average(values, linear_weights(length)),
}
"""The averages that may smooth a line."""
SMOOTHED = "Smoothed MA"
"""The label of the line that an average adds."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one request. By default there are none."""

    source: str = "close"
    """One of `SOURCES`: the indicator is computed on bars with this price as their close."""
    lines: tuple[str, ...] = ()
    """The labels of the lines that are kept; all of them if empty."""
    average: str = ""
    """One of `AVERAGES`: adds a line `SMOOTHED`, this average of the first line. Empty for none."""
    average_length: int = 1
    offset: int = 0
    """Bars by which everything is moved to the right; to the left if negative."""

    @property
    def warmup(self) -> int:
        """Bars that are needed in addition to those of the indicator."""
        return max(0, self.offset) + (self.average_length if self.average else 0)

    def before(self, bars: Bars) -> Bars:
        """Returns the bars to compute on."""
        return bars if self.source == "close" else replace(bars, close=SOURCES[self.source](bars))

    def after(self, channels: Channels, count: int) -> Channels:
        """Returns the changed result for `count` bars."""
        if self.lines:
            kept, steps = (
                tuple(line for line in lines if line.label in self.lines)
                for lines in (channels.lines, channels.histogram)
            )
            channels = replace(channels, lines=kept, histogram=steps, fills=())
        if self.average and channels.lines:
            smooth = AVERAGES[self.average](channels.lines[0].values, self.average_length)
            channels = replace(channels, lines=(*channels.lines, Line(SMOOTHED, smooth)))
        return moved(channels, self.offset, count) if self.offset else channels


def moved(channels: Channels, by: int, count: int) -> Channels:
    """Returns the channels moved by a number of bars. What leaves the bars is cut off."""

    def shifted(values: Values) -> Values:
        out = np.full(len(values), np.nan)
        if by > 0:
            out[by:] = values[:-by]
        else:
            out[:by] = values[-by:]
        return out

    return replace(
        channels,
        lines=tuple(Line(line.label, shifted(line.values)) for line in channels.lines),
        histogram=tuple(Line(line.label, shifted(line.values)) for line in channels.histogram),
        fills=tuple(Fill(shifted(fill.upper), shifted(fill.lower)) for fill in channels.fills),
        hlines=tuple(each.moved(by) for each in channels.hlines),
        divlines=tuple(
            replace(each, x1=each.x1 + by, x2=each.x2 + by)
            for each in channels.divlines
            if each.x1 + by >= 0 and each.x2 + by < count
        ),
        signals=tuple(each.moved(by) for each in channels.signals if 0 <= each.index + by < count),
    )
