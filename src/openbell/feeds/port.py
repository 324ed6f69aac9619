"""The port that every feed stands behind."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from openbell.market.bars import Bars
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe


@dataclass(frozen=True, slots=True)
class Batch:
    """What a stream delivers at once: minute bars, and the time before which nothing more is to come."""

    bars: tuple[Bars, ...]
    complete_until: int
    """Every minute that opened before this has been delivered, for every instrument of the stream. A correction of an
    earlier bar may still follow."""


class Feed(Protocol):
    """A source of 1-minute bars. Times are epoch seconds in UTC; only closed bars ever leave a feed."""

    name: str
    """As in OPENBELL_FEED: `sim`, `replay`, `none`, …"""
    origin: Origin
    """What results that rest on this feed call their data."""
    source: Source | None
    """What stored bars of this feed are marked with; None if it delivers nothing that is to be stored."""

    def knows(self, instrument: Instrument) -> bool:
        """Whether the feed can deliver this instrument."""

    def earliest(self, now: float) -> int:
        """The first time for which `history` has bars."""

    def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:
        """How many bars `history` of [start, end) makes that have closed by its end, told without computing them.

        `start` begins a bar. None if only the bars themselves tell.
        """

    def watermark(self, now: float) -> float:
        """The time before which nothing more is to come, given the clock's time: `history` up to it will not grow.

        A vendor without a stream here is some time behind the clock; with one, it is what the stream has completed.
        """

    async def history(self, instrument: Instrument, start: int, end: int) -> Bars:
        """Closed minute bars that opened in [start, end), sorted, none double.

        Raises `FeedUnavailable` when the vendor does not answer and `UnknownSymbol` for what it does not know.
        """

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:
        """One of `extras.KINDS`: its values with a time in [start, end), sorted, none from after the clock.

        Raises `NoSuchSeries` if the feed has no such series for this instrument; the rest as `history` does.
        """

    def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """Minute bars from `since` on, as they close, until closed by the caller; what has closed already comes first.

        Raises `FeedUnavailable` when the connection breaks: the caller fetches the gap and opens a new stream.
        """

    async def close(self) -> None:
        """Let go of connections."""
