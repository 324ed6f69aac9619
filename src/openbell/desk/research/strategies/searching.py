"""Finds implementations on a series: every spec that was not tried there yet is searched, and the results are recorded.

The record of a search has the bars that it used. If those bars are corrected, or many earlier ones are added, the series is
searched again and the implementations of the search before are retired. If many later ones are added, or a month has passed,
it is searched again too, but those that are followed stay: later bars are their forward performance. Searches with other
costs are searches of their own: a desk sees and records only those with the costs of its settings.

A desk that may not write keeps its results in memory: one that is read-only, or one that looks at the past. At a past time
the records are used as they were then; only if they had nothing about the series, it is searched with the bars of that time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import inf
from typing import Any, NamedTuple

from openbell.backtest.rules import Setup
from openbell.backtest.search import FEWEST_BARS, SearchedSpec, search
from openbell.desk.bars.service import BarService
from openbell.desk.research.strategies.consensus_records import withdraw_votes
from openbell.desk.research.strategies.search_results import Known, Searched, SearchKey, SearchMemory, known_at
from openbell.desk.research.strategies.series_bars import SeriesBars, bars_since, digest_of, newest_bars
from openbell.desk.research.strategies.specs import KnownSpec, SpecService, canonical_specs
from openbell.desk.research.workers import Workers
from openbell.market.errors import Refused
from openbell.market.plural import counted
from openbell.market.series import Series
from openbell.stores.records import strategies as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.stores.records.strategies import EVERYONE
from openbell.stores.threads import CALLER
from openbell.strategies.implementations import Implementation, ImplementationStatus

_MORE_HISTORY = 0.2
"""A series is searched again when so many more earlier bars are stored, as a share of those that were used."""
_MORE_BARS = 0.1
"""The same of later bars,"""
_MONTH = 30 * 86400
"""or when bars have closed for so many seconds since."""
_EARLIER_RULES = "it was judged by earlier rules"
_AT_ONCE = 20
"""Specs that are tried in one call of a worker: the progress of a search is known after each."""


_Key = tuple[Series, str, str]
"""A series, whose specs are searched there, and who has asked; empty for the desk itself."""


class Progress(NamedTuple):
    """How many specs of a search were tried."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be searched on a series."""

    place: SearchKey
    stretch: SeriesBars
    covered: SeriesBars
    """See `Searched`."""
    specs: list[KnownSpec]
    """Those that were not tried yet."""
    fingerprint: str
    """Of all specs that it is about, tried or not."""
    outdated: str
    """Why the implementations of the search before are no longer valid; empty if they are."""
    replaces: str
    """Why candidates are searched again although they are valid; empty if they are not."""
    recorded: Known
    known: Known
    """What is recorded and what is kept in memory."""
    shared: Known
    """The same of canonical specs, if it is about others."""


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
        self._running: dict[_Key, asyncio.Task[int]] = {}
        self._progress: dict[_Key, Progress] = {}
        self._memory = SearchMemory()

    async def implementations(
        self, principal: str, *, symbol: str | None = None, spec_id: str | None = None
    ) -> list[Implementation]:
        """Returns the implementations that a principal sees, of those that were found so far."""
        found = await self._records.read(
            lambda view: queries.implementations_of(view, principal, self._setup.costs, symbol=symbol)
        )
        shown = self._memory.shown(found, principal)
        return [each for each in shown if symbol in {None, each.symbol} and spec_id in {None, each.spec_id}]

    async def find(self, principal: str, wanted: str) -> Implementation | None:
        """Returns the implementation of an id, if the principal sees it."""
        costs = self._setup.costs
        found = await self._records.read(queries.implementation, principal, costs, wanted)
        kept = self._memory.find(principal, wanted)
        return kept if kept is not None and (found is None or kept.status is ImplementationStatus.RETIRED) else found

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
        """Start to search a series for canonical specs, or for those of a principal; returns the task.

        A search of canonical specs serves everybody, but each principal that asks for one waits in its own queue. One that
        the desk itself has begun is at work already: nobody begins another.
        """
        own, key = (series, principal, ""), (series, principal, CALLER.get())
        task = self._running.get(own) or self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._ensure(key, workers or self._workers))
            self._running[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        return task

    def is_running(self, principal: str, series: Series) -> bool:
        """Returns True while a series is searched for a principal."""
        return any(key in self._running for key in _keys(series, principal))

    def progress(self, principal: str, series: Series) -> Progress | None:
        """Returns how far the searches of a series for a principal are; None until the first one has its bars."""
        found = [self._progress[key] for key in _keys(series, principal) if key in self._progress]
        return Progress(sum(each.done for each in found), sum(each.total for each in found)) if found else None

    def _ended(self, key: _Key, task: asyncio.Task[int]) -> None:
        self._running.pop(key, None)
        self._progress.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it if all callers have given up

    async def close(self) -> None:
        """Stop all searches."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ensure(self, key: _Key, workers: Workers) -> int:
        series, principal, _ = key
        workers.prepare(search.__module__)
        wanted = await self._wanted(principal, series)
        if not wanted.specs or len(wanted.stretch.bars) < FEWEST_BARS:
            return 0
        chosen = [each.spec for each in wanted.specs]
        unseen = [unseen_from(each) for each in wanted.specs]
        results: list[SearchedSpec | None] = []
        for at in range(0, len(chosen), _AT_ONCE):
            self._progress[key] = Progress(at, len(chosen))
            some = slice(at, at + _AT_ONCE)
            results += await workers.run(search, chosen[some], wanted.stretch.bars, self._setup, None, unseen[some])
        searched = Searched(
            wanted.place,
            wanted.stretch,
            wanted.covered,
            wanted.specs,
            results,
            wanted.fingerprint,
            wanted.outdated,
            wanted.replaces,
        )
        if self.writes:
            try:
                await self._records.write(_record, searched, wanted.recorded)
            except Refused:  # the scenario has gone on to a later time: this desk only reads it
                self._keep(wanted, searched)
        else:
            self._keep(wanted, searched)
        return len(chosen)

    def _keep(self, wanted: _Wanted, searched: Searched) -> None:
        """Keep results in memory."""
        at = self._bars.clock.epoch()
        made, tries = searched.judged(wanted.known, wanted.shared, at)
        ended = {each.id: each for each in searched.retired(wanted.known, made, at)}
        before = [ended.get(each.id, each) for each in wanted.known.found]
        kept = Known(searched.row(at, tries), [*before, *made])
        self._memory.keep(wanted.place, wanted.recorded, kept)

    async def _wanted(self, principal: str, series: Series) -> _Wanted:
        specs = list(canonical_specs()) if principal == EVERYONE else await self._specs.own(principal)
        fingerprint = sha256(json.dumps(sorted([each.id, each.fingerprint] for each in specs)).encode()).hexdigest()
        place = SearchKey.of(series, principal, self._setup.costs)
        stretch = await newest_bars(self._bars, series)
        recorded, shared = await self._records.read(_known, place)
        known = self._memory.merged(place, recorded)
        if place != place.shared:
            shared = self._memory.merged(place.shared, shared)
        if known.search is not None and not all("tried" in each.figures for each in known.current):
            reason, covered = _EARLIER_RULES, stretch
        else:
            reason, covered = await self._checked(known.search, series, stretch)
        replaces = "" if reason or known.search is None else _grown(known.search, covered)
        if replaces:
            specs = known.unfollowed(specs)
        elif not reason:
            done = known.search is not None and known.search["fingerprint"] == fingerprint
            specs = [] if done else known.untried(specs)
        return _Wanted(place, stretch, covered, specs, fingerprint, reason, replaces, recorded, known, shared)

    async def _checked(
        self, done: Mapping[str, Any] | None, series: Series, stretch: SeriesBars
    ) -> tuple[str, SeriesBars]:
        """Returns why the results of a search are no longer valid, and otherwise the bars of it and of the next one."""
        if done is None or not len(stretch.bars):
            return "", stretch
        covered = stretch
        if stretch.bars.time[0] > done["first"]:
            covered = await bars_since(self._bars, series, int(done["first"]))
        bars = covered.bars
        if int(bars.time.searchsorted(done["first"])) > _MORE_HISTORY * done["bars"]:
            return "there are many more earlier bars now", stretch
        used = bars.between(int(done["first"]), int(done["until"]))
        if digest_of(used) != done["digest"]:
            return "the bars that it was found with were corrected", stretch
        return "", covered


def unseen_from(spec: KnownSpec) -> float:
    """Returns the time from which the author of a spec cannot have seen the bars; all are evidence for the library."""
    return -inf if spec.submitted_at is None else spec.submitted_at


def _grown(done: Mapping[str, Any], covered: SeriesBars) -> str:
    """Returns why the bars after a search are enough for another one; empty if they are not."""
    later = len(covered.bars) - int(covered.bars.time.searchsorted(done["until"]))
    if later and (later >= _MORE_BARS * done["bars"] or covered.until - done["until"] >= _MONTH):
        return f"{counted(later, 'bar')} more have closed since it was found"
    return ""


def _keys(series: Series, principal: str) -> list[_Key]:
    """Returns the keys of the searches that a principal waits for: of canonical specs and of its own."""
    return [(series, each, by) for each in {EVERYONE, principal} for by in ("", principal)]


def _known(view: View, place: SearchKey) -> tuple[Known, Known]:
    """Returns what is recorded of a place, and of the canonical specs on its series if it is another place."""
    return known_at(view, place), Known() if place == place.shared else known_at(view, place.shared)


def _record(journal: Journal, searched: Searched, seen: Known) -> None:
    """Record what was found, unless another process has searched the series since it was `seen`."""
    known, shared = _known(journal.view, searched.place)
    if (known.search, known.generation) != (seen.search, seen.generation):
        return
    made, tries = searched.judged(known, shared, journal.at)
    ended = searched.retired(known, made, journal.at)
    for each in ended:
        journal.put("implementation", each)
    if ended:
        withdraw_votes(journal, searched.place.symbol, searched.place.costs)
    for each in made:
        journal.put("implementation", each, new=True)
    journal.put("search", searched.row(journal.at, tries))
