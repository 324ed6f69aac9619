"""Bars of several sources in InfluxDB: each bar has its source as a tag, but for minutes of the first source of a month.

InfluxDB replaces a bar that is written again with the same tags; bars of another source must be deleted.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.instruments import Instrument
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores import coverage, newest_bars, stored_counts
from openbell.stores.buffered import BufferedStore
from openbell.stores.influx.bars import InfluxBars
from openbell.stores.influx.http import InfluxHttp
from openbell.stores.influx.rollups import Rollups
from openbell.stores.parquet import bar_files
from openbell.stores.periods import LAST, period_span, slug_of
from openbell.stores.port import Counted, Lease, Span, Tally

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


class SourcedInflux(BufferedStore):
    """The part of the InfluxDB store that writes native series and replaces bars of other sources."""

    _http: InfluxHttp
    _bars: InfluxBars
    _rollups: Rollups

    def _write_native(self, period: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        number, _ = self._announce(period, bars, source, lease, replace)
        self._bars.write_of_sources([(bars, slug_of(period))])
        with self._buffer.transaction() as db:
            self._home_leases.check(lease)
            self._note_stored(db, number, period, bars)
            self._buffer.end_change(db, number)
            if not newest_bars.record(db, number, bars):
                newest_bars.set_latest(db, number, barlib.merge(self._bars.tail(bars.series, 1, LAST), bars))

    def _announce(self, period: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> tuple[int, str]:
        """Make readers read again until `end_change`, record the source, and delete the bars that are replaced.

        What is deleted is no longer covered before it is deleted: if this process is killed, it is known to be missing.
        Returns the id of the series and the period to which the bars go.
        """
        series = bars.series
        with self._buffer.transaction() as db:
            self._home_leases.check(lease)
            number = self._buffer.ensure_series(db, series.name)
            period = self.sources.period_for(number, period, bars, source, replace=replace)
            if not replace:
                self.sources.refuse_conflicts(number, period, bars, source)
            to_replace = self.sources.to_replace(number, period, bars, source) if replace else {}
            self._buffer.begin_change(db, number)
            self._before_put(db, [(number, bars)])
            if period not in to_replace:
                if self._buffer.period_source(db, number, period) is None:
                    stored_counts.restart(db, number, period)
                self._buffer.set_period_source(db, number, period, source)
            for other, span in to_replace.items():
                stored_counts.restart(db, number, other)
                newest_bars.forget(db, number)
                coverage.uncover(db, number, span)
                if series.timeframe is Timeframe.M1:
                    self._rollups.uncover(db, series, span)
        for other, span in to_replace.items():
            if series.timeframe is Timeframe.M1:
                self._rollups.delete(series, span)
            self._bars.delete_of_source(series, span, slug_of(other))
            with self._buffer.transaction() as db:
                self._count_again(db, number, series, other)
                self._drop_buffered(db, number, series, span, slug_of(other))
                if not len(self.sources.times_of(series, other)):
                    self._buffer.clear_period_source(db, number, other)
                if other == period:
                    if stored_counts.get(db, number, period) is None:
                        stored_counts.restart(db, number, period)
                    self._buffer.set_period_source(db, number, period, source)
        return number, period

    def set_aside(self, instrument: Instrument, source: Source, reason: str) -> bool:
        """See the port. The bars are written to Parquet files beside the buffer before they are deleted."""
        for series in (Series(instrument), *(Series(instrument, each) for each in self.timeframes(instrument))):
            periods = [each for each, owner in self._buffer.period_sources(series).items() if owner == source]
            for period in periods:
                span = Span(*period_span(period))
                aside = self._written_aside(series, period, source)
                with self._buffer.transaction() as db:
                    number = self._buffer.ensure_series(db, series.name)
                    self._buffer.add_problem(db, aside, reason)
                    stored_counts.restart(db, number, period)
                    self._buffer.begin_change(db, number)
                    newest_bars.forget(db, number)
                    for part in self.sources.fetched(series, span, besides=period):
                        coverage.uncover(db, number, part)
                    self._drop_buffered(db, number, series, span, slug_of(period))
                self._bars.delete_of_source(series, span, slug_of(period))
                with self._buffer.transaction() as db:
                    stored_counts.forget(db, number, period)
                    self._buffer.clear_period_source(db, number, period)
                    self._buffer.end_change(db, number)
        return True

    def _written_aside(self, series: Series, period: str, source: Source) -> Path:
        """Write the bars of one period to a Parquet file. Returns its path."""
        buffered = self._buffer.get(series, *period_span(period), slug=slug_of(period))
        bars = barlib.merge(self.read_period(series, period, *period_span(period)), buffered)
        file = bar_files.bar_file(self._buffer.path.parent / "aside", series, period)
        bar_files.write(file, bars, source)
        aside = file.path.with_name(f"{file.path.name}.aside-{time.time_ns()}")
        file.path.replace(aside)
        log.warning("set aside %s", aside)
        return aside

    def _drop_buffered(self, db: sqlite3.Connection, number: int, series: Series, span: Span, slug: str) -> None:
        """Remove buffered minutes of one source, and what was made of them."""
        if series.timeframe is Timeframe.M1:
            self._buffer.delete(db, number, span, slug)
            self._rollups.drop(db, series, span)

    def read_period(self, series: Series, period: str, start: int, end: int) -> Bars:
        """See `Archive`."""
        first, last = period_span(period)
        return self._bars.read_of_source(series, max(start, first), min(end, last), slug_of(period))

    # How many bars there are

    def _note_stored(self, db: sqlite3.Connection, number: int, period: str, written: Bars) -> None:
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

    def _count_again(self, db: sqlite3.Connection, number: int, series: Series, period: str) -> None:
        """Record how many bars of a period there are after some were removed on purpose."""
        stored_counts.put(db, number, period, self.tallies(series, {period: None})[period])

    def place_of(self, series: Series, period: str) -> Path:  # noqa: ARG002
        """See `Archive`."""
        return Path(f"InfluxDB database {self._http.database}")

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
