"""Searches the watched series in the background, so that rankings have figures, and keeps those figures current.

One process of a home searches at a time: the one that holds the lease of its costs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from openbell.desk.bars import BarService
from openbell.desk.events import Hub, Listener, SpecSubmitted, WatchlistChanged
from openbell.desk.principals import OPERATOR
from openbell.desk.strategies.figures import FigureService
from openbell.desk.strategies.searching import SearchService
from openbell.desk.strategies.series_bars import SEARCHED, SeenBars, corrected, seen_bars
from openbell.desk.strategies.specs import SpecService
from openbell.desk.watchlist import WatchlistFile
from openbell.desk.workers import Workers
from openbell.market.errors import LeaseHeld, LeaseLost, OpenbellError, StoreError
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, name_of
from openbell.stores.holders import this_process
from openbell.stores.port import Lease
from openbell.stores.records import leases
from openbell.stores.records import strategies as queries
from openbell.stores.records.records import Records
from openbell.stores.records.strategies import EVERYONE
from openbell.strategies.implementations import Status

log = logging.getLogger(__name__)

_LEASE_SECONDS = 120.0
_STANDBY_SECONDS = 5.0
_AGAIN_SECONDS = 600.0
"""After so long all series are looked at again: bars have closed, and some may have enough bars by now."""
_LOOK_SECONDS = 20.0
"""Between two looks for corrected bars."""


@dataclass(slots=True)
class SeedingStatus:
    """How far the search is, for displays."""

    state: str = "starting"
    done: int = 0
    total: int = 0
    series: str = ""
    failed: list[str] = field(default_factory=list)
    """Why series could not be searched."""
    outcome: str = ""
    """How many strategies are validated or deployed, and the command that shows them; empty before the first search ends."""

    @property
    def searching(self) -> bool:
        """True while series are searched."""
        return self.state == "searching"

    def __str__(self) -> str:
        if not self.searching:
            return "; ".join(filter(None, (self.state, self.outcome)))
        return f"searching {self.series}: {self.done} of {self.total} series done"


@dataclass(frozen=True, slots=True)
class SeedingServices:
    """What the search uses."""

    specs: SpecService
    searching: SearchService
    figures: FigureService
    bars: BarService
    workers: Workers


class Seeding:
    """The search in the background."""

    def __init__(
        self, records: Records, services: SeedingServices, watchlist: WatchlistFile, hub: Hub, costs: queries.Costs
    ) -> None:
        """`costs` are those that strategies are judged by."""
        self._records = records
        self._services = services
        self._watchlist = watchlist
        self._hub = hub
        self._costs = costs
        # Processes with other costs search for themselves.
        self._lease = f"search {costs}"
        self._seen: dict[Series, SeenBars] = {}
        self.status = SeedingStatus()

    async def run(self) -> None:
        """Search all watched series, then again when the watchlist or the specs change, and those whose bars are corrected.

        Ends only if cancelled.
        """
        wanted: Collection[Series] | None = None
        with self._hub.listen(WatchlistChanged, SpecSubmitted) as changed:
            while True:
                try:
                    some, wanted = wanted, None
                    await self._search(some)
                    failed = self.status.failed
                    self.status.state = "all watched series are searched" if not failed else f"{failed[0]}"
                    if len(failed) > 1:
                        self.status.state += f"; {len(failed) - 1} more series failed"
                    wanted = await self._next(changed)
                except LeaseHeld:
                    self.status.state = "another process searches"
                    await asyncio.sleep(_STANDBY_SECONDS)
                except OpenbellError as error:
                    log.warning("the search for strategies waits: %s", error)
                    self.status.state = f"waiting: {error.message}"
                    await asyncio.sleep(_STANDBY_SECONDS)
                except Exception:
                    log.exception("the search for strategies failed; trying again")
                    self.status.state = "waiting: the search failed, the log says why"
                    await asyncio.sleep(_STANDBY_SECONDS)

    async def _next(self, changed: Listener) -> Collection[Series] | None:
        """Wait for something to search. Returns the series whose bars were corrected; None if all may have changed."""
        end = monotonic() + _AGAIN_SECONDS
        bars = self._services.bars
        while (left := end - monotonic()) > 0:
            if await changed.wait(min(left, _LOOK_SECONDS)):
                return None
            if some := await bars.threads.run(corrected, bars.store, self._seen):
                return some
        return None

    async def _search(self, some: Collection[Series] | None) -> None:
        """Search some of the watched series, or all."""
        wanted = [each for each in self._series() if some is None or each in some]
        owners = [EVERYONE, *await self._records.read(queries.owners)]
        name, holder = self._lease, this_process("search")
        lease = await self._records.write(lambda journal: leases.acquire(journal.view, name, holder, _LEASE_SECONDS))
        self.status.total, self.status.done = len(wanted), 0
        if some is None:
            self._seen, self.status.failed = {}, []
        try:
            for series in wanted:
                self.status.state, self.status.series = "searching", f"{series}"
                await self._renew(lease)
                await self._one(series, owners)
                self.status.done += 1
            self.status.outcome = await self._outcome(wanted)
        finally:
            with suppress(StoreError, LeaseLost):
                await self._records.write(lambda journal: leases.release(journal.view, lease))

    async def _outcome(self, searched: list[Series]) -> str:
        """Returns how many strategies that the operator sees are active, and the command that shows those of a symbol."""
        active = await self._records.read(lambda view: queries.followed(view, self._costs))
        counts = Counter(each.status for each in active if each.principal in {EVERYONE, OPERATOR})
        symbols = [*(each.symbol for each in active), *(each.instrument.symbol for each in searched)]
        counted = f"{counts[Status.VALIDATED]} validated and {counts[Status.DEPLOYED]} deployed strategies"
        if not symbols:
            return counted
        return f"""{counted}, shown by: openbell call strategy get_top_strategies '{{"symbol": "{symbols[0]}"}}'"""

    def _series(self) -> Iterator[Series]:
        """Daily bars of every symbol first: they are the quickest."""
        watched = self._watchlist.read().instruments
        for timeframe in SEARCHED:
            for instrument in watched:
                yield Series(instrument, timeframe)

    async def _one(self, series: Series, owners: list[str]) -> None:
        services, symbol, timeframe = self._services, series.instrument.symbol, name_of(series.timeframe, SHORT)
        bars, store = services.bars, services.bars.store
        self.status.failed = [each for each in self.status.failed if not each.startswith(f"{series} is not searched")]
        try:
            self._seen[series] = await bars.threads.run(seen_bars, store, series, bars.closed_until())
            for owner in owners:
                await services.searching.ensure(owner, series, services.workers)
            found = await self._records.read(lambda view: queries.series_of(view, symbol, timeframe, self._costs))
            for owner in owners:
                specs = {each.id: each for each in await services.specs.all(owner)}
                own = [each for each in found if each.principal == owner and each.status is not Status.RETIRED]
                await services.figures.of(own, specs, services.workers)
        except StoreError:
            raise
        except OpenbellError as error:
            log.info("%s is not searched: %s", series, error.message)
            self.status.failed.append(f"{series} is not searched: {error.message}")
        except Exception:  # the other series are searched all the same
            log.exception("%s is not searched", series)
            self.status.failed.append(f"{series} is not searched: the log says why")

    async def _renew(self, lease: Lease) -> None:
        await self._records.write(lambda journal: leases.renew(journal.view, lease, _LEASE_SECONDS))
