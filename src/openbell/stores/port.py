"""The ports of bar stores. Every store must pass the suite in `tests/stores/contract.py`.

| type | is |
|---|---|
| `BarStore` | the bars of many series, as the desk reads and writes them: a buffer in front of an archive |
| `Archive` | long-term storage, by period: each package in `stores` that defines STORE has one |
| `MadeBars` | bars that an archive makes of others and stores |
| `StoreLeases` | the right to be the only writer |
| `Sources` | the source of each period, and which bars of two sources cannot stand together |
| `Versions` | the states of series, and what has changed since |
| `BarAudit` | the comparison of what was written with what is stored, for doctor, collector and imports |
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Connection
from typing import NamedTuple, ParamSpec, Protocol, TypedDict, TypeVar, Unpack

from openbell.market.bars import Bars
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe

P = ParamSpec("P")
T = TypeVar("T")

Tally = Mapping[int, int]
"""How many bars opened in each bucket, by the number of the bucket since 1970."""


@dataclass(frozen=True, slots=True)
class Span:
    """The times [start, end) in epoch seconds."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Version:
    """The state of a series at one time; `Versions` compares the current state with it."""

    epoch: int
    seq: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to be the only writer, with the token that every write checks."""

    name: str
    token: int
    holder: str


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A file that was set aside or is missing."""

    at: float
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Premature:
    """A span that was written as covered before it had ended."""

    series: Series
    span: Span
    written: float
    """The machine's time of that write."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Bars of one period that were written and are no longer stored."""

    series: Series
    period: str
    source: Source | None
    spans: tuple[Span, ...]
    """Where they were, to the day or to the bucket of `stores.stored_counts`."""
    written: int
    """How many bars of the period were stored; 0 if they were never counted, as after the loss of the buffer."""
    found: int
    """How many of them are stored now."""

    @property
    def can_be_fetched(self) -> bool:
        """False for imported bars: no feed has them."""
        return self.source is None or self.source.origin is not Origin.IMPORTED

    def described(self) -> str:
        """Returns the loss in words, and what becomes of it."""
        again = "they will be fetched again if the feed has them"
        if not self.can_be_fetched:
            again = "THEY WERE IMPORTED AND NO FEED HAS THEM: import the file again"
        if not self.found:
            count = f" {self.written}" if self.written else ""
            return f"is gone with all{count} bars of {self.series} {self.period.partition('.')[0]}; {again}"
        days = [f"{_date(span.start)} to {_date(span.end - 1)}" for span in self.spans[:3]]
        more = " and other days" if len(self.spans) > len(days) else ""
        return (
            f"has lost {self.written - self.found} of {self.written} bars of {self.series} "
            f"{self.period.partition('.')[0]} ({', '.join(days)}{more}); {again}"
        )


def _date(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d")


class WriteOptions(TypedDict, total=False):
    """The optional arguments of `BarStore.write`."""

    covers: Span | Mapping[Series, Sequence[Span]] | None
    """The series of the parts have no other bars in this span, or each of them in its own spans."""
    lease: Lease | None
    """Nothing is written unless this lease is current."""
    replace: bool
    """First drop the bars of other sources from the first to the last bar of each part, and in its periods also those that
    are adjusted otherwise."""


class Counted(NamedTuple):
    """A row of the table `stored`."""

    last: int
    """When the latest counted bar opened; 0 if none was counted (`restart`)."""
    tally: Tally
    stamp: str
    """Size and time of the file in which the bars were counted; empty in a database."""


class StoreLeases(Protocol):
    """The leases of one store. Every call may block."""

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """Take a lease for `ttl` seconds. Raises `LeaseHeld`."""

    def renew(self, lease: Lease, ttl: float) -> None:
        """Let a lease expire `ttl` seconds from now. Raises `LeaseLost`."""

    def release(self, lease: Lease) -> None:
        """Free a lease if it is still current."""

    def holder(self, name: str) -> str | None:
        """The current holder of a lease; None if there is none."""


class Sources(Protocol):
    """The sources of the bars of one store. Every call may block."""

    def conflicts(self, bars: Bars, source: Source) -> list[str]:
        """The periods in which bars of another source stand in the way of these, each with that source. Writes nothing."""

    def of(self, series: Series, span: Span) -> set[Source]:
        """The recorded sources of the stored bars of a series in a span; cheap to call."""


class Versions(Protocol):
    """The states of series, and what has changed since. Every call may block."""

    is_quick: bool
    """True if `changed`, and later looks at the store's gaps, take less than a millisecond: they run in the event loop,
    because a turn of a thread takes as long."""

    def of(self, series: Series) -> Version:
        """The current state of a series; to be taken before a read."""

    def changed_since(self, series: Series, version: Version) -> int | None:
        """The earliest open time whose bar may have changed since `version`; None if no bar has."""

    def of_store(self) -> Hashable:
        """Returns a value that differs after every write to the store, by this or another process; cheap to call."""

    def changed(self, versions: Mapping[Series, Version]) -> set[Series]:
        """The series whose bars may have changed since their versions, found for many at once; cheap to call.

        Every series for which `changed_since` returns a time is among them; others may be.
        """

    def new_bars(self, versions: Mapping[Series, Version], span: Span, *, covered: bool = True) -> dict[Series, Bars]:
        """The bars of many series of minutes in a span, read at once.

        Leaves out the series that must be read one by one: those with changes other than new bars since their version, and,
        unless `covered` is False, those whose span is not covered or has imported minutes in its months. At its version a
        series must not have had bars in the span.
        """


class BarAudit(Protocol):
    """What was written and is no longer stored, or should not have been written. Every call may block."""

    def problems(self) -> list[FileProblem]:
        """Files that were set aside or are missing, oldest first."""

    def premature(self) -> list[Premature]:
        """Coverage that ends after the machine's time at which it was written, or that was written in the future."""

    def mend(self) -> list[Premature]:
        """Remove premature coverage, so that it is fetched again, and its bars that had not closed. Returns it."""

    def to_check(self) -> list[Series]:
        """The series of which some bars must be in long-term storage, sorted."""

    def losses(self, series: Series) -> list[Loss]:
        """The bars of a series that were written and are no longer stored. Changes nothing."""

    def mend_losses(self, series: Series) -> list[Loss]:
        """Make the lost bars of a series gaps, so that they are fetched again, and remove what was made of them.

        Returns them. Bars whose number was never recorded are counted.
        """

    def lacks_made(self) -> bool:
        """Returns True if stored bars that are made of others were lost. Changes nothing."""

    def mend_made(self) -> bool:
        """Have stored bars that are made of others made again if some of them were lost. Returns True if that was so."""

    def lost_spans(self, series: Series, span: Span) -> list[Span]:
        """The parts of a span whose bars were lost and not stored again. Some bars may be left in them; cheap to call."""

    def lost_for_good(self) -> list[Loss]:
        """Lost bars that no feed has and that were not imported again."""


class Archive(Protocol):
    """Long-term storage of bars, by period (`stores.periods`). `db` is a transaction of the buffer."""

    def read(self, series: Series, start: int, end: int, newest: int | None) -> list[Bars]:
        """The bars that opened in [start, end), oldest first; at least the latest `newest` of them if that is given."""

    def read_period(self, series: Series, period: str, start: int, end: int) -> Bars:
        """The bars of one period that opened in [start, end)."""

    def drop(self, db: Connection, number: int, series: Series, spans: Sequence[Span]) -> None:
        """Remove the bars of some spans; the transaction has removed the buffered ones, and ends a change of the series.

        Also without spans, an archive that names sources itself records those of the series that are not recorded.
        """

    def named_sources(self, series: Series, of: Span | str) -> dict[str, Source]:
        """The sources that the archive itself names, by period, of one period or of all that overlap a span.

        If the buffer is new, it has recorded none. Empty for an archive that names none.
        """

    def periods(self, series: Series) -> set[str]:
        """The periods that it holds, or should hold, bars of."""

    def tallies(self, series: Series, recorded: Mapping[str, Counted | None]) -> dict[str, Counted]:
        """What it holds of some periods; a period that is certainly unchanged may be left out."""

    def place_of(self, series: Series, period: str) -> Path:
        """Where the bars of a period are or were, for messages."""

    def undamaged(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that reads it; if something in it is damaged, set that aside and call the function again."""


class MadeBars(Protocol):
    """Bars that an archive makes of others and stores, such as hours that are made of minutes."""

    def are_lost(self) -> bool:
        """Returns True if some of them were lost. Changes nothing."""

    def mend(self) -> bool:
        """Have all of them made again if some were lost. Returns True if that was so."""

    def drop(self, db: Connection, series: Series, span: Span) -> None:
        """Remove those that were made of the bars of a span, because these are lost or about to be removed."""


class BarStore(Protocol):
    """Bars of many series. Every call may block; asynchronous code calls it in a thread."""

    name: str
    """The name that results show as their source."""

    @property
    def leases(self) -> StoreLeases:
        """The leases of its writers."""

    @property
    def sources(self) -> Sources:
        """The sources of its bars."""

    @property
    def versions(self) -> Versions:
        """The states of its series, and what has changed since."""

    @property
    def audit(self) -> BarAudit:
        """Its losses, and how to mend them."""

    def write(self, parts: Sequence[Bars], source: Source, **options: Unpack[WriteOptions]) -> None:
        """Store bars, durably when it returns. Later bars replace earlier ones of the same time.

        Raises `LeaseLost` if a lease is given and no longer current, `SourceConflict` if bars of another source stand in the
        way (the same bar, or prices of the same period that are adjusted otherwise), `BadBars` if any part is out of order
        or holds an impossible bar; then no part is written.

        A write that is cut off may have stored some of its bars; in files, those of whole periods. Readers get them from
        then on: a later write of other bars neither removes them nor adds more of them.
        """

    def read(self, series: Series, start: int, end: int) -> Bars:
        """The bars that opened in [start, end)."""

    def tail(self, series: Series, count: int, end: int) -> Bars:
        """The latest `count` bars that opened before `end`."""

    def resampled(self, series: Series, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """The latest `count` bars of a timeframe that had closed at `end`, after leaving out the latest `skip` of them.

        They are made of the bars of `series`, or are those bars if it has the same timeframe.
        """

    def count(self, series: Series, timeframe: Timeframe, end: int) -> int:
        """How many bars of a timeframe, made of the bars of `series`, had closed at `end`."""

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """The parts of `span` that no write has covered; cheap to call but for the first time with a series."""

    def stored(self) -> list[Series]:
        """The series that have bars, sorted."""

    def set_aside(self, instrument: Instrument, source: Source, reason: str) -> bool:
        """Read the bars of a source of an instrument no longer, at any timeframe, and make them gaps.

        Files are renamed and reported as problems. Returns False if the bars cannot be changed.
        """

    def newest(self, timeframe: Timeframe, end: int) -> dict[Instrument, Bars]:
        """The latest bar that had closed at `end` of every instrument with native bars of a timeframe; one query for all."""

    def timeframes(self, instrument: Instrument) -> list[Timeframe]:
        """The timeframes other than minutes at which an instrument has bars of its own, shortest first; cheap to call."""

    def size(self) -> int:
        """Bytes on disk."""

    def where(self) -> str:
        """A description of where the bars are. Raises `StoreError` if the store cannot be reached."""

    def compact(self, before: int) -> int:
        """Move buffered bars that opened before `before` to long-term storage. Returns how many were moved."""

    def close(self) -> None:
        """Close all files and connections."""
