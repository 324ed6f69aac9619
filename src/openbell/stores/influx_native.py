"""Native series in InfluxDB: written at once, because InfluxDB replaces a bar that is written again."""

from __future__ import annotations

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.stores import coverage, newest_bars
from openbell.stores.buffered import BufferedStore, conflict
from openbell.stores.influx_bars import InfluxBars
from openbell.stores.periods import FIRST, LAST, period_span, slug
from openbell.stores.port import Lease, Span


class NativeInflux(BufferedStore):
    """The part of the InfluxDB store that writes native series."""

    _bars: InfluxBars

    def _write_native(self, period: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            number = self._buffer.ensure_series(db, bars.series.name)
            conflicting = self._conflicting(period, bars, source)
            for other, owner in {} if replace else conflicting.items():
                raise conflict(bars.series, other, owner, source)
            self._buffer.begin_change(db, number)
            self._before_put(db, [(number, bars)])
            self._buffer.set_period_source(db, number, period, source)
        for other, owner in conflicting.items():
            same = owner.adjustment == source.adjustment
            span = Span(int(bars.time[0]), int(bars.time[-1]) + 1) if same else Span(FIRST, LAST)
            self._bars.delete_native(bars.series, span, slug(owner))
            with self._buffer.transaction() as db:
                newest_bars.forget(db, number)
                coverage.uncover(db, number, span)
                if not len(self._read_period(bars.series, other, *period_span(other))):
                    self._buffer.clear_period_source(db, number, other)
        self._bars.write_native(bars, slug(source))
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            self._buffer.end_change(db, number)
            if not newest_bars.record(db, number, bars):
                newest_bars.set_latest(db, number, barlib.merge(self._bars.tail(bars.series, 1, LAST), bars))

    def _read_period(self, series: Series, period: str, start: int, end: int) -> Bars:
        first, last = period_span(period)
        return self._bars.read_native(series, max(start, first), min(end, last), period.partition(".")[2])
