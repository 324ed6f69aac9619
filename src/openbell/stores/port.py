"""The port that every bar store stands behind; `tests/stores/contract.py` is the suite that each must pass."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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
class Mark:
    """What a series looked like when it was read; `changed_since` compares against it."""

    epoch: int
    version: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to be the one that writes, with the token that every write is checked against."""

    name: str
    token: int
    holder: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that the store set aside or could not use."""

    at: float
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Premature:
    """A span that was noted as covered before it had ended."""

    instrument: Instrument
    span: Span
    written: float
    """The machine's time when that was noted."""


class BarStore(Protocol):
    """Minute bars of many instruments. Every call may block: call it from a thread when that matters."""

    name: str
    """What results name as their source."""

    def write(
        self,
        parts: Sequence[Bars],
        source: Source,
        *,
        covers: Span | None = None,
        lease: Lease | None = None,
        replace: bool = False,
    ) -> None:
        """Store minute bars; durable when it returns. Later bars replace earlier ones of the same minute.

        `covers` says that the given instruments have no other bars in that span. With a `lease`, nothing is written
        unless it is still held (`LeaseLost`). Bars of another source in the same month are a `SourceConflict`; a part
        that is out of order, or with a bar that cannot be true, is `BadBars`, and then nothing of any part is written.
        `replace` drops the months of other sources that stand in the way.
        """

    def conflicts(self, bars: Bars, source: Source) -> list[str]:
        """The months of these bars that another source holds, each with that source; claims nothing."""

    def read(self, instrument: Instrument, start: int, end: int) -> Bars:
        """The minute bars that opened in [start, end)."""

    def tail(self, instrument: Instrument, count: int, end: int) -> Bars:
        """The newest `count` minute bars that opened before `end`."""

    def larger(self, instrument: Instrument, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """The newest `count` bars of a timeframe that had closed at `end`, leaving out the `skip` newest of them."""

    def count(self, instrument: Instrument, timeframe: Timeframe, end: int) -> int:
        """How many bars of a timeframe had closed at `end`."""

    def mark(self, instrument: Instrument) -> Mark:
        """The series' present state, to be taken before a read."""

    def changed_since(self, instrument: Instrument, mark: Mark) -> int | None:
        """The earliest open time that may have changed since `mark`; None if nothing did."""

    def changes(self) -> Hashable:
        """Returns a value that differs after every write to the store, by this or another process; cheap to call."""

    def changed(self, marks: Mapping[Instrument, Mark]) -> set[Instrument]:
        """The instruments whose bars may have changed since their marks, found for many at once.

        Every instrument for which `changed_since` returns a time is among them; others may be.
        """

    def news(self, marks: Mapping[Instrument, Mark], span: Span, *, covered: bool = True) -> dict[Instrument, Bars]:
        """The minute bars in a span of many instruments at once, as far as that is quick.

        Only instruments of which nothing but new bars was written since their mark, and, unless `covered` is waived, whose
        span is covered; each of the others must be read. When its mark was taken an instrument must not have held bars in
        the span.
        """

    def gaps(self, instrument: Instrument, span: Span) -> list[Span]:
        """The parts of `span` that no write has covered."""

    def premature(self) -> list[Premature]:
        """Coverage that is later than the machine's time at which it was written, or than the present."""

    def mend(self) -> list[Premature]:
        """Uncover it, so that a feed is asked again, and drop the bars in it that had not closed; what was mended."""

    def instruments(self) -> list[Instrument]:
        """Everything that has bars, sorted."""

    def size(self) -> int:
        """Bytes on disk."""

    def where(self) -> str:
        """Where the bars are, in words; raises `StoreError` if that cannot be reached."""

    def problems(self) -> list[Problem]:
        """What was set aside, oldest first."""

    def compact(self, before: int) -> int:
        """Move buffered bars that opened before `before` to their long-term place; how many moved."""

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """Take a lease, or raise `LeaseHeld`."""

    def renew(self, lease: Lease, ttl: float) -> None:
        """Keep a lease, or raise `LeaseLost`."""

    def release(self, lease: Lease) -> None:
        """Give a lease back, if it is still ours."""

    def lease_holder(self, name: str) -> str | None:
        """Who holds a lease now, if anybody does."""

    def close(self) -> None:
        """Let go of files and connections."""
