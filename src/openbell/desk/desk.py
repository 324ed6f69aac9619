"""The desk: the services that the servers call, composed from the settings.

Each part is made and imported on first use, so that, for example, a server of market hours never loads numpy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from openbell.desk import events, watching
from openbell.desk.events import Hub
from openbell.desk.settings import Settings
from openbell.desk.watchlist import WatchlistFile
from openbell.feeds.declaration import FeedParts
from openbell.feeds.registry import default_watchlist, feed_of
from openbell.market.clock import Clock, FixedClock, ReplayClock, SystemClock, parse_time
from openbell.market.errors import StoreError
from openbell.market.provenance import TRUTH, BarFacts, Origin
from openbell.stores.threads import Threads

if TYPE_CHECKING:
    from openbell.desk.arche.upstreams import Arche
    from openbell.desk.backtester import Backtester
    from openbell.desk.backtests import BacktestService
    from openbell.desk.bars import BarService
    from openbell.desk.chart_image.service import ChartImages
    from openbell.desk.charts import ChartService
    from openbell.desk.crossing_alerts import CrossingAlertService
    from openbell.desk.health.monitor import DeskHealth
    from openbell.desk.indicators import IndicatorService
    from openbell.desk.quotes import QuoteService
    from openbell.desk.signals import SignalService
    from openbell.desk.strategies.desk import StrategyDesk
    from openbell.desk.symbol_advice import SymbolAdvice
    from openbell.desk.trading.desk import TradingDesk
    from openbell.desk.webhooks.service import WebhookService
    from openbell.feeds.port import Feeds
    from openbell.market.bars import Bars
    from openbell.market.instruments import Instrument
    from openbell.stores.influx_http import InfluxHttp
    from openbell.stores.port import BarStore


class Desk:
    """A desk. `async with Desk(settings) as desk` closes all of its parts at the end."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.threads = Threads()
        self.clock = make_clock(settings)
        keeps = self._was_known if settings.as_of else None
        self.watchlist = WatchlistFile(settings.watchlist_file, self._default_watchlist, keeps)
        self._known_then: set[Instrument] = set()
        self._stored: tuple[Hashable, tuple[Instrument, ...]] = (None, ())
        """The stored instruments, and the state of the store that they were read at."""

    @property
    def data(self) -> str:
        """The origin of bars: `simulated`, `imported`, `replay` or `live`."""
        return str(feed_of(self.settings.feed).origin)

    def _default_watchlist(self) -> tuple[Instrument, ...]:
        return default_watchlist(self.settings.feed, self._stored_instruments)

    def _was_known(self, instrument: Instrument) -> bool:
        """Returns True if the feed has an instrument or a bar of it had closed by the clock.

        The watchlist has no history: what was imported or added later must not show at an earlier time.
        """
        if instrument in self._known_then:
            return True
        if known := self.feed.supports(instrument) or self.bars.has_stored(instrument):
            self._known_then.add(instrument)
        return known

    def _stored_instruments(self) -> tuple[Instrument, ...]:
        """Returns the instruments that have stored bars; those known before while the store fails."""
        if not self.settings.influx_url and not self.settings.bar_folder.exists():
            return ()
        with suppress(StoreError):
            state = self.store.changes()
            if state != self._stored[0]:
                self._stored = (state, tuple(sorted({series.instrument for series in self.store.stored()})))
        return self._stored[1]

    @property
    def truth_of_pushes(self) -> dict[str, Any]:
        """`_meta` of notifications: which data they are based on."""
        scenario = self.settings.acts_in
        header = {"data": self.data, "feed": self.settings.feed, **({"scenario": scenario} if scenario else {})}
        return {TRUTH: header}

    async def facts(self, bars: Bars, *, from_minutes: bool = False) -> BarFacts:
        """What closed bars are made of, their sources, and the failure of the feed if they are only the stored ones."""
        from openbell.desk.bar_facts import bar_facts

        return await bar_facts(self.bars, bars, from_minutes=from_minutes)

    @cached_property
    def store(self) -> BarStore:
        """The store of bars: Parquet files or InfluxDB."""
        settings = self.settings
        origins = frozenset({Origin.SIMULATED} if settings.simulated else set(Origin) - {Origin.SIMULATED})
        if settings.influx_url:
            return _influx(settings, origins)
        from openbell.stores.parquet import ParquetStore

        folder = settings.bar_folder
        if not settings.simulated and folder.resolve().is_relative_to((settings.home / "simulated").resolve()):
            raise StoreError(f"{folder} leads to simulated bars: they are never served as real ones")
        if settings.read_only:
            from openbell.stores.overlay import OverlayStore
            from openbell.stores.views import ParquetView

            return OverlayStore(ParquetView(folder, origins), origins)
        return ParquetStore(folder, origins)

    @cached_property
    def feed(self) -> Feeds:
        """The feed of bars."""
        settings = self.settings
        parts = FeedParts(
            clock=self.clock,
            settings=settings.by_name,
            environ=os.environ,
            store=lambda: self.store,
            threads=self.threads,
            argument=settings.feed.partition(":")[2],
        )
        return feed_of(settings.feed).make(parts)

    @cached_property
    def symbol_advice(self) -> SymbolAdvice:
        """Suggestions for unknown symbols."""
        from openbell.desk.symbol_advice import SymbolAdvice

        return SymbolAdvice(self)

    @cached_property
    def bars(self) -> BarService:
        """Closed bars."""
        from openbell.desk.bars import BarService

        bars = BarService(self.store, self.feed, self.clock, self.threads)
        bars.history.on_stored = self.hub.poke
        return bars

    @cached_property
    def hub(self) -> Hub:
        """Publishes events: bars closed, records changed, the watchlist edited, by this or another process."""
        return Hub(
            {
                events.BARS: lambda: watching.BarSource(self.bars),
                events.RECORDS: lambda: watching.RecordSource(self.trading.records),
                events.WATCHLIST: lambda: watching.WatchlistSource(self.watchlist),
            }
        )

    @cached_property
    def signals(self) -> SignalService:
        """Signals on closed bars."""
        from openbell.desk.signals import SignalService

        return SignalService(self.bars, self.watchlist)

    @cached_property
    def quotes(self) -> QuoteService:
        """Current prices and volatility."""
        from openbell.desk.quotes import QuoteService

        return QuoteService(self.bars, stale_after=self.settings.stale_after)

    @cached_property
    def arche(self) -> Arche:
        """The quotes API: this desk's, or the one that the settings name."""
        from openbell.desk.arche.upstreams import Arche

        return Arche(self)

    @cached_property
    def charts(self) -> ChartService:
        """Pictures."""
        from openbell.desk.charts import ChartService

        return ChartService(self._worker)

    @cached_property
    def chart_images(self) -> ChartImages:
        """Chart images of configs."""
        from openbell.desk.chart_image.service import ChartImages

        return ChartImages(self, self._worker)

    @cached_property
    def indicators(self) -> IndicatorService:
        """Indicators on closed bars."""
        from openbell.desk.indicators import IndicatorService

        return IndicatorService(self.bars, self.feed, self._worker)

    @cached_property
    def backtests(self) -> BacktestService:
        """Backtests and sweeps of strategies."""
        from openbell.desk.backtests import BacktestService

        return BacktestService(self.bars, self._backtester, self.settings.dask)

    @cached_property
    def _backtester(self) -> Backtester:
        """Runs backtests, in this process or at a service."""
        from openbell.desk.backtester import make_backtester

        return make_backtester(self.settings)

    @cached_property
    def strategies(self) -> StrategyDesk:
        """Strategy specs, their implementations, signals and consensus."""
        from openbell.desk.strategies.desk import StrategyDesk

        return StrategyDesk(self, self.trading)

    @cached_property
    def _worker(self) -> ThreadPoolExecutor:
        """Computes indicators and draws charts. One thread: a large picture takes 100 MB, and two would not be faster."""
        return ThreadPoolExecutor(1, "charts")

    @cached_property
    def crossing_alerts(self) -> CrossingAlertService:
        """Subscriptions to signals."""
        from openbell.desk.crossing_alerts import CrossingAlertService

        return CrossingAlertService(self.signals, self.hub)

    @cached_property
    def trading(self) -> TradingDesk:
        """Orders, alerts, decisions and their records."""
        from openbell.desk.trading.desk import TradingDesk

        return TradingDesk(self, scenario=self.settings.acts_in)

    @cached_property
    def webhooks(self) -> WebhookService:
        """Webhooks of principals."""
        from openbell.desk.webhooks.service import WebhookService

        return WebhookService(self.trading.records, self.settings.trusted_origins)

    @cached_property
    def health(self) -> DeskHealth:
        """The state of the parts in this process, and the figures to watch."""
        from openbell.desk.health.monitor import DeskHealth

        return DeskHealth(self)

    @property
    def account(self) -> str:
        """The kind of account that results show: `paper` or `live`."""
        return "live" if self.settings.live else "paper"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        await self.symbol_advice.add_to(error)  # for commands; `protocol.service` does it for tools
        await self.close()

    async def close(self) -> None:
        """Close every part that was made."""
        if "health" in self.__dict__:
            self.health.checks.close()
        if "strategies" in self.__dict__:
            await self.strategies.close()
        if "trading" in self.__dict__:
            await self.trading.close()
        if "crossing_alerts" in self.__dict__:
            await self.crossing_alerts.close()
        if "arche" in self.__dict__:
            await self.arche.close()
        if "chart_images" in self.__dict__:
            await self.chart_images.close()
        if "hub" in self.__dict__:
            await self.hub.close()
        if "_backtester" in self.__dict__:
            await self._backtester.close()
        if "_worker" in self.__dict__:
            self._worker.shutdown(wait=False, cancel_futures=True)
        if "feed" in self.__dict__:
            await self.feed.close()
        if "store" in self.__dict__:
            # Threads of cancelled tasks may still use the store: wait for them before it is closed.
            await self.threads.close()
            self.store.close()


def make_influx(settings: Settings) -> InfluxHttp:
    """Returns a client of the database of bars."""
    from openbell.stores.influx_http import InfluxHttp, Pool

    if not settings.simulated and re.search(r"_simulated_\d+$", settings.influx_database):
        raise StoreError(f"{settings.influx_database} holds simulated bars: they are never served as real ones")
    # Each seed is a market of its own, with a database of its own.
    database = settings.influx_database + (f"_simulated_{settings.sim_seed}" if settings.simulated else "")
    pool = Pool(
        connections=settings.pool_influx_connections,
        idle=settings.pool_influx_idle,
        connect=settings.pool_influx_connect,
        answer=settings.pool_influx_timeout,
    )
    return InfluxHttp(url=settings.influx_url, database=database, token=settings.influx_token, pool=pool)


def _influx(settings: Settings, origins: frozenset[Origin]) -> BarStore:
    from openbell.stores.influx import InfluxStore

    http = make_influx(settings)
    # Without a live feed, other programs write to the database.
    shared = feed_of(settings.feed).origin in {Origin.IMPORTED, Origin.REPLAY}
    if settings.read_only:
        from openbell.stores.overlay import OverlayStore
        from openbell.stores.views import InfluxView

        return OverlayStore(InfluxView(http, settings.bar_folder, origins, shared=shared), origins)
    return InfluxStore(http, settings.bar_folder, origins, shared=shared)


def make_clock(settings: Settings) -> Clock:
    """Returns the system's clock, or one that is fixed at `as_of` or runs from there."""
    if not settings.as_of:
        return SystemClock()
    start = parse_time(settings.as_of)
    return ReplayClock(start, speed=settings.replay_speed) if settings.replay_speed else FixedClock(start)
