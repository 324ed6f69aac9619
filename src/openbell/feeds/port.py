"""The ports of feeds: `Feed` is implemented by every feed, `Feeds` also by several feeds together (`feeds.registry`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from openbell.market.bars import Bars
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.timeframes import Timeframe


@dataclass(frozen=True, slots=True)
class Batch:
    """Minute bars that a stream delivers at once, and the time up to which the stream is complete."""

    bars: tuple[Bars, ...]
    complete_until: int
    """All minutes that opened before this time have been delivered for all instruments of the stream. Corrections of
    earlier bars may still follow."""


class Feeds(Protocol):
    """A source of bars: history at the timeframes that it has. One feed, or one for each asset class.

    Times are epoch seconds in UTC. A feed returns closed bars only, each at the start of its bucket (`bars.bucket_bounds`).
    """

    name: str
    """The value of OPENBELL_FEED: `sim`, `replay`, `none`, …"""
    origin: Origin
    """The kind of its data, in the truth header of results."""
    source: Source | None
    """The source of this feed's bars in the store; None if its bars are not stored."""

    def route(self, instrument: Instrument) -> Feed:
        """Returns the feed that delivers an instrument: itself, unless it consists of several feeds."""

    def supports(self, instrument: Instrument) -> bool:
        """Returns True if the feed can deliver this instrument."""

    def listed(self) -> Iterable[Instrument]:
        """Returns the instruments that the feed is known to have, without asking the vendor; none if it has no list yet."""

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        """Returns the timeframes whose bars `history` has, for an instrument that the feed supports.

        Only timeframes whose buckets are exactly those of `bars.bucket_bounds` are among them. Raises `FeedUnavailable` if
        the vendor must be asked and does not respond.
        """

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:
        """Returns the number of bars of a timeframe in [start, end) that are closed at `end`, without computing the bars.

        `start` is the start of a bar. Returns None, whatever the span, if the feed cannot count without the bars.
        """

    def watermark(self, now: float) -> float:
        """Returns the time up to which the minutes of `history` are complete at `now`, the clock's time.

        Without a running stream, it is behind the clock by the vendor's delay; with one, it is what the stream completed.
        """

    async def history(self, series: Series, start: int, end: int) -> Bars:
        """Returns the closed bars of one of `natives` that opened in [start, end), sorted, without duplicates.

        Raises `FeedUnavailable` if the vendor does not respond and `UnknownSymbol` if it does not have the instrument.
        """

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:
        """Returns the values of one of `extras.KINDS` in [start, end) up to the clock's time, sorted.

        Raises `NoSuchSeries` if the feed does not have this series for this instrument, and the errors of `history`.
        """

    async def close(self) -> None:
        """Close all connections."""


class Feed(Feeds, Protocol):
    """A single feed, which also has a stream of minutes."""

    def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """Yields minute bars from `since` on as they close, first those that are already closed, until the caller closes it.

        Raises `FeedUnavailable` if the connection breaks; the caller then fetches the gap and opens a new stream.
        """
