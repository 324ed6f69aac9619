"""Wilder's average true range, one bar at a time: what channels and trailing stops measure their distance in."""

from __future__ import annotations

from openbell.indicators.running import wilder
from openbell.indicators.spec import Bar


class RunningAtr:
    """The true range of the first bar is its height; the gap from the previous close counts from the second on."""

    __slots__ = ("_average", "_close")

    def __init__(self, length: int) -> None:
        self._average = wilder(length)
        self._close: float | None = None

    def update(self, bar: Bar) -> float:
        """The average after this bar; NaN before warm-up."""
        top, bottom, before = bar.high, bar.low, self._close
        if before is not None:
            if before > top:
                top = before
            elif before < bottom:
                bottom = before
        self._close = bar.close
        return self._average.update(top - bottom)
