"""No feed: the desk answers from what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from openbell.feeds.port import Batch
from openbell.market.bars import Bars, empty
from openbell.market.errors import NoSuchSeries
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe


class NoFeed:
    """Knows nothing and delivers nothing."""

    name = "none"
    origin = Origin.IMPORTED
    source: Source | None = None

    def knows(self, instrument: Instrument) -> bool:  # noqa: ARG002 - the port's signature
        """Nothing."""
        return False

    def earliest(self, now: float) -> int:
        """There is no history to ask for."""
        return int(now)

    def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
        """There is no history to count."""
        return None

    def watermark(self, now: float) -> float:
        """What is stored is complete."""
        return now

    async def history(self, instrument: Instrument, start: int, end: int) -> Bars:  # noqa: ARG002
        """No bars."""
        return empty(instrument)

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:  # noqa: ARG002
        """None."""
        raise NoSuchSeries(self.name, kind, instrument.symbol, "set OPENBELL_FEED to a feed that has it, such as sim")

    async def close(self) -> None:
        """There is nothing to let go of."""

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:  # noqa: ARG002
        """Wait for ever."""
        await asyncio.Event().wait()
        yield Batch((), since)
