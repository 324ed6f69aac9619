"""Bars in InfluxDB: the measurement `candles` for minutes, `candles_h1` and so on for resampled bars.

Every query is bounded in time. The first minute of an instrument is looked up once and cached.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from openbell.stores.influx_http import FIELDS, InfluxHttp, escaped
from openbell.stores.port import Span
from openbell.stores.resampling import CHUNK

TAG = "currency_pair"
_EARLIEST, _LATEST = 0, 9_000_000_000
"""Bounds in epoch seconds: within InfluxDB's range, and every bar lies between them."""
_STRETCH = 1.6
"""How much longer than its bars the first span that `tail` reads is."""


def measurement(timeframe: Timeframe) -> str:
    """The measurement of a timeframe's bars."""
    return "candles" if timeframe is Timeframe.M1 else f"candles_{timeframe.name.lower()}"


class InfluxBars:
    """Reads and writes bars of any timeframe. Checks neither sources nor leases."""

    def __init__(self, http: InfluxHttp, first_written: Callable[[Instrument], int | None]) -> None:
        """`first_written` returns the first minute that this home has written; None if there is none."""
        self._http = http
        self._first_written = first_written
        self._firsts: dict[Instrument, int] = {}

    def write(self, *parts: Bars) -> None:
        """Store bars; a bar of the same time is replaced."""
        self._http.write(line for part in parts for line in _lines(part))

    def delete(self, instrument: Instrument, span: Span, timeframes: Iterable[Timeframe] = Timeframe) -> None:
        """Delete the bars that opened in a span, of all timeframes by default."""
        names = tuple(measurement(timeframe) for timeframe in timeframes)
        self._http.delete(names, {TAG: instrument.symbol}, max(span.start, _EARLIEST), min(span.end, _LATEST))

    def read(self, instrument: Instrument, start: int, end: int, timeframe: Timeframe = Timeframe.M1) -> Bars:
        """The bars that opened in [start, end)."""
        start, end = max(start, _EARLIEST), min(end, _LATEST)
        step = CHUNK * timeframe.seconds
        if end - start > step:
            bounds = self._bounds(instrument, timeframe, start, end)
            if bounds is None:
                return barlib.empty(instrument, timeframe)
            start, end = bounds
        parts = [self._read(instrument, timeframe, at, min(at + step, end)) for at in range(start, end, step)]
        return barlib.merge(barlib.empty(instrument, timeframe), *parts)

    def tail(self, instrument: Instrument, count: int, end: int) -> Bars:
        """At least the latest `count` minutes that opened before `end`; fewer if there are fewer."""
        end, found = min(end, _LATEST), barlib.empty(instrument)
        first = self.first(instrument) if count > 0 else None
        if first is None or first >= end:
            return found
        last = self._edge(instrument, Timeframe.M1, "last", first, end)
        at, reach = first if last is None else last + 1, int(min(count, CHUNK) * MINUTE * _STRETCH) + MINUTE
        while at > first and len(found) < count:
            start = max(first, at - reach)
            found = barlib.merge(self.read(instrument, start, at), found)
            at, reach = start, reach * 3
        return found

    def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int:
        """How many bars opened in [start, end)."""
        rows = self._http.rows(
            f'SELECT count("close") FROM "{measurement(timeframe)}" WHERE "{TAG}" = $pair'
            f" AND time >= {max(start, _EARLIEST)}s AND time < {min(end, _LATEST)}s",
            pair=instrument.symbol,
        )
        return int(rows[0][1]) if rows else 0

    def first(self, instrument: Instrument) -> int | None:
        """A time at or before the first minute; None if there are no minutes."""
        written = self._first_written(instrument)
        if instrument not in self._firsts:
            found = self._edge(instrument, Timeframe.M1, "first", _EARLIEST, _LATEST)
            if found is None:
                return written
            self._firsts[instrument] = found
        known = self._firsts[instrument]
        return known if written is None else min(known, written)

    def last(self, instrument: Instrument) -> int | None:
        """The open time of the latest minute; None if there is none."""
        return self._edge(instrument, Timeframe.M1, "last", _EARLIEST, _LATEST)

    def any_after(self, instrument: Instrument, moment: int) -> bool:
        """Returns True if a minute opened after a time."""
        return self._edge(instrument, Timeframe.M1, "last", moment + 1, _LATEST) is not None

    def _bounds(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> tuple[int, int] | None:
        """The first and last time of the bars in a long span, as [start, end); None if there are no bars."""
        first = self._edge(instrument, timeframe, "first", start, end)
        last = self._edge(instrument, timeframe, "last", start, end)
        return None if first is None or last is None else (first, last + 1)

    def _edge(self, instrument: Instrument, timeframe: Timeframe, which: str, start: int, end: int) -> int | None:
        rows = self._http.rows(
            f'SELECT {which}("close") FROM "{measurement(timeframe)}" WHERE "{TAG}" = $pair'
            f" AND time >= {start}s AND time < {end}s",
            pair=instrument.symbol,
        )
        return int(rows[0][0]) if rows else None

    def _read(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> Bars:
        table = self._http.table(
            f'SELECT {", ".join(FIELDS)} FROM "{measurement(timeframe)}" WHERE "{TAG}" = $pair'
            f" AND time >= {start}s AND time < {end}s",
            pair=instrument.symbol,
        )
        return _parsed(instrument, timeframe, table)


def _lines(bars: Bars) -> Iterator[str]:
    head = f"{measurement(bars.timeframe)},{TAG}={escaped(bars.instrument.symbol)} "
    columns = (column.tolist() for column in bars.columns())
    for at, o, h, low, c, v in zip(*columns, strict=True):
        yield f"{head}open={o!r},high={h!r},low={low!r},close={c!r},volume={v!r} {at}"


def _parsed(instrument: Instrument, timeframe: Timeframe, table: bytes) -> Bars:
    """A CSV table of the HTTP API as bars. Skips incomplete rows, which other programs may have written."""
    if not table.strip():
        return barlib.empty(instrument, timeframe)
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
    bars = barlib.make(instrument, timeframe, time, *columns[1:])
    sound = np.isfinite(np.stack(bars.columns()[1:])).all(axis=0)
    return bars if sound.all() else bars.take(sound)
