"""The true range and Wilder's average of it, one bar at a time: the unit of channels and trailing stops."""

from __future__ import annotations

from openbell.indicators.exact_averages import wilder
from openbell.indicators.spec import Bar


class RunningRange:
    """The first bar's true range is its high less its low; later bars include the gap from the previous close."""

    __slots__ = ("_close",)

    def __init__(self) -> None:
        self._close: float | None = None

    def update(self, bar: Bar) -> float:
        """The true range of this bar."""
        top, bottom, before = bar.high, bar.low, self._close
        if before is not None:
            if before > top:
                top = before
            elif before < bottom:
                bottom = before
        self._close = bar.close
        return top - bottom


class RunningAtr:
    """Wilder's average of the true range, bit for bit equal to `atr` over arrays."""

    __slots__ = ("_average", "_range")

    def __init__(self, length: int) -> None:
        self._range = RunningRange()
        self._average = wilder(length)

    def update(self, bar: Bar) -> float:
        """The average after this bar; NaN before warm-up."""
        return self._average.update(self._range.update(bar))
