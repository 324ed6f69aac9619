"""Searches the watched series in the background, so that rankings have figures, and keeps those figures current.

One process of a home searches at a time: the one that holds the lease of its costs, from its first search on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from time import monotonic

from openbell.desk.bars.service import BarService
from openbell.desk.bars.watchlist import WatchlistFile
from openbell.desk.events.hub import Hub, Listener, SpecSubmitted, WatchlistChanged
from openbell.desk.events.leased_work import LeasedWork, LeasesInRecords, while_renewed
from openbell.desk.events.supervision import WorkState, WorkStatus
from openbell.desk.research.strategies.figures import FigureService
from openbell.desk.research.strategies.searching import SearchService
from openbell.desk.research.strategies.series_bars import SEARCHED, SeenBars, corrected, seen_bars
from openbell.desk.research.strategies.specs import SpecService
from openbell.desk.research.workers import Workers
from openbell.desk.settings.principals import OPERATOR
from openbell.market.errors import OpenbellError, StoreError
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, name_of
from openbell.stores.records import strategies as queries
from openbell.stores.records.records import Records
from openbell.stores.records.strategies import EVERYONE
from openbell.strategies.implementations import ImplementationStatus

log = logging.getLogger(__name__)

_LEASE_SECONDS = 120.0
"""Renewed all the while, also during a search of one series that takes longer."""
_PAUSE = 5.0
"""Seconds to wait after a failure."""
_AGAIN_SECONDS = 600.0
"""After so long all series are looked at again: bars have closed, and some may have enough bars by now."""
_LOOK_SECONDS = 20.0
"""Between two looks for corrected bars."""


@dataclass(slots=True)
class SearchStatus(WorkStatus):
    """How far the search is, for displays."""

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
        return self.state is WorkState.WORKING

    def __str__(self) -> str:
        if not self.searching:
            return "; ".join(filter(None, (self.detail or f"{self.state}", self.outcome)))
        return f"searching {self.series}: {self.done} of {self.total} series done"


@dataclass(frozen=True, slots=True)
class SearchServices:
    """What the search uses."""

    specs: SpecService
    searching: SearchService
    figures: FigureService
    bars: BarService
    workers: Workers


class BackgroundSearch:
    """The search in the background."""

    def __init__(
        self, records: Records, services: SearchServices, watchlist: WatchlistFile, hub: Hub, costs: queries.Costs
    ) -> None:
        """`costs` are those that strategies are judged by."""
        self._records = records
        self._services = services
        self._watchlist = watchlist
        self._hub = hub
        self._costs = costs
        self._seen: dict[Series, SeenBars] = {}
        self.status = SearchStatus()
        # Processes with other costs search for themselves.
        self._lease = LeasedWork(
            LeasesInRecords(records), f"search {costs}", "search", self.status, seconds=_LEASE_SECONDS
        )

    async def run(self) -> None:
        """Wait for the lease, and search while it is held. Ends only if cancelled."""
        await self._lease.run(lambda _lease, renewing: while_renewed(renewing, self._search_all()))

    async def _search_all(self) -> None:
        """Search all watched series, then again when the watchlist or the specs change, or bars are corrected."""
        wanted: Collection[Series] | None = None
        with self._hub.listen(WatchlistChanged, SpecSubmitted) as changed:
            while True:
                try:
                    some, wanted = wanted, None
                    await self._search(some)
                    failed = self.status.failed
                    text = failed[0] if failed else "all watched series are searched"
                    more = f"; {len(failed) - 1} more series failed" if len(failed) > 1 else ""
                    self.status.become(WorkState.IDLE, text + more)
                    wanted = await self._next(changed)
                except OpenbellError as error:
                    log.warning("the search for strategies waits: %s", error)
                    self.status.become(WorkState.WAITING, f"waiting: {error.message}")
                    await asyncio.sleep(_PAUSE)

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
        wanted = [each for each in await self._series() if some is None or each in some]
        owners = [EVERYONE, *await self._records.read(queries.owners)]
        self.status.total, self.status.done = len(wanted), 0
        if some is None:
            self._seen, self.status.failed = {}, []
        for series in wanted:
            self.status.series = f"{series}"
            self.status.become(WorkState.WORKING)
            await self._one(series, owners)
            self.status.done += 1
        self.status.outcome = await self._outcome(wanted)

    async def _outcome(self, searched: list[Series]) -> str:
        """Returns how many strategies that the operator sees are active, and the command that shows those of a symbol."""
        active = await self._records.read(queries.followed, self._costs)
        counts = Counter(each.status for each in active if each.principal in {EVERYONE, OPERATOR})
        symbols = [*(each.symbol for each in active), *(each.instrument.symbol for each in searched)]
        validated, deployed = (counts[each] for each in (ImplementationStatus.VALIDATED, ImplementationStatus.DEPLOYED))
        counted = f"{validated} validated and {deployed} deployed strategies"
        if not symbols:
            return counted
        return f"""{counted}, shown by: openbell call strategy get_top_strategies '{{"symbol": "{symbols[0]}"}}'"""

    async def _series(self) -> list[Series]:
        """Daily bars of every symbol first: they are the quickest."""
        watched = (await self._watchlist.current()).instruments
        return [Series(instrument, timeframe) for timeframe in SEARCHED for instrument in watched]

    async def _one(self, series: Series, owners: list[str]) -> None:
        services, symbol, timeframe = self._services, series.instrument.symbol, name_of(series.timeframe, SHORT)
        bars, store = services.bars, services.bars.store
        self.status.failed = [each for each in self.status.failed if not each.startswith(f"{series} is not searched")]
        try:
            self._seen[series] = await bars.threads.run(seen_bars, store, series, bars.closed_until())
            for owner in owners:
                await services.searching.ensure(owner, series, services.workers)
            found = await self._records.read(queries.series_of, symbol, timeframe, self._costs)
            for owner in owners:
                specs = {each.id: each for each in await services.specs.all(owner)}
                own = [
                    each
                    for each in found
                    if each.principal == owner and each.status is not ImplementationStatus.RETIRED
                ]
                await services.figures.of(own, specs, services.workers)
        except StoreError:
            raise
        except OpenbellError as error:
            log.info("%s is not searched: %s", series, error.message)
            self.status.failed.append(f"{series} is not searched: {error.message}")
        except Exception:  # the other series are searched all the same
            log.exception("%s is not searched", series)
            self.status.failed.append(f"{series} is not searched: the log says why")
