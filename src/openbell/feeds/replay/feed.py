"""Stored bars, played again at the clock's pace."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from openbell.feeds.port import Batch
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock, bounded
from openbell.market.errors import NoSuchSeries
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore
from openbell.stores.threads import Threads


class ReplayFeed:
    """Delivers what is in the store as its time comes; writes nothing, because it is all there."""

    name = "replay"
    origin = Origin.REPLAY
    source: Source | None = None

    def __init__(self, store: BarStore, clock: Clock, threads: Threads | None = None) -> None:
        self._store = store
        self._threads = threads or Threads()
        self._clock = bounded(clock)

    def knows(self, instrument: Instrument) -> bool:
        """Whatever is stored."""
        return instrument in self._store.instruments()

    def earliest(self, now: float) -> int:  # noqa: ARG002 - the port's signature
        """As far back as the store goes."""
        return 0

    def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
        """What is stored is counted there."""
        return None

    def watermark(self, now: float) -> float:
        """What is stored is complete."""
        return now

    async def history(self, instrument: Instrument, start: int, end: int) -> Bars:
        """The stored bars that have closed by the clock."""
        closed = int(self._clock.epoch() // MINUTE * MINUTE)
        return await self._threads.run(self._store.read, instrument, start, min(end, closed))

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:  # noqa: ARG002
        """None: only bars are stored."""
        hint = "it plays stored bars only; set OPENBELL_FEED to a feed that has it, such as sim"
        raise NoSuchSeries(self.name, kind, instrument.symbol, hint)

    async def close(self) -> None:
        """There is nothing to let go of."""

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """The stored bars, minute by minute as the clock passes them."""
        at = since
        while True:
            await self._clock.sleep_until(at + MINUTE)
            until = int(self._clock.epoch() // MINUTE * MINUTE)
            parts = [await self.history(instrument, at, until) for instrument in instruments]
            yield Batch(tuple(part for part in parts if len(part)), until)
            at = until
