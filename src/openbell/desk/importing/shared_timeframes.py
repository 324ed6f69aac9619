"""Finds the timeframe of files that are too short to show it, by the other files of the same command.

A history may be split into files of one bar each. Such a file alone could hold bars of any timeframe.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from openbell.desk.importing.keys import open_of
from openbell.desk.importing.spacing import UnclearTimeframe, are_of_chance, detect
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.series import Series
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe

_DAY = 86400
_FROM_MIDNIGHT, _TO_CURRENCY_DAY = 34200, 27000
"""Seconds from midnight to 9:30 in New York, and from there to 17:00."""


@dataclass(frozen=True, slots=True)
class UnclearRows:
    """The times of a file that do not show its timeframe."""

    instruments: frozenset[Instrument]
    times: Times
    days: Times
    dates: bool
    market: AssetClass

    def may_be(self, timeframe: Timeframe, fallback: Timeframe | None) -> bool:
        """Returns True if bars of a timeframe can have these times; those of the fallback may be others with gaps."""
        longer = 1 if fallback is None else fallback.seconds // timeframe.seconds
        if longer > 1 and not are_of_chance(longer, len(self.times)):
            return False
        if timeframe.intraday:
            return not (self.dates or (self.times % timeframe.seconds).any())
        numbers = (self.days + 3) // 7 if timeframe is Timeframe.W1 else self.days
        return (self.dates or self._begin_days()) and len(np.unique(numbers)) == len(self.times)

    def _begin_days(self) -> bool:
        """Returns True if each time is a midnight, of UTC or New York, or begins a trading day."""
        utc_days = self.times // _DAY
        bells = open_of(utc_days)
        begins = [utc_days * _DAY, bells - _FROM_MIDNIGHT]
        if self.market is not AssetClass.CRYPTO:
            begins.append(bells if self.market is AssetClass.STOCK else bells + _TO_CURRENCY_DAY)
        return bool(np.isin(self.times, begins).all())


class SharedTimeframes:
    """What the files of a command show of their timeframes. All files are added before the first one is resolved."""

    def __init__(self, *, complete: bool = False) -> None:
        self.complete = complete
        """True once all files were read: what they show together decides."""
        self._shown: dict[Instrument, set[Timeframe]] = {}
        self._unclear: list[UnclearRows] = []

    def add(self, found: Iterable[Series]) -> None:
        """Add series whose files show their timeframe."""
        for series in found:
            self._shown.setdefault(series.instrument, set()).add(series.timeframe)

    def resolve(self, rows: UnclearRows, unclear: UnclearTimeframe) -> Timeframe:
        """Returns the timeframe of rows that do not show theirs. Raises `unclear` if the other files do not show it either.

        Before all files were read, the rows are added to those of the others, and `unclear` is raised.
        """
        if not self.complete:
            self._unclear.append(rows)
            raise unclear
        shown = {each for instrument in rows.instruments for each in self._shown.get(instrument, ())}
        fitting = {each for each in shown if rows.may_be(each, unclear.fallback)}
        if unclear.fallback in fitting:
            return unclear.fallback
        if len(fitting) == 1 and (unclear.fallback is None or len(rows.times) == 1):
            return fitting.pop()
        if fitting:
            raise unclear
        return self._together(rows, unclear)

    def _together(self, rows: UnclearRows, unclear: UnclearTimeframe) -> Timeframe:
        """Returns the timeframe that the unclear files of the same symbols show together."""
        others = [
            each
            for each in self._unclear
            if each.dates == rows.dates and not rows.instruments.isdisjoint(each.instruments)
        ]
        found = unclear.fallback
        if len(others) > 1:
            times, days = (np.concatenate(each) for each in zip(*((o.times, o.days) for o in others), strict=True))
            try:
                return detect(times, days, rows.dates, rows.market)
            except UnclearTimeframe as error:
                found = found or error.fallback
            except InvalidParameter:
                if len(rows.times) == 1:
                    raise
        if found is None:
            raise unclear
        return found
