"""Finds implementations on a series: every spec that was not tried there yet is searched, and the results are recorded.

A desk that may not write keeps its results in memory: one that is read-only, or one that looks at the past. At a past time
the records are used as they were then; only if they had nothing about the series, it is searched with the bars of that time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from openbell.backtest.rules import Setup
from openbell.backtest.search import FEWEST_BARS, Tried, judged, search
from openbell.desk.bars import BarService
from openbell.desk.strategies.series_bars import SeriesBars, newest_bars
from openbell.desk.strategies.specs import KnownSpec, SpecService
from openbell.desk.workers import Workers
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, name_of
from openbell.stores.records import strategies as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.strategies.implementations import Implementation, Status, implementation_id


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be searched on a series."""

    series: Series
    principal: str
    specs: list[KnownSpec]
    """Those that were not tried yet."""
    tried: list[Implementation]
    """The implementations on the series, of every principal."""
    fingerprint: str
    """Of all specs of the principal, tried or not."""

    @property
    def timeframe(self) -> str:
        """The name of the timeframe."""
        return name_of(self.series.timeframe, SHORT)

    @property
    def search_id(self) -> str:
        """The key of this search in the records."""
        return f"{self.series.instrument.symbol} {self.timeframe} {self.principal}".strip()


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

    async def implementations(
        self, principal: str, *, symbol: str | None = None, spec_id: str | None = None
    ) -> list[Implementation]:
        """Returns the implementations that a principal sees, of those that were found so far."""
        found = await self._records.read(
            lambda view: queries.implementations_of(view, principal, symbol=symbol, spec_id=spec_id)
        )
        known = {each.id for each in found}
        kept = [each for (_, owner), some in self._memory.items() if owner == principal for each in some]
        return found + [
            each
            for each in kept
            if each.id not in known and symbol in {None, each.symbol} and spec_id in {None, each.spec_id}
        ]

    async def find(self, principal: str, wanted: str) -> Implementation | None:
        """Returns the implementation of an id, if the principal sees it."""
        for (_, owner), some in self._memory.items():
            for each in some:
                if owner == principal and each.id == wanted:
                    return each
        return await self._records.read(lambda view: queries.implementation(view, principal, wanted))

    async def ensure(self, principal: str, series: Series, workers: Workers | None = None) -> int:
        """Search a series for every spec of a principal that was not tried there; returns how many were.

        `workers` compute, instead of those that answer calls. A series with too few bars is left for later. Raises as
        `BarService.span` does.
        """
        # A caller that gives up leaves the search running: the next one has its result.
        return await asyncio.shield(self.begin(principal, series, workers))

    def begin(self, principal: str, series: Series, workers: Workers | None = None) -> asyncio.Task[int]:
        """Start to search a series, if that is not being done; returns the task."""
        key = (series, principal)
        task = self._running.get(key)
        if task is None:
            task = asyncio.ensure_future(self._ensure(principal, series, workers or self._workers))
            self._running[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        return task

    def is_running(self, principal: str, series: Series) -> bool:
        """Returns True while a series is searched for a principal."""
        return (series, principal) in self._running

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
        wanted = await self._wanted(principal, series)
        if not wanted.specs:
            return 0
        workers.prepare(search.__module__)
        stretch = await newest_bars(self._bars, series)
        if len(stretch.bars) < FEWEST_BARS:
            return 0
        first = int(stretch.bars.time[0])
        chosen = [each.spec for each in wanted.specs]
        results = await workers.run(search, chosen, stretch.bars, self._setup)
        if self.writes:
            await self._records.write(lambda journal: self._record(journal, wanted, results, stretch, first))
        else:
            found = _judged(wanted, wanted.tried, results, first, self._bars.clock.epoch())
            self._memory[series, principal] = self._memory.get((series, principal), []) + found
        return len(chosen)

    async def _wanted(self, principal: str, series: Series) -> _Wanted:
        specs = await self._specs.all(principal)
        fingerprint = sha256(json.dumps(sorted([each.id, each.fingerprint] for each in specs)).encode()).hexdigest()
        empty = _Wanted(series, principal, [], [], fingerprint)
        done = await self._records.read(lambda view: queries.search(view, empty.search_id))
        if done is not None and done["fingerprint"] == fingerprint:
            return empty
        tried = await self._records.read(
            lambda view: queries.series_of(view, series.instrument.symbol, empty.timeframe)
        )
        tried = tried + self._memory.get((series, principal), [])
        return replace(empty, specs=_untried(specs, tried), tried=tried)

    def _record(
        self,
        journal: Journal,
        wanted: _Wanted,
        results: Sequence[Tried | None],
        stretch: SeriesBars,
        first: int,
    ) -> None:
        """Record what was found, unless another process has recorded it meanwhile."""
        tried = queries.series_of(journal.view, wanted.series.instrument.symbol, wanted.timeframe)
        present = {each.id for each in tried}
        for each in _judged(wanted, tried, results, first, journal.at):
            if each.id not in present:
                self._retire_changed(journal, tried, each)
                journal.put("implementation", each, new=True)
        row = {
            "id": wanted.search_id,
            "symbol": wanted.series.instrument.symbol,
            "timeframe": wanted.timeframe,
            "fingerprint": wanted.fingerprint,
            "tries": len(wanted.tried) + len(wanted.specs),
            "bars": len(stretch.bars),
            "at": journal.at,
        }
        journal.put("search", row)

    @staticmethod
    def _retire_changed(journal: Journal, tried: list[Implementation], new: Implementation) -> None:
        """Retire the implementations of the same spec as it was before it changed."""
        for each in tried:
            changed = each.fingerprint != new.fingerprint and each.status is not Status.RETIRED
            if (each.spec_id, each.principal) == (new.spec_id, new.principal) and changed:
                reason = f"the spec has changed; {new.id} begins again"
                journal.put(
                    "implementation", replace(each, status=Status.RETIRED, reason=reason, changed_at=journal.at)
                )


def _untried(specs: Sequence[KnownSpec], tried: Sequence[Implementation]) -> list[KnownSpec]:
    known = {(each.principal, each.spec_id, each.fingerprint) for each in tried}
    return [each for each in specs if (each.principal, each.id, each.fingerprint) not in known]


def _judged(
    wanted: _Wanted, tried: Sequence[Implementation], results: Sequence[Tried | None], first: int, at: float
) -> list[Implementation]:
    """Returns the implementations of results, each with the status that the rules give it."""
    tries = len(tried) + sum(each is not None for each in results)
    return [
        _implementation(wanted, known, result, tries, first, at)
        for known, result in zip(wanted.specs, results, strict=True)
        if result is not None
    ]


def _implementation(
    wanted: _Wanted, known: KnownSpec, found: Tried, tries: int, first: int, at: float
) -> Implementation:
    step, deflated = judged(found, tries)
    symbol, parameters = wanted.series.instrument.symbol, dict(found.parameters)
    figures: dict[str, Any] = {
        "sharpe": found.sharpe,
        "in_sample_sharpe": found.in_sample_sharpe,
        "deflated_sharpe": deflated,
        "trades": found.trades,
        "drawdown": found.drawdown,
    }
    return Implementation(
        implementation_id(known.principal, known.id, known.fingerprint, symbol, wanted.timeframe, parameters),
        known.principal,
        known.id,
        known.fingerprint,
        symbol,
        wanted.timeframe,
        parameters,
        step.status,
        step.reason,
        first,
        found.trained_until,
        at,
        at,
        tries,
        figures,
    )
