"""The desk: everything that the servers call, put together from the settings.

Parts are made on first use and imported only then, so that a server that is asked for the market's hours never loads
numpy, and one that is asked for signals does.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

from openbell.desk.settings import Settings
from openbell.desk.watchlist import WatchlistFile
from openbell.market.clock import Clock, ReplayClock, StandingClock, SystemClock, parse_time
from openbell.market.errors import StoreError

if TYPE_CHECKING:
    from openbell.desk.alerts import AlertService
    from openbell.desk.bars import BarService
    from openbell.desk.charts import ChartService
    from openbell.desk.signals import SignalService
    from openbell.feeds.port import Feed
    from openbell.stores.parquet import ParquetStore

DATA = {"sim": "simulated", "none": "imported", "replay": "replay"}
"""What results call their data, by feed: known without loading the feed."""


class Desk:
    """One desk per process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = make_clock(settings)
        self.watchlist = WatchlistFile(settings.watchlist_file)

    @property
    def data(self) -> str:
        """`simulated`, `imported`, `replay` or `live`."""
        return DATA[self.settings.feed]

    @cached_property
    def store(self) -> ParquetStore:
        """The bars on disk."""
        from openbell.market.provenance import Origin
        from openbell.stores.parquet import ParquetStore

        folder, simulated = self.settings.bar_folder, self.settings.simulated
        if not simulated and folder.resolve().is_relative_to((self.settings.home / "simulated").resolve()):
            raise StoreError(f"{folder} leads to simulated bars: they are never served as real ones")
        origins = {Origin.SIMULATED} if simulated else set(Origin) - {Origin.SIMULATED}
        return ParquetStore(folder, frozenset(origins))

    @cached_property
    def feed(self) -> Feed:
        """Where bars come from."""
        if self.settings.feed == "sim":
            from openbell.feeds.sim import SimFeed

            return SimFeed(self.clock, self.settings.sim_seed)
        if self.settings.feed == "replay":
            from openbell.feeds.replay import ReplayFeed

            return ReplayFeed(self.store, self.clock)
        from openbell.feeds.none import NoFeed

        return NoFeed()

    @cached_property
    def bars(self) -> BarService:
        """Closed bars."""
        from openbell.desk.bars import BarService

        return BarService(self.store, self.feed, self.clock)

    @cached_property
    def signals(self) -> SignalService:
        """Signals on closed bars."""
        from openbell.desk.signals import SignalService

        return SignalService(self.bars, self.watchlist)

    @cached_property
    def charts(self) -> ChartService:
        """Charts of closed bars."""
        from openbell.desk.charts import ChartService

        return ChartService(self.bars, self.feed)

    @cached_property
    def alerts(self) -> AlertService:
        """Subscriptions to signals."""
        from openbell.desk.alerts import AlertService

        return AlertService(self.signals, self.clock)

    async def close(self) -> None:
        """End what was begun."""
        if "alerts" in self.__dict__:
            await self.alerts.close()
        if "charts" in self.__dict__:
            self.charts.close()
        if "store" in self.__dict__:
            # A cancelled task leaves its thread at work: the store must not close under it.
            await asyncio.get_running_loop().shutdown_default_executor()
            self.store.close()


def make_clock(settings: Settings) -> Clock:
    """Now, standing at a time, or running from it."""
    if not settings.as_of:
        return SystemClock()
    start = parse_time(settings.as_of)
    return ReplayClock(start, settings.replay_speed) if settings.replay_speed else StandingClock(start)
