"""A bar store as a plain dict, and a reader that caches bars and reads only changes."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Bars, empty_of, make, merge
from openbell.market.provenance import Source
from openbell.market.series import Series
from openbell.stores.port import BarStore, Version
from tests.stores.samples import EVER, bits

Row = tuple[float, ...]


class Model:
    """The expected content of a store: the last value of every minute, and its source."""

    def __init__(self) -> None:
        self.rows: dict[Series, dict[int, Row]] = {}
        self.sources: dict[Series, dict[int, Source]] = {}

    def put(self, part: Bars) -> None:
        """Store bars."""
        values = zip(*(column.tolist() for column in part.columns()[1:]), strict=True)
        self.rows.setdefault(part.series, {}).update(zip(part.time.tolist(), values, strict=True))

    def write(self, part: Bars, source: Source, *, replace: bool = False, whole: bool = True) -> bool:
        """Store bars like a store. Returns False if a bar has another source; with `whole` no month is stored then."""
        rows, sources = self.rows.setdefault(part.series, {}), self.sources.setdefault(part.series, {})
        for some in [part] if whole and not replace else _by_month(part):
            if replace:
                for time in [time for time in rows if some.time[0] <= time <= some.time[-1]]:
                    if sources[time] != source:
                        del rows[time], sources[time]
            if any(sources.get(time, source) != source for time in some.time.tolist()):
                return False
            sources.update(dict.fromkeys(some.time.tolist(), source))
            self.put(some)
        return True

    def bars(self, series: Series, start: int = 0, end: int = EVER) -> Bars:
        """The expected result of a read."""
        rows = sorted((time, row) for time, row in self.rows.get(series, {}).items() if start <= time < end)
        if not rows:
            return empty_of(series)
        columns = zip(*(row for _, row in rows), strict=True)
        return make(
            series.instrument, series.timeframe, [time for time, _ in rows], *(list(column) for column in columns)
        )


class Reader:
    """Caches the bars of one instrument and a version, as a ring in memory does."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self.kept: Bars | None = None
        self.version: Version

    def refresh(self, store: BarStore) -> Bars:
        """The current bars, read again only from the first change on."""
        version = store.versions.of(self.series)
        if self.kept is None:
            self.kept = store.read(self.series, 0, EVER)
        elif (changed := store.versions.changed_since(self.series, self.version)) is not None:
            fresh = store.read(self.series, changed, EVER)
            self.kept = merge(self.kept.between(-EVER, changed), fresh)
        self.version = version
        return self.kept


def assert_same(got: Bars, expected: Bars, where: object = "") -> None:
    """Every minute once and in order, every value to the last bit."""
    assert got.series == expected.series, where
    assert (np.diff(got.time) > 0).all(), where
    if bits(got) == bits(expected):
        return
    missing = sorted(set(expected.time.tolist()) - set(got.time.tolist()))
    extra = sorted(set(got.time.tolist()) - set(expected.time.tolist()))
    assert (missing[:3], len(missing), extra[:3], len(extra)) == ([], 0, [], 0), where
    assert bits(got) == bits(expected), where


def _by_month(part: Bars) -> list[Bars]:
    months = part.time.astype("datetime64[s]").astype("datetime64[M]").astype(str)
    return [part.take(months == month) for month in np.unique(months)]
