"""Follows one indicator along one series: a new bar costs microseconds, however many bars came before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

from openbell.indicators.channels import Signal
from openbell.indicators.evaluation import IndicatorRequest
from openbell.indicators.regular_hours import regular_part, session_days
from openbell.indicators.spec import Bar, Indicator, SignalStream
from openbell.market.bars import Bars
from openbell.market.errors import DataError


class SeriesChanged(DataError):
    """The bars do not continue the series that was followed. Build another `Follower`."""


@dataclass(frozen=True, slots=True)
class FollowedSignal(Signal):
    """A signal of a followed series. `index` counts in the bars given to `update`."""

    time: int
    """The open time of its bar, in epoch seconds UTC."""


def can_follow(indicator: Indicator) -> bool:
    """Returns True if a `Follower` supports the indicator: it has a stream and needs only bars."""
    return indicator.stream is not None and not indicator.needs and not indicator.profile


class Follower:
    """One indicator on the closed bars of one instrument at one timeframe.

    The signals of a bar equal those of the array form over all bars since the first one followed. Not thread-safe. If
    `update` raises, build another.
    """

    def __init__(self, request: IndicatorRequest, bars: Bars, regular: Bars | None = None) -> None:
        """Warm up on the bars known so far, which may be none. `regular` is as in `update`."""
        indicator = request.indicator
        if not can_follow(indicator):
            raise ValueError(f"{indicator.name} cannot be followed: it has no stream, or needs more than bars")
        self._instrument, self._timeframe = bars.instrument, bars.timeframe
        self._indicator = indicator
        self._stream = indicator.start(bars.instrument, bars.timeframe, **request.settings)
        self._emits = self._stream if isinstance(self._stream, SignalStream) else None
        self._values: tuple[float, ...] | None = None
        self._last: tuple[float, ...] | None = None
        for row in self._rows(bars, regular, 0):
            self._values = self._stream.update(row)
        self._take_last(bars)

    @property
    def last_time(self) -> int | None:
        """The open time of the last bar followed, in epoch seconds UTC; None before the first."""
        return None if self._last is None else int(self._last[0])

    @property
    def values(self) -> tuple[float, ...] | None:
        """The value of each line (then of each histogram) at the last bar followed; None before the first."""
        return self._values

    def update(self, bars: Bars, regular: Bars | None = None) -> list[FollowedSignal]:
        """Follow the bars after the last one followed, and return their signals in order.

        `bars` are closed bars of the series and include the last bar followed, so that none can be missed. Raises
        `SeriesChanged` if that bar is not among them or has changed. Earlier bars are skipped without a comparison: a caller
        whose series can change there compares the series' version.

        `regular` holds the regular-hours part of each bar, for indicators that are computed on it. If it is None, that part
        is taken from the bars themselves, which raises `DataError` if they hold more than regular hours.
        """
        if bars.instrument != self._instrument or bars.timeframe is not self._timeframe:
            raise ValueError(f"follows {self._instrument} at {self._timeframe.name}, not {bars.instrument}")
        first = self._first_new(bars)
        if first == len(bars):
            return []
        found = []
        for index, row in enumerate(self._rows(bars, regular, first), start=first):
            self._values = self._stream.update(row)
            if self._emits is not None:
                found += [FollowedSignal(index, value, label, row.time) for label, value in self._emits.signals()]
        self._take_last(bars)
        return found

    def _first_new(self, bars: Bars) -> int:
        """The index of the first bar after the last one followed."""
        if self._last is None or not len(bars):
            return 0
        index = int(bars.time.searchsorted(self._last[0]))
        if index == len(bars) or _row_at(bars, index) != self._last:
            raise SeriesChanged(
                f"{bars.instrument}: the bar of {int(self._last[0])} at {self._timeframe.name} is missing or was corrected"
            )
        return index + 1

    def _rows(self, bars: Bars, regular: Bars | None, first: int) -> Iterator[Bar]:
        """The bars from an index on, as the stream takes them."""
        new = part = bars.take(slice(first, None))
        if self._indicator.regular:
            part = regular_part(new) if regular is None else regular.take(slice(first, None))
        columns = [column.tolist() for column in part.columns()]
        days = session_days(new).tolist() if self._indicator.by_day else repeat(-1, len(new))
        return map(Bar._make, zip(*columns, days, strict=True))

    def _take_last(self, bars: Bars) -> None:
        if len(bars):
            self._last = _row_at(bars, -1)


def _row_at(bars: Bars, index: int) -> tuple[float, ...]:
    return tuple([column.item(index) for column in bars.columns()])
