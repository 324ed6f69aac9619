"""The bars of a database: read by period, counted, and removed.

Each bar has its source as a tag, but for minutes of the first source of a month.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from openbell.market.bars import Bars
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores import stored_counts
from openbell.stores.buffer import Buffer
from openbell.stores.influx.bars import InfluxBars
from openbell.stores.influx.rollups import Rollups
from openbell.stores.period_sources import PeriodSources
from openbell.stores.periods import period_span, slug_of
from openbell.stores.port import Counted, Span, Tally

P = ParamSpec("P")
T = TypeVar("T")


class InfluxArchive:
    """The bars of one database. Implements `stores.port.Archive`."""

    def __init__(self, bars: InfluxBars, buffer: Buffer, rollups: Rollups, place: Path) -> None:
        self._bars = bars
        self._buffer = buffer
        self._rollups = rollups
        self._place = place

    def read(self, series: Series, start: int, end: int, newest: int | None) -> list[Bars]:
        """See `Archive`."""
        if newest is None:
            return [self._bars.read(series, start, end)]
        return [self._bars.tail(series, newest, end)]

    def read_period(self, series: Series, period: str, start: int, end: int) -> Bars:
        """See `Archive`."""
        first, last = period_span(period)
        return self._bars.read_of_source(series, max(start, first), min(end, last), slug_of(period))

    def drop(self, db: sqlite3.Connection, number: int, series: Series, spans: Sequence[Span]) -> None:
        """See `Archive`."""
        for span in spans:
            self._drop_span(db, number, series, span)

    def _drop_span(self, db: sqlite3.Connection, number: int, series: Series, span: Span) -> None:
        if series.timeframe is Timeframe.M1:
            self._rollups.drop(db, series, span)
        self._bars.delete(series, span)
        for period in self._buffer.periods(series):
            start, end = period_span(period)
            if end > span.start and start < span.end:
                self.count_again(db, number, series, period)
                if not len(PeriodSources(self._buffer, self).times_of(series, period)):
                    self._buffer.clear_period_source(db, number, period)

    # How many bars there are

    def note_stored(self, db: sqlite3.Connection, number: int, period: str, written: Bars) -> None:
        """Record how many bars of a period there are after some were written. Asks only for the days of those.

        The number never gets smaller here: if the database has lost bars, `losses` must find that.
        """
        series = written.series
        length = stored_counts.bucket_seconds(series.timeframe)
        known = stored_counts.get(db, number, period)
        last = max(int(written.time[-1]), known.last if known else 0)
        first = int(written.time[0]) // length * length
        found = self._bars.tally(series, slug_of(period), Span(max(first, period_span(period)[0]), last + 1))
        least = dict(known.tally) if known else {}
        is_new = [known is None or at > known.last or at // length not in known.tally for at in written.time.tolist()]
        new = stored_counts.tally_of(series.timeframe, written.time[np.array(is_new, dtype=bool)])
        for bucket in least.keys() | found.keys() | new.keys():
            least[bucket] = max(found.get(bucket, 0), least.get(bucket, 0) + new.get(bucket, 0))
        stored_counts.put(db, number, period, Counted(last, least, ""))

    def tallies(self, series: Series, recorded: Mapping[str, Counted | None]) -> dict[str, Counted]:
        """See `Archive`. Of minutes one query for each source. Bars that are in the buffer too are not counted."""
        found: dict[str, Counted] = {}
        for some in self._asked_together(series, recorded):
            until = max(self._counted_until(series, period, recorded[period]) for period in some)
            span = Span(min(period_span(period)[0] for period in some), until)
            tally = self._bars.tally(series, slug_of(some[0]), span)
            for period in some:
                found[period] = _counted(series, period, recorded[period], tally)
        return found

    @staticmethod
    def _asked_together(series: Series, periods: Iterable[str]) -> list[list[str]]:
        """Periods that one query counts: minutes are counted by day, and no day is in two months."""
        if series.timeframe is not Timeframe.M1:
            return [[period] for period in periods]
        by_source: dict[str, list[str]] = {}
        for period in periods:
            by_source.setdefault(slug_of(period), []).append(period)
        return list(by_source.values())

    def _counted_until(self, series: Series, period: str, known: Counted | None) -> int:
        if known and known.last:
            return known.last + 1
        waiting = self._buffer.oldest(series)
        return period_span(period)[1] if waiting is None else min(waiting, period_span(period)[1])

    def count_again(self, db: sqlite3.Connection, number: int, series: Series, period: str) -> None:
        """Record how many bars of a period there are after some were removed on purpose."""
        stored_counts.put(db, number, period, self.tallies(series, {period: None})[period])

    def place_of(self, series: Series, period: str) -> Path:  # noqa: ARG002
        """See `Archive`."""
        return self._place

    def periods(self, series: Series) -> set[str]:
        """See `Archive`."""
        return stored_counts.periods(self._buffer, series)

    def named_sources(self, series: Series, of: Span | str) -> dict[str, Source]:  # noqa: ARG002
        """See `Archive`. Only the buffer knows them."""
        return {}

    def undamaged(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See `Archive`. A database notices damage by itself."""
        return work(*args, **kwargs)


def _counted(series: Series, period: str, known: Counted | None, tally: Tally) -> Counted:
    """The part of a tally that belongs to a period. Days after the last counted bar hold bars that are still buffered."""
    length = stored_counts.bucket_seconds(series.timeframe)
    first, end = period_span(period)
    own = {each: count for each, count in tally.items() if (each + 1) * length > first and each * length < end}
    last = known.last if known else 0
    if not last and own:
        last = (max(own) + 1) * length - 1
    return Counted(last, {each: count for each, count in own.items() if each * length <= last}, "")
