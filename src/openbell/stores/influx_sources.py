"""Bars of several sources in InfluxDB: each bar has its source as a tag, but for minutes of the first source of a month.

InfluxDB replaces a bar that is written again with the same tags; bars of another source must be deleted.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from pathlib import Path

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.instruments import Instrument
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores import bar_files, coverage, newest_bars
from openbell.stores.buffered import BufferedStore
from openbell.stores.influx_bars import InfluxBars
from openbell.stores.periods import LAST, period_span, slug_of
from openbell.stores.port import Lease, Span
from openbell.stores.rollups import Rollups

log = logging.getLogger(__name__)


class SourcedInflux(BufferedStore):
    """The part of the InfluxDB store that writes native series and replaces bars of other sources."""

    _bars: InfluxBars
    _rollups: Rollups

    def _write_native(self, period: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        number, _ = self._announce(period, bars, source, lease, replace)
        self._bars.write_of_sources([(bars, slug_of(period))])
        with self._buffer.transaction() as db:
            self._check_lease(lease)
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
            self._check_lease(lease)
            number = self._buffer.ensure_series(db, series.name)
            period = self._period_for(number, period, bars, source, replace=replace)
            if not replace:
                self._refuse_conflicts(number, period, bars, source)
            to_replace = self._to_replace(number, period, bars, source) if replace else {}
            self._buffer.begin_change(db, number)
            self._before_put(db, [(number, bars)])
            if period not in to_replace:
                self._buffer.set_period_source(db, number, period, source)
            for span in to_replace.values():
                newest_bars.forget(db, number)
                coverage.uncover(db, number, span)
                if series.timeframe is Timeframe.M1:
                    self._rollups.uncover(db, series, span)
        for other, span in to_replace.items():
            if series.timeframe is Timeframe.M1:
                self._rollups.delete(series, span)
            self._bars.delete_of_source(series, span, slug_of(other))
            with self._buffer.transaction() as db:
                self._drop_buffered(db, number, series, span, slug_of(other))
                if not len(self._times_of(series, other)):
                    self._buffer.clear_period_source(db, number, other)
                if other == period:
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
                    self._buffer.begin_change(db, number)
                    newest_bars.forget(db, number)
                    for part in self._fetched(series, span, besides=period):
                        coverage.uncover(db, number, part)
                    self._drop_buffered(db, number, series, span, slug_of(period))
                self._bars.delete_of_source(series, span, slug_of(period))
                with self._buffer.transaction() as db:
                    self._buffer.clear_period_source(db, number, period)
                    self._buffer.end_change(db, number)
        return True

    def _written_aside(self, series: Series, period: str, source: Source) -> Path:
        """Write the bars of one period to a Parquet file. Returns its path."""
        buffered = self._buffer.get(series, *period_span(period), slug=slug_of(period))
        bars = barlib.merge(self._read_period(series, period, *period_span(period)), buffered)
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

    def _read_period(self, series: Series, period: str, start: int, end: int) -> Bars:
        first, last = period_span(period)
        return self._bars.read_of_source(series, max(start, first), min(end, last), slug_of(period))
