"""Finds implementations on a series: every spec that was not tried there yet is searched, and the results are recorded.

The record of a search has the bars that it used. If those bars are corrected, or many earlier ones are added, the series is
searched again and the implementations of the search before are retired. Searches with other costs are searches of their own:
a desk sees and records only those with the costs of its settings.

A desk that may not write keeps its results in memory: one that is read-only, or one that looks at the past. At a past time
the records are used as they were then; only if they had nothing about the series, it is searched with the bars of that time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from openbell.backtest.rules import Setup
from openbell.backtest.search import FEWEST_BARS, Tried, judged, search
from openbell.desk.bars import BarService
from openbell.desk.strategies.series_bars import SeriesBars, bars_since, digest_of, newest_bars
from openbell.desk.strategies.specs import KnownSpec, SpecService, canonical_specs
from openbell.desk.workers import Workers
from openbell.market.errors import Refused
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, name_of
from openbell.stores.records import strategies as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.strategies import EVERYONE
from openbell.stores.records.view import View
from openbell.strategies.implementations import Implementation, Status, implementation_id

_MORE_HISTORY = 0.2
"""A series is searched again when so many more earlier bars are stored, as a share of those that were used."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be searched on a series."""

    series: Series
    principal: str
    stretch: SeriesBars
    specs: list[KnownSpec]
    """Those that were not tried yet."""
    fingerprint: str
    """Of all specs that it is about, tried or not."""
    costs: list[float]
    outdated: str
    """Why the implementations of the search before are no longer valid; empty if they are."""
    seen: float
    """When the series was searched before; 0 if it was not."""

    @property
    def timeframe(self) -> str:
        """The name of the timeframe."""
        return name_of(self.series.timeframe, SHORT)

    @property
    def symbol(self) -> str:
        """The symbol."""
        return self.series.instrument.symbol

    @property
    def first(self) -> int:
        """Open time of the first bar."""
        return int(self.stretch.bars.time[0])


class SearchService:
    """Searches series for implementations."""

    def __init__(
        self, records: Records, bars: BarService, specs: SpecService, workers: Workers, setup: Setup, *, writes: bool
    ) -> None:
        self._records = records
        self._bars = bars
        self._specs = specs
        self._workers = workers
        self._setup = setup
        self.writes = writes
        self._running: dict[tuple[Series, str], asyncio.Task[int]] = {}
        self._memory: dict[tuple[Series, str], list[Implementation]] = {}
        """The results of a desk that may not write, by series and principal."""
        self._outdated: set[Series] = set()
        """Series of which those results replace recorded ones."""

    async def implementations(
        self, principal: str, *, symbol: str | None = None, spec_id: str | None = None
    ) -> list[Implementation]:
        """Returns the implementations that a principal sees, of those that were found so far."""
        found = await self._records.read(
            lambda view: queries.implementations_of(view, principal, self._setup.costs, symbol=symbol, spec_id=spec_id)
        )
        old = {(each.instrument.symbol, name_of(each.timeframe, SHORT)) for each in self._outdated}
        found = [each for each in found if (each.symbol, each.timeframe) not in old]
        known = {each.id for each in found}
        owners = {EVERYONE, principal}
        kept = [each for (_, owner), some in self._memory.items() if owner in owners for each in some]
        return found + [
            each
            for each in kept
            if each.id not in known and symbol in {None, each.symbol} and spec_id in {None, each.spec_id}
        ]

    async def find(self, principal: str, wanted: str) -> Implementation | None:
        """Returns the implementation of an id, if the principal sees it."""
        for (_, owner), some in self._memory.items():
            for each in some:
                if owner in {EVERYONE, principal} and each.id == wanted:
                    return each
        return await self._records.read(lambda view: queries.implementation(view, principal, self._setup.costs, wanted))

    async def ensure(self, principal: str, series: Series, workers: Workers | None = None) -> int:
        """Search a series for every spec of a principal that was not tried there; returns how many were.

        `workers` compute, instead of those that answer calls. A series with too few bars is left for later. Raises as
        `BarService.span` does.
        """
        # A caller that gives up leaves the search running: the next one has its result.
        count = await asyncio.shield(self.begin(EVERYONE, series, workers))
        if principal != EVERYONE and await self._specs.own(principal):
            count += await asyncio.shield(self.begin(principal, series, workers))
        return count

    def begin(self, principal: str, series: Series, workers: Workers | None = None) -> asyncio.Task[int]:
        """Start to search a series for canonical specs, or for those of a principal; returns the task."""
        key = (series, principal)
        task = self._running.get(key)
        if task is None:
            task = asyncio.ensure_future(self._ensure(principal, series, workers or self._workers))
            self._running[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        return task

    def is_running(self, principal: str, series: Series) -> bool:
        """Returns True while a series is searched for a principal."""
        return (series, principal) in self._running or (series, EVERYONE) in self._running

    def _ended(self, key: tuple[Series, str], task: asyncio.Task[int]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it if all callers have given up

    async def close(self) -> None:
        """Stop all searches."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ensure(self, principal: str, series: Series, workers: Workers) -> int:
        workers.prepare(search.__module__)
        wanted = await self._wanted(principal, series)
        if not wanted.specs or len(wanted.stretch.bars) < FEWEST_BARS:
            return 0
        chosen = [each.spec for each in wanted.specs]
        results = await workers.run(search, chosen, wanted.stretch.bars, self._setup)
        if self.writes:
            try:
                await self._records.write(lambda journal: self._record(journal, wanted, results))
            except Refused:  # the scenario has gone on to a later time: this desk only reads it
                self._keep(wanted, results)
        else:
            self._keep(wanted, results)
        return len(chosen)

    def _keep(self, wanted: _Wanted, results: Sequence[Tried | None]) -> None:
        """Keep results in memory."""
        key = (wanted.series, wanted.principal)
        kept = [] if wanted.outdated else self._memory.get(key, [])
        self._memory[key] = kept + _judged(wanted, len(kept), results, self._bars.clock.epoch())
        if wanted.outdated:
            self._outdated.add(wanted.series)

    async def _wanted(self, principal: str, series: Series) -> _Wanted:
        specs = list(canonical_specs()) if principal == EVERYONE else await self._specs.own(principal)
        fingerprint = sha256(json.dumps(sorted([each.id, each.fingerprint] for each in specs)).encode()).hexdigest()
        symbol, timeframe = series.instrument.symbol, name_of(series.timeframe, SHORT)
        costs = self._setup.costs
        stretch = await newest_bars(self._bars, series)

        def work(view: View) -> tuple[Mapping[str, Any] | None, list[Implementation]]:
            done = queries.search(view, symbol, timeframe, principal, costs)
            return done, queries.series_of(view, symbol, timeframe, costs)

        done, tried = await self._records.read(work)
        reason = "" if done is None else await self._outdated_by(done, series, stretch)
        kept = self._memory.get((series, principal), [])
        if reason and not kept:
            tried = [each for each in tried if each.principal != principal]
        elif done is not None and done["fingerprint"] == fingerprint and not reason:
            specs = []
        untried = _untried(specs, [*(each for each in tried if each.status is not Status.RETIRED), *kept])
        seen = 0.0 if done is None else float(done["at"])
        return _Wanted(series, principal, stretch, untried, fingerprint, list(costs), reason, seen)

    async def _outdated_by(self, done: Mapping[str, Any], series: Series, stretch: SeriesBars) -> str:
        """Returns why the results of a search are no longer valid; empty if they are."""
        bars = stretch.bars
        if len(bars) and bars.time[0] > done["first"]:
            bars = (await bars_since(self._bars, series, int(done["first"]))).bars
        if int(bars.time.searchsorted(done["first"])) > _MORE_HISTORY * done["bars"]:
            return "there are many more earlier bars now"
        used = bars.between(int(done["first"]), int(done["until"]))
        if digest_of(used) != done["digest"]:
            return "the bars that it was found with were corrected"
        return ""

    def _record(self, journal: Journal, wanted: _Wanted, results: Sequence[Tried | None]) -> None:
        """Record what was found, unless another process has searched the series meanwhile."""
        place = (wanted.symbol, wanted.timeframe)
        done = queries.search(journal.view, *place, wanted.principal, wanted.costs)
        if done is not None and float(done["at"]) != wanted.seen:
            return
        tried = queries.series_of(journal.view, *place, wanted.costs)
        mine = [each for each in tried if each.principal == wanted.principal]
        if wanted.outdated:
            for each in mine:
                _retire(journal, each, wanted.outdated)
            tried = [each for each in tried if each.principal != wanted.principal]
            mine = []
        present = {each.id for each in tried}
        for new in _judged(wanted, len(tried), results, journal.at):
            if new.id in present:
                continue
            for each in mine:
                if (each.spec_id, each.principal) == (new.spec_id, new.principal):
                    _retire(journal, each, f"the spec has changed; {new.id} begins again")
            journal.put("implementation", new, new=not wanted.outdated)
        row = {
            "id": queries.search_id(*place, wanted.principal, wanted.costs),
            "symbol": wanted.symbol,
            "timeframe": wanted.timeframe,
            "fingerprint": wanted.fingerprint,
            "tries": len(tried) + len(wanted.specs),
            "bars": len(wanted.stretch.bars),
            "first": wanted.first,
            "until": wanted.stretch.until,
            "digest": wanted.stretch.digest,
            "costs": wanted.costs,
            "at": journal.at,
        }
        journal.put("search", row)


def _retire(journal: Journal, implementation: Implementation, reason: str) -> None:
    if implementation.status is not Status.RETIRED:
        ended = replace(implementation, status=Status.RETIRED, reason=reason, changed_at=journal.at)
        journal.put("implementation", ended)


def _untried(specs: Sequence[KnownSpec], tried: Sequence[Implementation]) -> list[KnownSpec]:
    known = {(each.principal, each.spec_id, each.fingerprint) for each in tried}
    return [each for each in specs if (each.principal, each.id, each.fingerprint) not in known]


def _judged(wanted: _Wanted, tried: int, results: Sequence[Tried | None], at: float) -> list[Implementation]:
    """Returns the implementations of results, each with the status that the rules give it; `tried` were tried before."""
    tries = tried + sum(each is not None for each in results)
    return [
        _implementation(wanted, known, result, tries, at)
        for known, result in zip(wanted.specs, results, strict=True)
        if result is not None
    ]


def _implementation(wanted: _Wanted, known: KnownSpec, found: Tried, tries: int, at: float) -> Implementation:
    step, deflated = judged(found, tries)
    parameters = dict(found.parameters)
    figures: dict[str, Any] = {
        "sharpe": found.sharpe,
        "in_sample_sharpe": found.in_sample_sharpe,
        "deflated_sharpe": deflated,
        "trades": found.trades,
        "drawdown": found.drawdown,
        "bars": wanted.stretch.digest,
        "costs": wanted.costs,
    }
    series, basis = (wanted.symbol, wanted.timeframe), [wanted.stretch.digest, wanted.costs]
    return Implementation(
        implementation_id(known.principal, known.id, known.fingerprint, series, parameters, basis),
        known.principal,
        known.id,
        known.fingerprint,
        *series,
        parameters,
        step.status,
        step.reason,
        wanted.first,
        found.trained_until,
        at,
        at,
        tries,
        figures,
    )
