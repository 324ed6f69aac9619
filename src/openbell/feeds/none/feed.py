"""No feed: the desk uses stored bars only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

from openbell.feeds.port import Batch, Feed
from openbell.market.bars import Bars, empty_of
from openbell.market.errors import NoSuchSeries
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.timeframes import Timeframe


class NoFeed:
    """A feed without instruments and bars."""

    name = "none"
    origin = Origin.IMPORTED
    source: Source | None = None

    def route(self, instrument: Instrument) -> Feed:  # noqa: ARG002 - the port's signature
        """Returns itself."""
        return self

    def supports(self, instrument: Instrument) -> bool:  # noqa: ARG002 - the port's signature
        """Returns False."""
        return False

    def listed(self) -> Iterable[Instrument]:
        """Returns none: there is no feed."""
        return ()

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:  # noqa: ARG002
        """Returns nothing: there is no history."""
        return {}

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
        """Returns None."""
        return None

    def watermark(self, now: float) -> float:
        """Returns `now`: the stored bars are complete."""
        return now

    async def history(self, series: Series, start: int, end: int) -> Bars:  # noqa: ARG002
        """Returns no bars."""
        return empty_of(series)

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:  # noqa: ARG002
        """Raises `NoSuchSeries`."""
        raise NoSuchSeries(self.name, kind, instrument.symbol, "set OPENBELL_FEED to a feed that has it, such as sim")

    async def close(self) -> None:
        """Does nothing: there are no connections."""

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:  # noqa: ARG002
        """Waits until cancelled."""
        await asyncio.Event().wait()
        yield Batch((), since)
