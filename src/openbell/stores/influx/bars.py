"""Bars in InfluxDB: the measurement `candles` for minutes, `candles_h1` and so on for bars that are made of them.

Native series have measurements of their own, `native_1h` and so on, in which each bar has its source as a tag, as minutes of
the second source of a month have. Every query is bounded in time. The first bar of a series is looked up once
and cached.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import StoreError
from openbell.market.series import Series
from openbell.market.timeframes import ALL_NAMES, Timeframe, name_of
from openbell.stores.influx.http import FIELDS, InfluxHttp, escaped
from openbell.stores.port import Span
from openbell.stores.resampling import CHUNK
from openbell.stores.stored_counts import bucket_seconds

TAG = "currency_pair"
SOURCE = "source"
MARKS = "openbell_rollups"
_EARLIEST, _LATEST = 0, 9_000_000_000
"""Bounds in epoch seconds: within InfluxDB's range, and every bar lies between them."""
ROLLED_UP = tuple(each for each in Timeframe if each is not Timeframe.M1 and not each.of_days)
"""The timeframes whose bars are written when they are made of minutes; longer ones are made of days when they are read."""
_STRETCH = 1.6
"""How much longer than its bars the first span that `tail` reads is."""


def measurement(series: Series, timeframe: Timeframe) -> str:
    """The measurement of the bars of a timeframe that are, or are made of, those of a series."""
    if series.timeframe is not Timeframe.M1:
        return f"native_{name_of(timeframe, ALL_NAMES)}"
    return "candles" if timeframe is Timeframe.M1 else f"candles_{timeframe.name.lower()}"


class InfluxBars:
    """Reads and writes bars of any timeframe. Checks neither sources nor leases."""

    def __init__(self, http: InfluxHttp, first_written: Callable[[Series], int | None]) -> None:
        """`first_written` returns the first bar of a series that this home has written; None if there is none."""
        self._http = http
        self._first_written = first_written
        self._firsts: dict[Series, int] = {}

    def write(self, *parts: Bars) -> None:
        """Store bars; a bar of the same time is replaced."""
        self._http.write(
            line for part in parts for line in _lines(part, measurement(Series(part.instrument), part.timeframe), "")
        )

    def write_of_sources(self, parts: Iterable[tuple[Bars, str]]) -> None:
        """Store bars of series, each part with its source as a tag, or without it if it is empty; see `write`."""
        tagged = ((bars, f",{SOURCE}={escaped(source)}" if source else "") for bars, source in parts)
        self._http.write(
            line for bars, tag in tagged for line in _lines(bars, measurement(bars.series, bars.timeframe), tag)
        )

    def delete(self, series: Series, span: Span, timeframes: Iterable[Timeframe] | None = None) -> None:
        """Delete the bars that opened in a span, and by default the bars of all timeframes that are made of them."""
        made = ROLLED_UP if series.timeframe is Timeframe.M1 else ()
        names = tuple(measurement(series, timeframe) for timeframe in timeframes or (series.timeframe, *made))
        self._delete(names, {TAG: series.instrument.symbol}, span)

    def delete_of_source(self, series: Series, span: Span, source: str) -> None:
        """Delete the bars with a source, or without one if it is empty, that opened in a span."""
        name = measurement(series, series.timeframe)
        self._delete((name,), {TAG: series.instrument.symbol, SOURCE: source}, span)

    def _delete(self, measurements: Iterable[str], tags: dict[str, str], span: Span) -> None:
        self._http.delete(measurements, tags, max(span.start, _EARLIEST), min(span.end, _LATEST))

    def read_of_source(self, series: Series, start: int, end: int, source: str) -> Bars:
        """The bars with a source, or without one if it is empty, that opened in [start, end)."""
        return self._read(series, series.timeframe, max(start, _EARLIEST), min(end, _LATEST), source)

    def read(self, series: Series, start: int, end: int, timeframe: Timeframe | None = None) -> Bars:
        """The bars that opened in [start, end), of the series or of a timeframe that is made of it."""
        timeframe = timeframe or series.timeframe
        start, end = max(start, _EARLIEST), min(end, _LATEST)
        step = CHUNK * timeframe.seconds
        if end - start > step:
            bounds = self._bounds(series, timeframe, start, end)
            if bounds is None:
                return barlib.empty(series.instrument, timeframe)
            start, end = bounds
        parts = [self._read(series, timeframe, at, min(at + step, end)) for at in range(start, end, step)]
        return barlib.merge(barlib.empty(series.instrument, timeframe), *parts)

    def tail(self, series: Series, count: int, end: int) -> Bars:
        """At least the latest `count` bars that opened before `end`; fewer if there are fewer."""
        end, found = min(end, _LATEST), barlib.empty_of(series)
        first = self.first(series) if count > 0 else None
        if first is None or first >= end:
            return found
        step = series.timeframe.seconds
        last = self._edge(series, series.timeframe, "last", first, end)
        at, reach = first if last is None else last + 1, int(min(count, CHUNK) * step * _STRETCH) + step
        while at > first and len(found) < count:
            start = max(first, at - reach)
            found = barlib.merge(self.read(series, start, at), found)
            at, reach = start, reach * 3
        return found

    def count(self, series: Series, timeframe: Timeframe, start: int, end: int) -> int:
        """How many bars opened in [start, end)."""
        rows = self._http.rows(
            f'SELECT count("close") FROM "{measurement(series, timeframe)}" WHERE "{TAG}" = $pair'
            f" AND time >= {max(start, _EARLIEST)}s AND time < {min(end, _LATEST)}s",
            pair=series.instrument.symbol,
        )
        return int(rows[0][1]) if rows else 0

    def tally(self, series: Series, source: str, span: Span) -> dict[int, int]:
        """How many bars with a source, or without one if it is empty, opened in each bucket of `stored_counts`."""
        length = bucket_seconds(series.timeframe)
        rows = self._http.rows(
            f'SELECT count("close") FROM "{measurement(series, series.timeframe)}" WHERE "{TAG}" = $pair'
            f' AND "{SOURCE}" = $source AND time >= {max(span.start, _EARLIEST)}s AND time < {min(span.end, _LATEST)}s'
            f" GROUP BY time({length}s) fill(none)",
            pair=series.instrument.symbol,
            source=source,
        )
        return {int(start) // length: int(count) for start, count in rows if count}

    def mark(self) -> int | None:
        """The number that `set_mark` has written last; None if there is none."""
        rows = self._http.rows(f'SELECT "seq" FROM "{MARKS}" WHERE time = 0s')
        return int(rows[0][1]) if rows else None

    def set_mark(self, seq: int) -> None:
        """Write a number that grows with each write of bars that are made of others: an older copy has a lower one."""
        self._http.write([f"{MARKS} seq={seq}i 0"])

    def measurements(self) -> set[str]:
        """The names of the measurements of this database."""
        return {str(row[0]) for row in self._http.rows("SHOW MEASUREMENTS")}

    def first(self, series: Series) -> int | None:
        """A time at or before the first bar; None if there are no bars."""
        written = self._first_written(series)
        if series not in self._firsts:
            found = self._edge(series, series.timeframe, "first", _EARLIEST, _LATEST)
            if found is None:
                return written
            self._firsts[series] = found
        known = self._firsts[series]
        return known if written is None else min(known, written)

    def last(self, series: Series) -> int | None:
        """The open time of the latest bar; None if there is none."""
        return self._edge(series, series.timeframe, "last", _EARLIEST, _LATEST)

    def any_after(self, series: Series, moment: int) -> bool:
        """Returns True if a bar opened after a time."""
        return self._edge(series, series.timeframe, "last", moment + 1, _LATEST) is not None

    def _bounds(self, series: Series, timeframe: Timeframe, start: int, end: int) -> tuple[int, int] | None:
        """The first and last time of the bars in a long span, as [start, end); None if there are no bars."""
        first = self._edge(series, timeframe, "first", start, end)
        last = self._edge(series, timeframe, "last", start, end)
        return None if first is None or last is None else (first, last + 1)

    def _edge(self, series: Series, timeframe: Timeframe, which: str, start: int, end: int) -> int | None:
        rows = self._http.rows(
            f'SELECT {which}("close") FROM "{measurement(series, timeframe)}" WHERE "{TAG}" = $pair'
            f" AND time >= {start}s AND time < {end}s",
            pair=series.instrument.symbol,
        )
        return int(rows[0][0]) if rows else None

    def _read(self, series: Series, timeframe: Timeframe, start: int, end: int, source: str | None = None) -> Bars:
        of_source = "" if source is None else f' AND "{SOURCE}" = $source'
        bound = {} if source is None else {"source": source}
        table = self._http.table(
            f'SELECT {", ".join(FIELDS)} FROM "{measurement(series, timeframe)}" WHERE "{TAG}" = $pair'
            f" AND time >= {start}s AND time < {end}s{of_source}",
            pair=series.instrument.symbol,
            **bound,
        )
        return _parsed(series, timeframe, table)


def _lines(bars: Bars, name: str, more_tags: str = "") -> Iterator[str]:
    head = f"{name},{TAG}={escaped(bars.instrument.symbol)}{more_tags} "
    columns = (column.tolist() for column in bars.columns())
    for at, o, h, low, c, v in zip(*columns, strict=True):
        yield f"{head}open={o!r},high={h!r},low={low!r},close={c!r},volume={v!r} {at}"


def _parsed(series: Series, timeframe: Timeframe, table: bytes) -> Bars:
    """A CSV table of the HTTP API as bars. Skips incomplete rows, which other programs may have written."""
    if not table.strip():
        return barlib.empty(series.instrument, timeframe)
    import pyarrow as pa
    from pyarrow import csv

    wanted = {"time": pa.int64(), **dict.fromkeys(FIELDS, pa.float64())}
    try:
        read = csv.read_csv(
            io.BytesIO(table),
            read_options=csv.ReadOptions(use_threads=False),
            convert_options=csv.ConvertOptions(column_types=wanted, include_columns=list(wanted)),
        )
        columns = [read[name].to_numpy(zero_copy_only=False) for name in wanted]
        time = columns[0].astype(np.int64)
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise StoreError(f"InfluxDB returned a table that does not hold bars: {error}") from error
    bars = barlib.make(series.instrument, timeframe, time, *columns[1:])
    sound = np.isfinite(np.stack(bars.columns()[1:])).all(axis=0)
    return bars if sound.all() else bars.take(sound)
