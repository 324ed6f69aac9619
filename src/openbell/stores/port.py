"""The port of bar stores. Every store must pass the suite in `tests/stores/contract.py`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict, Unpack

from openbell.market.bars import Bars
from openbell.market.instruments import Instrument
from openbell.market.provenance import Source
from openbell.market.timeframes import Timeframe


@dataclass(frozen=True, slots=True)
class Span:
    """The times [start, end) in epoch seconds."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Version:
    """The state of a series at one time; `changed_since` compares the current state with it."""

    epoch: int
    seq: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to be the only writer, with the token that every write checks."""

    name: str
    token: int
    holder: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that was set aside or is missing."""

    at: float
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Premature:
    """A span that was written as covered before it had ended."""

    instrument: Instrument
    span: Span
    written: float
    """The machine's time of that write."""


class WriteOptions(TypedDict, total=False):
    """The optional arguments of `BarStore.write`."""

    covers: Span | None
    """The instruments of the parts have no other bars in this span."""
    lease: Lease | None
    """Nothing is written unless this lease is current."""
    replace: bool
    """First drop the bars of other sources from the months of the parts."""


class BarStore(Protocol):
    """Minute bars of many instruments. Every call may block; asynchronous code calls it in a thread."""

    name: str
    """The name that results show as their source."""

    def write(self, parts: Sequence[Bars], source: Source, **options: Unpack[WriteOptions]) -> None:
        """Store minute bars, durably when it returns. Later bars replace earlier ones of the same minute.

        Raises `LeaseLost` if a lease is given and no longer current, `SourceConflict` if a month already holds bars of
        another source, `BadBars` if any part is out of order or holds an impossible bar; then no part is written.
        """

    def conflicts(self, bars: Bars, source: Source) -> list[str]:
        """The months of these bars that hold bars of another source, each with that source. Writes nothing."""

    def read(self, instrument: Instrument, start: int, end: int) -> Bars:
        """The minute bars that opened in [start, end)."""

    def tail(self, instrument: Instrument, count: int, end: int) -> Bars:
        """The latest `count` minute bars that opened before `end`."""

    def resampled(self, instrument: Instrument, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """The latest `count` bars of a timeframe that had closed at `end`, after leaving out the latest `skip` of them."""

    def count(self, instrument: Instrument, timeframe: Timeframe, end: int) -> int:
        """How many bars of a timeframe had closed at `end`."""

    def version(self, instrument: Instrument) -> Version:
        """The current state of a series; to be taken before a read."""

    def changed_since(self, instrument: Instrument, version: Version) -> int | None:
        """The earliest open time whose bar may have changed since `version`; None if no bar has."""

    def changes(self) -> Hashable:
        """Returns a value that differs after every write to the store, by this or another process; cheap to call."""

    def changed(self, versions: Mapping[Instrument, Version]) -> set[Instrument]:
        """The instruments whose bars may have changed since their versions, found for many at once.

        Every instrument for which `changed_since` returns a time is among them; others may be.
        """

    def new_bars(
        self, versions: Mapping[Instrument, Version], span: Span, *, covered: bool = True
    ) -> dict[Instrument, Bars]:
        """The minute bars of many instruments in a span, read at once.

        Leaves out the instruments that must be read one by one: those with changes other than new bars since their version,
        and those whose span is not covered unless `covered` is False. At its version an instrument must not have had bars
        in the span.
        """

    def gaps(self, instrument: Instrument, span: Span) -> list[Span]:
        """The parts of `span` that no write has covered."""

    def premature(self) -> list[Premature]:
        """Coverage that ends after the machine's time at which it was written, or that was written in the future."""

    def mend(self) -> list[Premature]:
        """Remove premature coverage, so that it is fetched again, and its bars that had not closed. Returns it."""

    def instruments(self) -> list[Instrument]:
        """The instruments that have bars, sorted."""

    def size(self) -> int:
        """Bytes on disk."""

    def where(self) -> str:
        """A description of where the bars are. Raises `StoreError` if the store cannot be reached."""

    def problems(self) -> list[Problem]:
        """Files that were set aside or are missing, oldest first."""

    def compact(self, before: int) -> int:
        """Move buffered bars that opened before `before` to long-term storage. Returns how many were moved."""

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """Take a lease for `ttl` seconds. Raises `LeaseHeld`."""

    def renew(self, lease: Lease, ttl: float) -> None:
        """Let a lease expire `ttl` seconds from now. Raises `LeaseLost`."""

    def release(self, lease: Lease) -> None:
        """Free a lease if it is still current."""

    def lease_holder(self, name: str) -> str | None:
        """The current holder of a lease; None if there is none."""

    def close(self) -> None:
        """Close all files and connections."""
