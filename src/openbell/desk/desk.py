"""The desk: the services that the servers call, composed from the settings.

Each part is made and imported on first use, so that, for example, a server of market hours never loads numpy.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

from openbell.desk import event_sources as watching
from openbell.desk.bars.watchlist import StoredInstruments, Watchlist, WatchlistFile, in_event_loop
from openbell.desk.events import hub as events
from openbell.desk.events.hub import Hub
from openbell.desk.events.supervision import Supervisor
from openbell.desk.operations.readiness import RecordConnections, bar_check, feed_check, record_check
from openbell.desk.settings import Settings
from openbell.desk.settings.principals import Quota
from openbell.feeds.registry import FeedParts, default_watchlist, feed_of
from openbell.market.clock import Clock, FixedClock, ReplayClock, SystemClock, parse_time
from openbell.market.provenance import TRUTH, BarFacts
from openbell.stores.threads import Threads

if TYPE_CHECKING:
    from openbell.desk.alerts.connection_subscriptions import ConnectionSubscriptions
    from openbell.desk.alerts.webhooks.service import WebhookService
    from openbell.desk.bars.service import BarService
    from openbell.desk.bars.symbol_advice import SymbolAdvice
    from openbell.desk.events.checks import Check
    from openbell.desk.operations.health.monitor import DeskHealth
    from openbell.desk.pictures.chart_image.service import ChartImages
    from openbell.desk.pictures.charts import ChartService
    from openbell.desk.pictures.indicators import IndicatorService
    from openbell.desk.quotes.arche.upstreams import Arche
    from openbell.desk.quotes.service import QuoteService
    from openbell.desk.quotes.signals import SignalService
    from openbell.desk.research.backtester import Backtester
    from openbell.desk.research.backtests import BacktestService
    from openbell.desk.research.strategies.desk import StrategyDesk
    from openbell.desk.trading_desk import TradingDesk
    from openbell.feeds.port import Feeds
    from openbell.market.bars import Bars
    from openbell.market.instruments import Instrument
    from openbell.stores.port import BarStore, Lease
    from openbell.stores.records.records import Records


class _WouldBlock(Exception):
    """Raised in the event loop instead of asking the store."""


class Desk:
    """A desk. `async with Desk(settings) as desk` closes all of its parts at the end."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.threads = Threads()
        self.supervisor = Supervisor()
        """Runs the background work of this process."""
        self.clock = make_clock(settings)
        # A simulated desk cannot price what was imported.
        keeps = self._was_known if settings.as_of or settings.simulated else None
        self.watchlist = WatchlistFile(settings.watchlist_file, self._default_watchlist, keeps, self._read_watchlist)
        self._asks_no_store = False
        """True while the watchlist is read in the event loop, which must not wait for the store."""
        self._known_then: set[Instrument] = set()
        self.answers_early = False
        """True if it answers more than one call: calls do not wait for what takes long, and the next ones have it."""
        self.record_connections = RecordConnections(settings.database_url, self._load_records)
        self._backend = settings.store_backend
        self._stored = StoredInstruments(lambda: self.store, self.threads, is_remote=self._backend.is_remote)

    @property
    def data(self) -> str:
        """The origin of bars: `simulated`, `imported`, `replay` or `live`."""
        return str(feed_of(self.settings.feed).origin)

    def _default_watchlist(self) -> tuple[Instrument, ...]:
        return default_watchlist(self.settings.feed, self._stored_instruments)

    async def _read_watchlist(self, read: Callable[[], Watchlist]) -> Watchlist:
        """Read the watchlist, in a thread if that asks the store."""
        self._asks_no_store = True
        try:
            return read()
        except _WouldBlock:
            _ = self.bars  # it is made in the event loop
        finally:
            self._asks_no_store = False
        return await self.threads.run(read)

    def _before_asking_store(self) -> None:
        if self._asks_no_store and in_event_loop():
            raise _WouldBlock

    def _was_known(self, instrument: Instrument) -> bool:
        """Returns True if the feed has an instrument or a bar of it had closed by the clock.

        The watchlist has no history: what was imported or added later must not show at an earlier time.
        """
        if instrument in self._known_then:
            return True
        if not (known := self.feed.supports(instrument)):
            self._before_asking_store()
            known = self.bars.has_stored(instrument)
        if known:
            self._known_then.add(instrument)
        return known

    def _stored_instruments(self) -> tuple[Instrument, ...]:
        """Returns the instruments that have stored bars; those known before while the store fails."""
        if not self._backend.has_bars:
            return ()
        if self._stored.must_wait():
            self._before_asking_store()
        return self._stored.read()

    @property
    def truth_of_pushes(self) -> dict[str, Any]:
        """`_meta` of notifications: which data they are based on."""
        scenario = self.settings.acts_in
        header = {"data": self.data, "feed": self.settings.feed, **({"scenario": scenario} if scenario else {})}
        return {TRUTH: header}

    async def facts(self, bars: Bars, *, from_minutes: bool = False) -> BarFacts:
        """What closed bars are made of, their sources, and the failure of the feed if they are only the stored ones."""
        from openbell.desk.bars.facts import bar_facts

        return await bar_facts(self.bars, bars, from_minutes=from_minutes)

    @cached_property
    def store(self) -> BarStore:
        """The store of bars."""
        if not self.settings.read_only:
            return self._backend.open()
        from openbell.stores.overlay import OverlayStore

        return OverlayStore(self._backend.view(), self._backend.origins)

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
        from openbell.desk.bars.symbol_advice import SymbolAdvice

        return SymbolAdvice(lambda: self.bars, self.watchlist)

    @cached_property
    def bars(self) -> BarService:
        """Closed bars."""
        from openbell.desk.bars.service import BarService

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
            },
            self.supervisor,
        )

    @cached_property
    def signals(self) -> SignalService:
        """Signals on closed bars."""
        from openbell.desk.quotes.signals import SignalService

        return SignalService(self.bars, self.watchlist)

    @cached_property
    def quotes(self) -> QuoteService:
        """Current prices and volatility."""
        from openbell.desk.quotes.service import QuoteService

        return QuoteService(self.bars, stale_after=self.settings.stale_after)

    @cached_property
    def arche(self) -> Arche:
        """The quotes API: this desk's, or the one that the settings name."""
        from openbell.desk.quotes.arche.local import LocalParts
        from openbell.desk.quotes.arche.upstreams import Arche

        local = LocalParts(
            bars=lambda: self.bars,
            hint=self.symbol_advice.hint,
            checks=lambda: {**self.checks(writing=False), "feed": feed_check(lambda: self.bars)},
            timeout=self.settings.timeout,
            stale_after=self.settings.stale_after,
        )
        return Arche(self.settings, local)

    @cached_property
    def charts(self) -> ChartService:
        """Pictures."""
        from openbell.desk.pictures.charts import ChartService

        return ChartService(self._drawing)

    @cached_property
    def chart_images(self) -> ChartImages:
        """Chart images of configs."""
        from openbell.desk.pictures.chart_image.service import ChartImages, ImageParts

        parts = ImageParts(
            settings=self.settings,
            clock=self.clock,
            bars=lambda: self.bars,
            indicators=lambda: self.indicators,
            advice=self.symbol_advice,
            watchlist=self.watchlist,
            threads=self.threads,
            drawing=self._drawing,
            is_gateway=lambda: self.arche.is_gateway,
        )
        return ChartImages(parts)

    @cached_property
    def indicators(self) -> IndicatorService:
        """Indicators on closed bars."""
        from openbell.desk.pictures.indicators import IndicatorService

        return IndicatorService(self.bars, self.feed)

    @cached_property
    def backtests(self) -> BacktestService:
        """Backtests and sweeps of strategies."""
        from openbell.desk.research.backtests import BacktestService

        return BacktestService(self.bars, self._backtester, self.settings.dask)

    @cached_property
    def _backtester(self) -> Backtester:
        """Runs backtests, in this process or at a service."""
        from openbell.desk.research.backtester import make_backtester

        return make_backtester(self.settings)

    @cached_property
    def strategies(self) -> StrategyDesk:
        """Strategy specs, their implementations, signals and consensus."""
        from openbell.desk.research.strategies.desk import StrategyDesk, StrategyParts

        trading = self.trading
        parts = StrategyParts(
            settings=self.settings,
            clock=self.clock,
            hub=self.hub,
            supervisor=self.supervisor,
            watchlist=self.watchlist,
            records=lambda: trading.records,
            writes=lambda: trading.writes,
            settle_scenario=trading.settle_scenario,
            failing=trading.failing,
            bars=lambda: self.bars,
            answers_early=lambda: self.answers_early,
        )
        return StrategyDesk(parts)

    @cached_property
    def _drawing(self) -> Threads:
        """Draws charts, one for a principal at a time: a large picture takes 100 MB, and two would not be faster."""
        return Threads("charts", 2, 1)

    @cached_property
    def connection_subscriptions(self) -> ConnectionSubscriptions:
        """Subscriptions to signals."""
        from openbell.desk.alerts.connection_subscriptions import ConnectionSubscriptions

        return ConnectionSubscriptions(
            self.signals, self.hub, Quota.of(self.settings, "quota_subscriptions"), self.supervisor
        )

    @cached_property
    def trading(self) -> TradingDesk:
        """Orders, alerts, decisions and their records."""
        from openbell.desk.trading_desk import TradingDesk, TradingParts

        parts = TradingParts(
            settings=self.settings,
            clock=self.clock,
            hub=self.hub,
            supervisor=self.supervisor,
            truth_of_pushes=self.truth_of_pushes,
            bars=lambda: self.bars,
            indicators=lambda: self.indicators,
            signals=lambda: self.signals,
            follow=self._follow,
        )
        return TradingDesk(parts, scenario=self.settings.acts_in)

    async def _follow(self, lease: Lease | None, until: int) -> int:
        return await self.strategies.follower.step(lease, until)

    async def _load_records(self) -> Records:
        # In a thread, because the imports take longer than the answer to `initialize` may.
        await asyncio.to_thread(import_module, "openbell.desk.trading_desk")
        return self.trading.records

    @cached_property
    def webhooks(self) -> WebhookService:
        """Webhooks of principals."""
        from openbell.desk.alerts.webhooks.service import WebhookService

        return WebhookService(self.trading.records, self.settings.trusted_origins)

    @cached_property
    def health(self) -> DeskHealth:
        """The state of the parts in this process, and the figures to watch."""
        from openbell.desk.operations.health.monitor import DeskHealth, HealthSources

        sources = HealthSources(
            settings=self.settings,
            clock=self.clock,
            supervisor=self.supervisor,
            watchlist=self.watchlist,
            checks=self.checks(),
            bars=lambda: self.bars,
            store=lambda: self.store,
            records=lambda: self.trading.records,
            engine=lambda: self.trading.engine.status if self.trading.writes else None,
            halt_file=lambda: self.trading.halt_file,
        )
        return DeskHealth(sources)

    def checks(self, *, writing: bool = True) -> dict[str, Check]:
        """Returns the checks of the stores: the records can be read and, if this desk writes, written to; bars can be read.

        Without `writing`, reading the records is enough.
        """
        return {
            "records": record_check(lambda: self.trading.records, lambda: writing and self.trading.writes),
            "bars": bar_check(lambda: self.store),
        }

    def checks_in_use(self) -> dict[str, Check]:
        """Returns the checks of the stores that this process has opened; they only read."""
        opened = {"records": self.has_made("trading") and self.trading.has_records, "bars": self.has_made("store")}
        return {name: check for name, check in self.checks(writing=False).items() if opened[name]}

    def has_made(self, part: str) -> bool:
        """Returns True if a part was used: parts are made on first use."""
        return part in vars(self)

    @property
    def account(self) -> str:
        """The kind of account that results show: `paper` or `live`."""
        return self.settings.account_kind

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        await self.symbol_advice.add_to(error)  # for commands; `protocol.service` does it for tools
        await self.close()

    _CLOSING: ClassVar[Mapping[str, Callable[[Desk], Awaitable[None]]]] = {
        # Background work uses all parts, and releases its leases in the records and the store.
        "supervisor": lambda self: self.supervisor.close(),
        "record_connections": lambda self: self.record_connections.close(),
        "health": lambda self: self.health.close(),
        "strategies": lambda self: self.strategies.close(),
        "trading": lambda self: self.trading.close(),
        "connection_subscriptions": lambda self: self.connection_subscriptions.close(),
        "arche": lambda self: self.arche.close(),
        "chart_images": lambda self: self.chart_images.close(),
        "hub": lambda self: self.hub.close(),
        "_backtester": lambda self: self._backtester.close(),
        "_drawing": lambda self: self._abandon_drawing(),
        "feed": lambda self: self.feed.close(),
        "store": lambda self: self._close_store(),
    }
    """How parts are closed: each before those that it uses. The order in which they are made is that of their first use."""

    async def close(self) -> None:
        """Close every part that was made, also if one of them cannot be closed: its error is raised at the end."""
        async with AsyncExitStack() as closing:
            for part in reversed(tuple(self._CLOSING)):
                closing.push_async_callback(self._close_part, part)

    async def _close_part(self, part: str) -> None:
        if self.has_made(part):
            await self._CLOSING[part](self)

    async def _abandon_drawing(self) -> None:
        self._drawing.abandon()

    async def _close_store(self) -> None:
        # Threads of cancelled tasks may still use the store: wait for them before it is closed.
        await self.threads.close()
        self.store.close()


def make_clock(settings: Settings) -> Clock:
    """Returns the system's clock, or one that is fixed at `as_of` or runs from there."""
    if not settings.as_of:
        return SystemClock()
    start = parse_time(settings.as_of)
    return ReplayClock(start, speed=settings.replay_speed) if settings.replay_speed else FixedClock(start)
