"""A store for a desk that may read a home but not change it: a private store over a view of the home's store.

Bars that the feed delivers go to a private folder of this process, which is removed when the store is closed. The home's
bars are used where the home's store is covered, the private ones elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import SourceConflict
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores import leases, resampling
from openbell.stores.folders import PrivateFolder
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.periods import FIRST
from openbell.stores.port import (
    BarAudit,
    BarStore,
    FileProblem,
    Lease,
    Loss,
    Premature,
    Sources,
    Span,
    StoreLeases,
    Version,
    Versions,
    WriteOptions,
)


@dataclass(frozen=True, slots=True)
class _BothVersions(Version):
    """The versions of a series in both stores."""

    home: Version
    own: Version


class _Leases:
    """A lease is taken in the private store, but not while the home's lease is held."""

    def __init__(self, home: StoreLeases, own: Callable[[], StoreLeases]) -> None:
        self._home = home
        self._own = own

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """See the port."""
        if other := self._home.holder(name):
            raise leases.held(name, other)
        return self._own().acquire(name, holder, ttl)

    def renew(self, lease: Lease, ttl: float) -> None:
        """See the port."""
        self._own().renew(lease, ttl)

    def release(self, lease: Lease) -> None:
        """See the port."""
        self._own().release(lease)

    def holder(self, name: str) -> str | None:
        """See the port."""
        return self._home.holder(name) or self._own().holder(name)


class _Sources:
    """The sources of both stores."""

    def __init__(self, home: Sources, own: Callable[[], Sources]) -> None:
        self._home = home
        self._own = own

    def conflicts(self, bars: Bars, source: Source) -> list[str]:
        """See the port."""
        return self._home.conflicts(bars, source) or self._own().conflicts(bars, source)

    def of(self, series: Series, span: Span) -> set[Source]:
        """See the port."""
        return self._home.of(series, span) | self._own().of(series, span)


class _Versions:
    """A series has changed if it has in one of both stores."""

    is_quick = False
    """The home's buffer is copied whenever it has changed: 10 MB take 10 ms."""

    def __init__(self, home: Versions, own: Callable[[], Versions]) -> None:
        self._home = home
        self._own = own

    def of(self, series: Series) -> Version:
        """See the port."""
        home, own = self._home.of(series), self._own().of(series)
        return _BothVersions(home.epoch + own.epoch, home.seq + own.seq, home, own)

    def changed_since(self, series: Series, version: Version) -> int | None:
        """See the port."""
        if not isinstance(version, _BothVersions):
            return FIRST
        changes = (
            self._home.changed_since(series, version.home),
            self._own().changed_since(series, version.own),
        )
        return min((change for change in changes if change is not None), default=None)

    def of_store(self) -> Hashable:
        """See the port."""
        return self._home.of_store(), self._own().of_store()

    def changed(self, versions: Mapping[Series, Version]) -> set[Series]:
        """See the port."""
        both = {each: version for each, version in versions.items() if isinstance(version, _BothVersions)}
        home = self._home.changed({each: version.home for each, version in both.items()})
        own = self._own().changed({each: version.own for each, version in both.items()})
        return (set(versions) - set(both)) | home | own

    def new_bars(self, versions: Mapping[Series, Version], span: Span, *, covered: bool = True) -> dict[Series, Bars]:
        """See the port. Left out if both stores have changed."""
        both = {each: version for each, version in versions.items() if isinstance(version, _BothVersions)}
        home = {each: m.home for each, m in both.items() if self._own().changed_since(each, m.own) is None}
        own = {each: m.own for each, m in both.items() if self._home.changed_since(each, m.home) is None}
        return {
            **self._home.new_bars(home, span, covered=covered),
            **self._own().new_bars(own, span, covered=covered),
        }


class _Audit:
    """Finds what the home lacks, and mends only the private store, which is new and can lose nothing."""

    def __init__(self, home: BarAudit, own: Callable[[], BarStore]) -> None:
        self._home = home
        self._own = own

    def problems(self) -> list[FileProblem]:
        """See the port."""
        return [*self._home.problems(), *self._own().audit.problems()]

    def premature(self) -> list[Premature]:
        """See the port."""
        return [*self._home.premature(), *self._own().audit.premature()]

    def mend(self) -> list[Premature]:
        """See the port."""
        return self._own().audit.mend()

    def to_check(self) -> list[Series]:
        """See the port."""
        return self._home.to_check()

    def losses(self, series: Series) -> list[Loss]:
        """See the port."""
        return self._home.losses(series)

    def mend_losses(self, series: Series) -> list[Loss]:  # noqa: ARG002
        """See the port."""
        return []

    def lacks_made(self) -> bool:
        """See the port."""
        return self._home.lacks_made()

    def mend_made(self) -> bool:
        """See the port."""
        return False

    def lost_spans(self, series: Series, span: Span) -> list[Span]:
        """See the port."""
        own = self._own()
        return [gap for lost in self._home.lost_spans(series, span) for gap in own.gaps(series, lost)]

    def lost_for_good(self) -> list[Loss]:
        """See the port."""
        return self._home.lost_for_good()


class OverlayStore:
    """Implements `stores.port.BarStore`. `home` is never written to."""

    def __init__(self, home: BarStore, origins: frozenset[Origin] | None = None, folder: Path | None = None) -> None:
        """`folder` holds the private bars; by default a temporary folder that `close` removes."""
        self.name = home.name
        self._home = home
        self._origins = origins
        self._folder = folder
        self._private: PrivateFolder | None = None
        self._made: ParquetStore | None = None
        self._making = threading.Lock()
        self.leases = _Leases(home.leases, lambda: self._own.leases)
        self.sources = _Sources(home.sources, lambda: self._own.sources)
        self.versions = _Versions(home.versions, lambda: self._own.versions)
        self.audit = _Audit(home.audit, lambda: self._own)

    @property
    def _own(self) -> ParquetStore:
        with self._making:  # threads may ask at once
            if self._made is None:
                if self._folder is None:
                    self._private = PrivateFolder()
                    self._folder = self._private.path
                self._made = ParquetStore(self._folder, self._origins)
            return self._made

    # Writing

    def write(self, parts: Sequence[Bars], source: Source, **options: Unpack[WriteOptions]) -> None:
        """See the port. Writes to the private store, with the home's sources checked too."""
        for part in parts:
            if len(part) and (held := self._home.sources.conflicts(part, source)):
                raise SourceConflict(
                    f"{part.series} {', '.join(held)} comes from another source than {source}",
                    symbol=part.series.name,
                )
        self._own.write(parts, source, **options)

    def compact(self, before: int) -> int:
        """See the port."""
        return self._own.compact(before)

    # Reading

    def read(self, series: Series, start: int, end: int) -> Bars:
        """See the port. Repeated if the home's store changed meanwhile: its bars and its coverage must fit together."""
        if start >= end:
            return barlib.empty_of(series)
        while True:
            version = self._home.versions.of(series)
            stored = self._home.read(series, start, end)
            private = self._own.read(series, start, end)
            gaps = self._home.gaps(series, Span(start, end)) if len(private) else []
            if self._home.versions.of(series) == version:
                return barlib.merge(stored, *(private.between(gap.start, gap.end) for gap in gaps))

    def tail(self, series: Series, count: int, end: int) -> Bars:
        """See the port."""
        stored, private = self._home.tail(series, count, end), self._own.tail(series, count, end)
        if not len(private) or count <= 0:
            return stored
        newest = barlib.merge(stored, private).tail(count)
        found = self.read(series, int(newest.time[0]), end)
        # Some of the latest private bars are now covered by the home's store and were left out.
        return found if len(found) >= count else self.read(series, FIRST, end).tail(count)

    def resampled(self, series: Series, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """See the port."""
        if only := self._only(series):
            return only.resampled(series, timeframe, count, end, skip)
        return resampling.latest(self.tail, series, timeframe, count, end, skip)

    def count(self, series: Series, timeframe: Timeframe, end: int) -> int:
        """See the port."""
        if only := self._only(series):
            return only.count(series, timeframe, end)
        return barlib.count(series.instrument, timeframe, self.read(series, FIRST, end).time, end)

    def _only(self, series: Series) -> BarStore | None:
        """The store that alone has bars of an instrument; None if both have some."""
        for one, other in ((self._home, self._own), (self._own, self._home)):
            if not len(other.tail(series, 1, -FIRST)):
                return one
        return None

    # State

    def set_aside(self, instrument: Instrument, source: Source, reason: str) -> bool:
        """See the port. Bars of the home stay: then nothing is done."""
        all_series = [Series(instrument, each) for each in Timeframe]
        if any(source in self._home.sources.of(each, Span(FIRST, -FIRST)) for each in all_series):
            return False
        return self._own.set_aside(instrument, source, reason)

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port."""
        return [gap for open_span in self._home.gaps(series, span) for gap in self._own.gaps(series, open_span)]

    def stored(self) -> list[Series]:
        """See the port."""
        return sorted({*self._home.stored(), *self._own.stored()})

    def newest(self, timeframe: Timeframe, end: int) -> dict[Instrument, Bars]:
        """See the port."""
        home, own = self._home.newest(timeframe, end), self._own.newest(timeframe, end)
        both = {each for each in own if each in home}
        merged = {each: self.resampled(Series(each, timeframe), timeframe, 1, end) for each in both}
        return home | own | {each: bars for each, bars in merged.items() if len(bars)}

    def timeframes(self, instrument: Instrument) -> list[Timeframe]:
        """See the port."""
        found = {*self._home.timeframes(instrument), *self._own.timeframes(instrument)}
        return sorted(found, key=lambda each: each.seconds)

    def size(self) -> int:
        """See the port."""
        return self._home.size() + self._own.size()

    def where(self) -> str:
        """See the port."""
        return f"{self._home.where()} (read only)"

    def close(self) -> None:
        """See the port. Removes the private bars."""
        self._home.close()
        if "_own" in self.__dict__:
            self._own.close()
        if self._private:
            self._private.remove()
